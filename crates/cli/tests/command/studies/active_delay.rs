//! Difference between active and passive one-way delay.

use std::fs;

use crate::common::{is_root, json};
use crate::studies::Folder;

#[test]
fn active_delay_is_compared_with_passive() {
    if !is_root() {
        return;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let found = json(&["study", "active-delay", "--quick", "--json", "-o", path]);
    assert_eq!((&found["interrupted"], &found["repetitions"]), (&false.into(), &3.into()));
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let number = |key: &str| cell[key].as_u64().unwrap();
        let [active, passive] = [0, 1].map(|which| cell["received"][which].as_u64().unwrap());
        let is_overloaded = cell["name"].as_str().unwrap().contains("4167");
        assert_eq!(passive < number("sent"), is_overloaded, "{cell:#}");
        assert_eq!((active, number("disagreement")), (passive, 0), "{cell:#}");
        assert!(cell["least_ns"].as_f64().unwrap() > 0.0, "{cell:#}");
        let difference = cell["difference_ns"][1]["mean"].as_f64().unwrap().abs();
        // A hundred times the normal value, because other programs may run on this machine.
        assert!(difference < 500_000.0, "{cell:#}");
    }
    let claims = found["claims"].as_array().unwrap();
    assert_eq!(claims[1]["verdict"], "confirmed", "never negative: {:#}", claims[1]);

    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    assert_eq!(page.matches("<svg ").count(), 6);
    let raw = folder.path().join("active-delay/001-600-bytes-500-a-second.csv");
    assert!(raw.exists(), "{}", raw.display());
}
