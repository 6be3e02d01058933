//! Packet loss and timestamp error of capture techniques.

use std::fs;

use crate::common::{is_root, json};
use crate::studies::Folder;

#[test]
fn reception_losses_are_all_explained() {
    if !is_root() {
        return;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let quick = ["study", "reception", "--quick", "--json", "-o", path];
    let found = json(&quick);
    assert_eq!((&found["interrupted"], &found["repetitions"]), (&false.into(), &2.into()));
    let cells = found["cells"].as_array().unwrap();
    // Eleven techniques or twelve, two sizes, idle and stressed.
    assert!(cells.len() == 44 || cells.len() == 48, "{}", cells.len());
    for cell in cells {
        assert!(cell["sent"].as_u64() > Some(0), "{cell:#}");
        assert_eq!(cell["unexplained"], 0, "{cell:#}");
        let share = cell["measured_percent"]["mean"].as_f64().unwrap();
        let is_complete = cell["captures_lost"] == 0 && cell["interfaces_dropped"] == 0;
        assert!((0.0..=100.0).contains(&share) && (!is_complete || share > 99.9999), "{cell:#}");
    }
    assert_eq!(found["claims"].as_array().unwrap().len(), 6);
    assert_eq!(found["published"][0]["fluctuation_ns"], 40000.0);

    let trains = found["trains"].as_array().unwrap();
    assert!(trains.len() == 6 || found["trains_reason"].is_string(), "{trains:#?}");
    for cell in trains {
        let all = cell["trains"].as_u64().unwrap() + cell["incomplete_trains"].as_u64().unwrap();
        assert_eq!(all, 20, "{cell:#}");
    }
    // DPDK is not installed everywhere.
    let dpdk = found["dpdk"].as_array().unwrap();
    assert!(dpdk.len() == 4 || found["dpdk_reason"].is_string(), "{dpdk:#?}");
    for cell in dpdk {
        assert!(cell["captured"].as_u64() <= cell["sent"].as_u64(), "{cell:#}");
    }

    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    // Four figures for two sizes of screen.
    assert_eq!(page.matches("<svg ").count(), 8);
    let raw = fs::read_to_string(folder.path().join("reception/001-xdp:xdp-64-1G-idle.csv"));
    assert!(raw.unwrap().starts_with("first,sent,measured,delay_ns,"));

    // All that was measured is in the folder, so nothing is measured again.
    let again = json(&quick);
    assert_eq!((&again["cells"], &again["sittings"]), (&found["cells"], &1.into()));
}
