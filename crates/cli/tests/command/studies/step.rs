//! The smallest detectable change of the delay.

use std::fs;

use serde_json::Value;

use crate::common::{is_root, json};
use crate::studies::Folder;

#[test]
fn every_technique_has_a_smallest_step() {
    if !is_root() {
        return;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let quick = ["study", "step", "--quick", "--json", "-o", path];
    let found = json(&quick);
    assert_eq!((&found["interrupted"], &found["packets"]), (&false.into(), &15_000.into()));
    let techniques = found["techniques"].as_array().unwrap();
    assert!((11..=12).contains(&techniques.len()), "{}", techniques.len());
    // On a busy machine, some runs may not be complete.
    let has_smallest = |of: &Value| of["smallest_ns"].as_f64() > Some(0.0);
    assert!(techniques.iter().any(has_smallest), "{techniques:#?}");
    for technique in techniques {
        let found = |check: usize| technique["checks"][check]["found"]["found"].as_u64().unwrap();
        // Larger steps are found more often.
        assert!((0..3).all(|check| found(check) <= found(check + 1)), "{technique:#}");
        assert_eq!(technique["lost"][2], 0, "{technique:#}");
    }
    assert_eq!(found["published"]["step_ns"], 88);

    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    // One figure for two sizes of screen.
    assert_eq!(page.matches("<svg ").count(), 2);
    assert!(folder.path().join("step/002-ring:kernel-88.csv").exists());
}
