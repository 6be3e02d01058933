//! The packets lost by the way they are stamped and captured.

use std::fs;

use crate::common::{is_root, json};
use crate::studies::Folder;

#[test]
fn losses_are_compared_with_dumpcap() {
    if !is_root() {
        return;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let found = json(&["study", "loss", "--quick", "--json", "-o", path]);
    assert_eq!((&found["interrupted"], &found["repetitions"]), (&false.into(), &3.into()));
    assert_eq!(found["methods"].as_array().unwrap().len(), 3);
    let cells = found["cells"].as_array().unwrap();
    // Three ways, two sizes, two gaps, two kinds of core.
    assert_eq!(cells.len(), 24);
    for cell in cells {
        assert_eq!(cell["sent"], 60_000, "{cell:#}");
        let loss = cell["loss_percent"]["mean"].as_f64().unwrap();
        assert!((0.0..=100.0).contains(&loss), "{cell:#}");
        // Our captures account for each packet; dumpcap's file only contains the captured ones.
        let ours = cell["method"].as_str().unwrap().starts_with("ring-");
        assert!(!ours || cell["unaccounted"] == 0, "{cell:#}");
    }
    // Ten kinds of work in the softIRQ, two sizes, two gaps.
    assert_eq!(found["in_softirq"]["cells"].as_array().unwrap().len(), 40);
    assert_eq!(found["claims"].as_array().unwrap().len(), 9);
    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    // Four figures of the softIRQ and four of the reader, for two sizes of screen.
    assert_eq!(page.matches("<svg ").count(), 16);
    assert!(page.contains("Departures from the paper"));
    assert!(folder.path().join("loss/001-ring-raw-64-0ns-idle.csv").exists());
}
