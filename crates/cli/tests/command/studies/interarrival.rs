//! The times between arrivals.

use std::fs;

use crate::common::{is_root, json};
use crate::studies::Folder;

#[test]
fn interarrival_times_are_compared_with_the_senders() {
    if !is_root() {
        return;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let found = json(&["study", "interarrival", "--quick", "--json", "-o", path]);
    assert_eq!((&found["interrupted"], &found["repetitions"]), (&false.into(), &4.into()));
    assert_eq!(found["claims"].as_array().unwrap().len(), 3);
    // Without XDP, there is one capture less.
    for (stamps, sources) in [("user_space", 3), ("captures", 4)] {
        let stamps = found[stamps].as_array().unwrap();
        assert!(stamps.len() >= 2 * sources, "{stamps:?}");
        for of_source in stamps {
            if of_source["source"] == "ring/kernel" || of_source["source"] == "ktime" {
                // The sender catches up after a delay, so that the mean interval is kept; on a busy machine, some
                // times are unknown.
                let rhythm = if of_source["pattern"] == "call" { 20e6 } else { 1.368e6 };
                let mean = of_source["gap_ns"]["mean"].as_f64().unwrap();
                assert!((0.5..2.0).contains(&(mean / rhythm)), "{of_source:#}");
                assert!(of_source["gap_deviation_ns"]["ci95"].is_number(), "{of_source:#}");
            }
        }
    }
    for correlation in found["correlation"].as_array().unwrap() {
        let rho = correlation["spearman"]["mean"].as_f64().unwrap();
        assert!((-1.0..=1.0).contains(&rho), "{correlation:#}");
    }

    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    for text in ["Figure 3, measured here", "Figure 5, measured here", "Departures from the paper"]
    {
        assert!(page.contains(text), "{text}");
    }
    let raw = fs::read_to_string(folder.path().join("interarrival/001-call.csv")).unwrap();
    let head =
        "packet,sent_ns,ring_kernel_ns,ring_raw_ns,recvmsg_kernel_ns,xdp_pass_ns,trace_pass_raw_ns";
    assert_eq!((raw.lines().next(), raw.lines().count()), (Some(head), 51));
}
