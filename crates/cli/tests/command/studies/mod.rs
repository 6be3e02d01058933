//! The studies, run in their quick form.

mod active_delay;
mod all;
mod interarrival;
mod limit_rate;
mod loss;
#[cfg(feature = "mesh")]
mod mesh;
mod overhead;
mod passive_delay;
mod quick_runs;
mod reception;
mod step;
mod timers;
mod timestamp_jitter;

use crate::common::{json, run};
use quick_runs::Folder;

#[test]
fn every_study_is_listed_with_its_paper() {
    let list = json(&["study", "list", "--json"]);
    let studies = list["studies"].as_array().unwrap();
    let names: Vec<_> = studies.iter().map(|study| &study["name"]).collect();
    assert_eq!(names[..2], ["timers", "overhead"]);
    for study in studies {
        assert!(["about", "paper"].iter().all(|key| study[key].as_str() > Some("")), "{study}");
    }
    let text = String::from_utf8(run(&["study", "list"]).stdout).unwrap();
    assert!(text.contains("overhead") && text.contains("Orosz"), "{text}");
}
