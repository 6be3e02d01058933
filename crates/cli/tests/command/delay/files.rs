//! `wirestamp delay` between captures of all kinds.

use std::fs;

use crate::common::{run, stderr, tool};
use crate::delay::{Classic, DAY, SECOND, delay, delayed, files, sent};
use crate::schema;
use serde_json::Value;

#[test]
fn clock_offset_of_a_day_can_be_aligned() {
    let a = Classic::packets((0..500).map(|n| (sent(n), n)));
    let b = Classic::packets((0..500).map(|n| (sent(n) + delay(n) + DAY, n)));
    let (_folder, files) = files(a, b);
    let output = run(&["delay", &files[0], &files[1]]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    for part in ["500 packets", "86400.002 s ahead", "--align", "--offset 86400.002"] {
        assert!(message.contains(part), "{part} in {message}");
    }

    let aligned = delayed(&["--align", "--codec", "g711"], &files);
    assert_eq!((&aligned["matched"], &aligned["lost"]), (&500.into(), &0.into()));
    assert_eq!((&aligned["owd_ns"], &aligned["flows"][0]["mos"]), (&Value::Null, &Value::Null));
    assert!(aligned["owd_reason"].as_str().unwrap().contains("aligned"));
    assert_eq!(aligned["offset_removed_ns"], DAY + 2_000_000);
    assert_eq!(
        (&aligned["pdv_ns"]["min"], &aligned["pdv_ns"]["max"]),
        (&0.into(), &999_000.into())
    );

    let moved = delayed(&["--offset", "86400"], &files);
    assert_eq!((&moved["owd_ns"]["min"], &moved["matched"]), (&2_000_000.into(), &500.into()));
    let back = [files[1].clone(), files[0].clone()];
    assert!(stderr(&run(&["delay", &back[0], &back[1]])).contains("behind"));
    assert_eq!(delayed(&["--offset", "-86400.01"], &back)["matched"], 500);
}

#[test]
fn skew_is_estimated_and_removed() {
    const PPM: i64 = 50;
    let gained = |time: i64| (time - crate::delay::BEGIN) / 1_000_000 * PPM;
    let received = |n| sent(n) + delay(n);
    let a = Classic::packets((0..5000).map(|n| (sent(n), n)));
    let b = Classic::packets((0..5000).map(|n| (received(n) + gained(received(n)), n)));
    let (_folder, files) = files(a, b);
    let left = delayed(&[], &files);
    let off = |found: &Value| found["skew_ppm"].as_f64().unwrap() - 50.0;
    let error = |found: &Value| found["skew_error_ppm"].as_f64().unwrap();
    assert!(off(&left).abs() <= error(&left) && error(&left) < 1.0, "{left:#}");
    assert_eq!(left["skew_removed_ppm"], 0.0);
    // 100 s at 50 ppm are 5 ms, where queues have 1 ms at the most.
    assert!(left["pdv_ns"]["max"].as_i64() > Some(5_000_000));
    let removed = delayed(&["--remove-skew"], &files);
    assert!((removed["skew_removed_ppm"].as_f64().unwrap() - 50.0).abs() <= error(&removed));
    assert!(removed["pdv_ns"]["max"].as_i64() < Some(1_100_000), "{:#}", removed["pdv_ns"]);
    assert!((removed["owd_ns"]["min"].as_i64().unwrap() - 2_000_000).abs() < 100_000);
    let text = run(&["delay", &files[0], &files[1], "--remove-skew", "-v"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("B's clock gained 50.0") && text.contains("burst ratio"), "{text}");
    let text = String::from_utf8(run(&["delay", &files[0], &files[1]]).stdout).unwrap();
    assert!(text.contains("--remove-skew removes this"), "{text}");
}

#[test]
fn zero_skew_is_not_removed() {
    let a = Classic::packets((0..100).map(|n| (sent(n), n)));
    let b = Classic::packets((0..100).map(|n| (sent(n) + delay(n), n)));
    let (_folder, files) = files(a, b);
    let output = run(&["delay", &files[0], &files[1], "--remove-skew"]);
    assert!(stderr(&output).contains("is not distinguishable from zero"), "{}", stderr(&output));
    assert_eq!(delayed(&["--remove-skew"], &files)["skew_removed_ppm"], 0.0);
}

#[test]
fn losses_outside_bs_capture_are_separate() {
    let a = Classic::packets((0..100).map(|n| (sent(n), n)));
    let b = Classic::packets((20..60).filter(|&n| n != 30).map(|n| (sent(n) + delay(n), n)));
    let (_folder, files) = files(a, b);
    let found = delayed(&[], &files);
    assert_eq!((&found["lost"], &found["lost_beyond_capture"]), (&61.into(), &60.into()));
    let output = run(&["delay", &files[0], &files[1]]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("60 of the lost packets left A before the first or after the last"),
        "{text}"
    );
}

#[test]
fn swapped_points_are_suspected() {
    let a = Classic::packets((0..100).map(|n| (sent(n) + delay(n), n)));
    let b = Classic::packets((0..100).map(|n| (sent(n), n)));
    let (_folder, files) = files(a, b);
    let output = run(&["delay", &files[0], &files[1]]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("swap the two points"), "{text}");
}

#[test]
fn badly_unordered_records_are_reported() {
    let a = || Classic::packets((0..200).map(|n| (sent(n), n)));
    // Neighbours swapped: 20 ms.
    let swapped = (0..200).map(|n| n ^ 1).map(|n| (sent(n) + delay(n), n));
    let (_folder, files_of_swapped) = files(a(), Classic::packets(swapped));
    let output = run(&["delay", &files_of_swapped[0], &files_of_swapped[1], "--json"]);
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    let found = schema::document("delay", &output.stdout);
    assert_eq!((&found["matched"], &found["lost"]), (&200.into(), &0.into()));
    let text = run(&["delay", &files_of_swapped[0], &files_of_swapped[1]]);
    let text = String::from_utf8(text.stdout).unwrap();
    let note = "0 packets at A and 100 at B are stamped before a packet captured before";
    assert!(text.contains(note), "{text}");
    // The second half before the first: 2 s.
    let halves = (100..200).chain(0..100).map(|n| (sent(n) + delay(n), n));
    let (_folder, files) = files(a(), Classic::packets(halves));
    let message = stderr(&run(&["delay", &files[0], &files[1]]));
    assert!(message.contains("100 packets of") && message.contains("reordercap"), "{message}");
    let in_order = format!("{}.in-order", files[1]);
    tool("reordercap", &[&files[1], &in_order]);
    assert_eq!(delayed(&[], &[files[0].clone(), in_order])["matched"], 200);
}

#[test]
fn empty_packets_count_and_unknown_links_fail() {
    let mut a = Classic::packets((0..10).map(|n| (sent(n), n)));
    a.frame(sent(10), &[]);
    let b = || Classic::packets((0..10).map(|n| (sent(n) + delay(n), n)));
    let (_folder, files_with_nothing) = files(a, b());
    let found = delayed(&[], &files_with_nothing);
    assert_eq!((&found["matched"], &found["unidentified"]), (&10.into(), &1.into()));

    // Frames of USB.
    let mut usb = Classic::of_link(189);
    usb.frame(sent(0), &[0; 60]);
    let (_folder, files) = files(usb, b());
    let output = run(&["delay", &files[0], &files[1]]);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{message}");
    assert!(message.contains("link type") && message.contains("a.pcap"), "{message}");
}

#[test]
fn report_has_figures_and_unknown_values() {
    let b = (0..1000).filter(|n| n % 100 != 7).map(|n| (sent(n) + delay(n), n));
    let (folder, files) =
        files(Classic::packets((0..1000).map(|n| (sent(n), n))), Classic::packets(b));
    let path = folder.path().join("report.html");
    let page = path.to_str().unwrap();
    let found = delayed(&["--codec", "g729a", "--report", page], &files);
    assert_eq!(found["flows"][0]["codec"], "g729a");
    assert!(found["flows"][0]["mos"].as_f64() < Some(4.0));
    assert_eq!(found["loss_pattern"]["periods"], 10);
    let page = fs::read_to_string(&path).unwrap();
    for part in ["<svg", "a.pcap", "As a phone call", "error is unknown", "loss, 1.00", "Skew"] {
        assert!(page.contains(part), "{part}");
    }
    let refused = run(&["delay", &files[0], &files[1], "--report", "/proc/nowhere/x"]);
    assert!(stderr(&refused).contains("folder does not exist"), "{}", stderr(&refused));
}

#[test]
fn coarse_percentiles_are_noted() {
    let a = Classic::packets((0..500).map(|n| (sent(n), n)));
    let b = Classic::packets((0..500).map(|n| (sent(n) + delay(n) + SECOND / 2, n)));
    let (_folder, files) = files(a, b);
    let text = String::from_utf8(run(&["delay", &files[0], &files[1]]).stdout).unwrap();
    assert!(text.contains("Percentiles are within 246 µs"), "{text}");
    let output = run(&["delay", &files[0], &files[1], "--align"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("Percentiles") && text.contains("mean PDV"), "{text}");
}

/// Heartbeats, all the same, of which the network loses one: those behind it are matched with their successors.
#[test]
fn identical_packets_are_noted_and_give_no_skew() {
    const DELAY: i64 = 5_000_000;
    fn heartbeats(numbers: impl Iterator<Item = u32>, delay: i64) -> Classic {
        let mut capture = Classic::of_link(1);
        numbers.for_each(|n| capture.udp(sent(n) + delay, 7000, 7001, b"heartbeat"));
        capture
    }
    let a = heartbeats(0..300, 0);
    let b = heartbeats((0..300).filter(|n| *n != 20), DELAY);
    let (_folder, files) = files(a, b);
    let found = delayed(&[], &files);
    assert_eq!((&found["identical"], &found["lost"]), (&299.into(), &1.into()));
    assert_eq!(found["skew_ppm"], Value::Null);
    let reason = found["skew_reason"].as_str().unwrap();
    assert!(reason.contains("identical"), "{reason}");
    let text = |arguments: &[&str]| {
        let output = run(&[&["delay", &files[0], &files[1]][..], arguments].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let noted = text(&[]);
    for part in ["299 of 300 packets at A are identical", "--timeout below"] {
        assert!(noted.contains(part), "{part} in {noted}");
    }
    assert!(!noted.contains("skew"), "{noted}");
    // Heartbeats are 20 ms apart.
    assert!(!text(&["--timeout", "15"]).contains("identical"));
    assert_eq!(delayed(&["--timeout", "15"], &files)["owd_ns"]["max"], DELAY);
}

#[test]
fn longer_timeout_is_suggested_for_slow_paths() {
    let a = || Classic::packets((0..100).map(|n| (sent(n), n)));
    let slow = |n: u32| sent(n) + delay(n) + 3 * SECOND / 2;
    let (_folder, files_of_slow) = files(a(), Classic::packets((0..100).map(|n| (slow(n), n))));
    let message = stderr(&run(&["delay", &files_of_slow[0], &files_of_slow[1]]));
    for part in ["use --timeout 4s; otherwise add --align", "--offset 1.502"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert_eq!(delayed(&["--timeout", "4s"], &files_of_slow)["matched"], 100);

    // Some packets only are late.
    let b = (0..50).map(|n| (sent(n) + delay(n), n)).chain((50..60).map(|n| (slow(n), n)));
    let (_folder, files) =
        files(Classic::packets((0..60).map(|n| (sent(n), n))), Classic::packets(b));
    let text = run(&["delay", &files[0], &files[1]]);
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["10 packets were observed at B only. They may be the lost ones", "--timeout"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
