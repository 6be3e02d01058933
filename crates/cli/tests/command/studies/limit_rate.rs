//! The limit rate of a probe.

use std::fs;

use crate::common::{is_root, json};
use crate::studies::Folder;

#[test]
fn frames_are_accounted_for_beyond_the_limit() {
    if !is_root() {
        return;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let found = json(&["study", "limit-rate", "--quick", "--json", "-o", path]);
    assert_eq!(found["interrupted"], false);
    let series = found["series"].as_array().unwrap();
    let names: Vec<_> = series.iter().map(|series| series["name"].as_str().unwrap()).collect();
    // Without the memory controller of control groups there is no series of memory.
    let names: Vec<_> = names.into_iter().filter(|name| *name != "memory").collect();
    assert_eq!(names, ["cpu", "buffer", "filter", "tasks", "frame", "gap", "duration"]);
    for cell in series.iter().flat_map(|series| series["cells"].as_array().unwrap()) {
        assert!(cell["sent"].as_u64() > Some(0), "{cell:#}");
        assert_eq!(cell["unaccounted"], 0, "{cell:#}");
        assert!(cell["load_percent"]["mean"].as_f64() > Some(0.0), "{cell:#}");
    }
    // Two parts of a core with one task and with four.
    for point in found["saturation"].as_array().unwrap() {
        let searches = point["reached"].as_u64().unwrap() + point["not_reached"].as_u64().unwrap();
        assert_eq!(searches, 2, "{point:#}");
    }
    assert_eq!(found["claims"].as_array().unwrap().len(), 11);
    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    assert!(page.matches("<svg ").count() >= 30);
    assert!(folder.path().join("limit-rate-cpu/001-whole-max.csv").exists());
    assert!(folder.path().join("limit-rate-saturation/001-1of16-4.csv").exists());
}
