//! The studies, run in their quick form.

mod active_delay;
mod all;
#[expect(dead_code, reason = "not every test file needs all of it")]
#[path = "../common/mod.rs"]
mod common;
mod interarrival;
mod limit_rate;
mod loss;
mod overhead;
mod passive_delay;
#[path = "../quick_runs/mod.rs"]
mod quick_runs;
mod reception;
mod step;
mod timers;
mod timestamp_jitter;

use common::{json, run};
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
