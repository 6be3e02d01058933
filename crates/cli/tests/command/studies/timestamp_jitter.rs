//! The jitter of stamps.

use std::fs;

use crate::common::{is_root, json};
use crate::studies::Folder;

#[test]
fn stamp_jitter_is_compared_with_the_paper() {
    if !is_root() {
        return;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let found = json(&["study", "timestamp-jitter", "--quick", "--json", "-o", path]);
    assert_eq!((&found["interrupted"], &found["repetitions"]), (&false.into(), &3.into()));
    assert_eq!(found["claims"].as_array().unwrap().len(), 6);
    let cells = found["cells"].as_array().unwrap();
    for source in ["ring/kernel", "ring/kernel-in-call"] {
        assert_eq!(cells.iter().filter(|cell| cell["source"] == source).count(), 3 * 5, "{source}");
    }
    for cell in cells {
        let count = |name: &str| cell[name].as_u64().unwrap();
        // Missing packets were lost by the capture, or by the kernel before it.
        assert!(count("sent") >= count("captured") && count("sent") > 0, "{cell:#}");
        if let (Some(least), Some(longest)) =
            (cell["stamped"]["min"].as_f64(), cell["stamped"]["max"].as_f64())
        {
            assert!(least <= longest, "{cell:#}");
        }
    }
    assert_eq!(found["published"][0]["max_us"], 61934.0);
    let late = &found["late"];
    assert_eq!(late["reason"], serde_json::Value::Null);
    let flows = late["flows"].as_array().unwrap();
    assert_eq!(flows.iter().filter(|flow| flow["source"] == "ring/kernel").count(), 3);
    for flow in flows {
        let count = |name: &str| flow[name].as_u64().unwrap();
        assert!(count("packets") > 0 || count("left_out") > 0, "{flow:#}");
        assert_eq!(flow["causes"].as_array().unwrap().len(), 6);
    }

    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    for text in [
        "Figures 3-12 and 3-13, measured here",
        "61\u{202f}934",
        "Late packets by",
        "Departures from the paper",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let raw =
        fs::read_to_string(folder.path().join("timestamp-jitter/001-84-full-ring-kernel.csv"))
            .unwrap();
    assert!(raw.starts_with("source,sent,captured,lost,times,sent_min,"), "{raw}");
}
