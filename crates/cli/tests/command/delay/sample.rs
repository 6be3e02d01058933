//! `wirestamp delay --sample`: a part of the packets, the same one at both points.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{is_root, run, stderr};
use crate::delay::{Classic, delay, delayed, files, sent};
use crate::schema;
use serde_json::Value;
use tempfile::TempDir;

const PACKETS: u32 = 20_000;

/// Packets of which one in 20 is lost.
fn lossy() -> (TempDir, [String; 2]) {
    let arrived = (0..PACKETS).filter(|n| n * 7919 % 20 != 3);
    files(
        Classic::packets((0..PACKETS).map(|n| (sent(n), n))),
        Classic::packets(arrived.map(|n| (sent(n) + delay(n), n))),
    )
}

fn count(found: &Value, key: &str) -> f64 {
    found[key].as_f64().unwrap()
}

#[test]
fn both_points_sample_the_same_packets() {
    let (_folder, files) = lossy();
    let (whole, sample) = (delayed(&[], &files), delayed(&["--sample", "1/16"], &files));
    assert_eq!((&whole["sample_share"], &whole["not_sampled"]), (&1.0.into(), &vec![0, 0].into()));
    assert_eq!(sample["sample_share"], 0.0625);
    // Five standard deviations of the random selection.
    let (all, share) = (count(&whole, "sent"), 1.0 / 16.0);
    let room = 5.0 * (all * share * (1.0 - share)).sqrt();
    assert!((count(&sample, "sent") - all * share).abs() < room, "{sample:#}");
    for (point, chosen) in [(0, "sent"), (1, "received")] {
        let left = sample["not_sampled"][point].as_u64().unwrap();
        let chosen = sample[chosen].as_u64().unwrap();
        let all = whole[["sent", "received"][point]].as_u64().unwrap();
        assert_eq!(left + chosen, all, "every packet is in the books");
    }
    // A packet sampled at one point only would be unexpected or lost.
    assert_eq!(sample["unexpected"], 0);
    let loss = |found: &Value| count(found, "lost") / count(found, "sent");
    let error = 5.0 * (0.05 * 0.95 / count(&sample, "sent")).sqrt();
    assert!((loss(&sample) - loss(&whole)).abs() < error, "{} {}", loss(&sample), loss(&whole));
}

#[test]
fn sampled_packets_keep_their_delay() {
    // One flow for each packet, to identify the packets in the result.
    let of = |late: fn(u32) -> i64| {
        let mut capture = Classic::of_link(1);
        for number in 0..800_u16 {
            let time = sent(number.into()) + late(number.into());
            capture.udp(time, 1000 + number, 9, &[7; 20]);
        }
        capture
    };
    let (_folder, files) = files(of(|_| 0), of(delay));
    let delays = |arguments: &[&str]| -> BTreeMap<u64, i64> {
        let found = delayed(arguments, &files);
        let flows = found["flows"].as_array().unwrap();
        let delay = |flow: &Value| Some((flow["sport"].as_u64()?, flow["owd_ns"]["max"].as_i64()?));
        flows.iter().map(|flow| delay(flow).unwrap()).collect()
    };
    let (whole, half, eighth) =
        (delays(&[]), delays(&["--sample", "0.5"]), delays(&["--sample", "1/8"]));
    assert_eq!(whole.len(), 800);
    assert!((300..500).contains(&half.len()) && (50..150).contains(&eighth.len()));
    for (port, delay) in &half {
        assert_eq!(whole[port], *delay);
    }
    assert!(eighth.keys().all(|port| half.contains_key(port)), "a smaller part of a larger one");
}

#[test]
fn text_and_report_mention_the_sample() {
    let (folder, files) = lossy();
    let path = folder.path().join("report.html");
    let page = path.to_str().unwrap();
    let output = run(&["delay", &files[0], &files[1], "--sample", "0.0625", "--report", page]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in
        ["1 packet in 16, selected by hash", "of 20 000 at A", "of 19 000 at B", "bytes and rates"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let page = fs::read_to_string(&path).unwrap();
    for part in ["1 packet in 16 was measured", "Throughput of the sample", "selected by hash"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn invalid_share_is_rejected_with_an_example() {
    for wrong in ["0", "16", "1/0", "-1/2", "half", "1e-12"] {
        let output = run(&["delay", "a", "b", "--sample", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let message = stderr(&output);
        assert!(message.contains("1/16") || wrong.starts_with('-'), "{message}");
    }
}

#[test]
fn interfaces_are_sampled_too() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let found = folder.path().join("found");
    let script = r#"
        mkfifo "$1/message"
        "$0" delay tap-a@wirestamp-router tap-b@wirestamp-sink --filter udp --sample 1/4 \
            --timeout 300 --json > "$1/found" 2> "$1/message" &
        measuring=$!
        exec 3< "$1/message"
        grep -q -m1 Ctrl-C <&3
        "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 300 \
            --interval 100us -c 2000 > "$1/sent"
        kill -INT $measuring
        wait $measuring
        "#;
    let path = folder.path().to_str().unwrap();
    let output = run(&["lab", "run", "sh", "-euc", script, env!("CARGO_BIN_EXE_wirestamp"), path]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found = schema::document("delay", &fs::read(found).unwrap());
    let sent = found["sent"].as_u64().unwrap();
    assert!((400..600).contains(&sent), "{found:#}");
    assert_eq!(found["taps"][0]["packets"], 2000);
    assert_eq!(found["not_sampled"][0], 2000 - sent);
    // A sampled all packets that B sampled; the queue between them may have dropped some.
    assert_eq!((&found["matched"], &found["unexpected"]), (&found["received"], &0.into()));
    assert!(found["matched"].as_u64() > Some(0));
}
