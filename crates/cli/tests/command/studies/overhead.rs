//! The overhead of a stamp.

use std::fs;

use crate::common::{is_root, json, run, stderr};
use crate::studies::Folder;

const DISTRIBUTION: [&str; 9] =
    ["count", "min", "mean", "stddev", "p50", "p90", "p99", "p999", "max"];

#[test]
fn stamp_overhead_is_compared_with_the_paper() {
    if !is_root() {
        return;
    }
    let folder = Folder::of_quick_runs();
    let path = folder.path().to_str().unwrap();
    let quick = ["study", "overhead", "--quick", "--json", "-o", path];
    let found = json(&quick);
    assert_eq!((&found["interrupted"], &found["repetitions"]), (&false.into(), &5.into()));
    let cells = found["cells"].as_array().unwrap();
    for (cell, packets) in cells.iter().zip([500, 5000, 500, 5000]) {
        for key in DISTRIBUTION {
            assert!(cell["overhead_ns"][key].is_number(), "{key}: {cell:#}");
        }
        // On a busy machine the socket may overflow while the receiver waits for its core.
        let count = cell["overhead_ns"]["count"].as_u64().unwrap();
        assert!((packets / 2..=packets).contains(&count), "{count} of {packets}");
        assert_eq!(cell["autocorrelation"].as_array().unwrap().len(), 20);
    }
    // In user space with both patterns; the mean in the softIRQ, too.
    for (claim, places) in found["claims"].as_array().unwrap().iter().zip([3, 2]) {
        let leads = claim["lead"].as_array().unwrap();
        assert_eq!(leads.len(), places, "{claim:#}");
        assert!(leads.iter().all(|lead| lead["mean"].is_number()), "{claim:#}");
    }
    // Medians, because a shared host delays single stamps by more than all others take.
    let median = |cell: usize| cells[cell]["overhead_ns"]["p50"].as_f64().unwrap();
    for pattern in [0, 1] {
        let [ktime, raw] = [median(pattern), median(2 + pattern)];
        assert!(raw < 2.0 * ktime.max(20.0), "{raw} {ktime}");
    }
    let kernel_stamps = &found["kernel_stamps"];
    assert_eq!(kernel_stamps["cells"].as_array().unwrap().len(), 12, "{kernel_stamps:#}");
    assert_eq!(found["published"][0]["mean_ns"], 195.2762);
    let softirq = found["softirq"].as_array().unwrap();
    assert_eq!(softirq[0]["stamp"], "bpf_ktime_get_ns");
    assert!(softirq[0]["added_ns"]["mean"].as_f64() > Some(0.0), "{softirq:?}");

    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    // Two figures of each pattern, for two sizes of screen.
    assert_eq!(page.matches("<svg ").count(), 8);
    for text in ["195.2762", "8.197374", "Departures from the paper"] {
        assert!(page.contains(text), "{text}");
    }
    let raw = fs::read_to_string(folder.path().join("overhead/001-raw-call.csv")).unwrap();
    assert_eq!(raw.lines().next(), Some("packet,sent_ns,at_ns,stamp_ns,between_ns,checkpoint_ns"));
    assert!((51..=101).contains(&raw.lines().count()));

    // All that was measured is in the folder, so nothing is measured again.
    let again = json(&quick);
    assert_eq!((&again["cells"], &again["sittings"]), (&found["cells"], &1.into()));
    let other = run(&["study", "overhead", "-o", path]);
    let message = stderr(&other);
    assert_eq!((other.status.code(), message.lines().count()), (Some(1), 1), "{message}");
    assert!(message.contains("another design"), "{message}");
}
