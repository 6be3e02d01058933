//! `wirestamp delay` on TCP with both directions at both points.

use std::fs;

use crate::common::{is_root, run, stderr, tool};
use crate::delay::{BEGIN, Classic, delayed, files};
use crate::schema;
use serde_json::Value;
use tempfile::TempDir;

const MILLI: i64 = 1_000_000;
const CLIENT: [u8; 4] = [10, 77, 1, 1];
const SERVER: [u8; 4] = [10, 77, 2, 2];
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Milliseconds from the client to A, from A to B, and from B to the server, each way.
const WAYS: [i64; 3] = [3, 4, 10];

/// A conversation at a point: both directions, if they are seen.
struct Conversation {
    capture: Classic,
    /// Milliseconds to the client and to the server.
    to: [i64; 2],
    both: bool,
}

impl Conversation {
    /// A segment that the client sends at this millisecond, or with `back` the server.
    fn segment(&mut self, millis: i64, back: bool, flags: u8, numbers: [u32; 2], payload: usize) {
        if back && !self.both {
            return;
        }
        let ports = if back { [80_u16, 4000] } else { [4000, 80] }.map(u16::to_be_bytes);
        let numbers = numbers.map(u32::to_be_bytes);
        let rest = [0x50, flags, 1, 0, 0, 0, 0, 0];
        let segment = [ports.as_flattened(), numbers.as_flattened(), &rest].concat();
        let segment = [segment, vec![7; payload]].concat();
        let hosts = if back { [SERVER, CLIENT] } else { [CLIENT, SERVER] };
        let time = BEGIN + (millis + self.to[usize::from(back)]) * MILLI;
        self.capture.ip(time, 6, hosts, &segment);
    }

    /// A handshake, and requests of 100 bytes that are answered with as many after a millisecond.
    fn run(mut self) -> Classic {
        let way: i64 = WAYS.iter().sum();
        self.segment(0, false, SYN, [99, 0], 0);
        self.segment(way, true, SYN | ACK, [499, 100], 0);
        self.segment(2 * way, false, ACK, [100, 500], 0);
        for number in 0..5 {
            let (time, bytes) = (100 * i64::from(number + 1), 100 * number);
            self.segment(time, false, ACK, [100 + bytes, 500 + bytes], 100);
            self.segment(time + way + 1, true, ACK, [500 + bytes, 200 + bytes], 100);
            self.segment(time + 2 * way + 1, false, ACK, [200 + bytes, 600 + bytes], 0);
        }
        self.capture
    }
}

fn captured(both: bool) -> (TempDir, [String; 2]) {
    let [before, between, behind] = WAYS;
    let at = |to| Conversation { capture: Classic::of_link(1), to, both }.run();
    files(at([before, between + behind]), at([before + between, behind]))
}

fn flow(found: &Value, port: u16) -> &Value {
    let flows = found["flows"].as_array().unwrap();
    flows.iter().find(|flow| flow["dport"] == port).unwrap()
}

#[test]
fn round_trips_locate_the_delay() {
    let (_folder, files) = captured(true);
    for arguments in [&[][..], &["--sample", "1/2"]] {
        let found = delayed(arguments, &files);
        let there = flow(&found, 80);
        let least = |key: &str| there[key]["min"].as_i64().unwrap();
        // 14 ms and back from A, 10 ms and back from B; answers take a millisecond, the handshake none.
        assert_eq!((least("rtt_a_ns"), least("rtt_b_ns")), (28 * MILLI, 20 * MILLI), "{there:#}");
        assert_eq!(there["rtt_a_ns"]["max"], 29 * MILLI);
        assert_eq!(there["handshake_a_ns"], 28 * MILLI);
        assert_eq!(there["handshake_b_ns"], 20 * MILLI);
        assert!((there["rtt_between_mean_ns"].as_f64().unwrap() - 8e6).abs() < 1.0);
        let back = flow(&found, 4000);
        assert_eq!(
            (&back["rtt_a_ns"]["min"], &back["rtt_b_ns"]["min"]),
            (&(6 * MILLI).into(), &(14 * MILLI).into())
        );
        assert!((back["rtt_between_mean_ns"].as_f64().unwrap() - 8e6).abs() < 1.0);
    }
}

#[test]
fn round_trips_agree_with_tshark() {
    let (_folder, files) = captured(true);
    let found = delayed(&[], &files);
    for (file, key) in [(&files[0], "rtt_a_ns"), (&files[1], "rtt_b_ns")] {
        for (acknowledging, receiver) in [("tcp.srcport == 80", 80), ("tcp.dstport == 80", 4000)] {
            let filter = format!("tcp.analysis.ack_rtt && {acknowledging}");
            let fields = ["-T", "fields", "-e", "tcp.analysis.ack_rtt"];
            let theirs =
                tool("tshark", &[&["-n", "-r", file, "-Y", &filter][..], &fields].concat());
            let theirs: Vec<f64> = theirs.lines().map(|line| line.parse().unwrap()).collect();
            let ours = &flow(&found, receiver)[key];
            assert_eq!(ours["count"], theirs.len(), "{ours:#} {theirs:?}");
            let sum: f64 = theirs.iter().sum();
            let ours = ours["mean"].as_f64().unwrap() * ours["count"].as_f64().unwrap() / 1e9;
            assert!((ours - sum).abs() < 1e-6, "{ours} s of {sum} s");
        }
    }
}

#[test]
fn one_direction_has_no_round_trip() {
    let (_folder, files) = captured(false);
    let found = delayed(&[], &files);
    assert!(flow(&found, 80).get("rtt_a_ns").is_none());
    let text = String::from_utf8(run(&["delay", &files[0], &files[1]]).stdout).unwrap();
    assert!(!text.contains("round trip"), "{text}");
}

#[test]
fn text_and_report_contain_round_trips() {
    let (folder, files) = captured(true);
    let path = folder.path().join("report.html");
    let output = run(&["delay", &files[0], &files[1], "--report", path.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "mean round trip",
        "handshake A",
        "8.00 ms",
        "by that point's clock",
        "Flows from B to A: 1.",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.contains("TCP round-trip time") && page.contains("8.00"), "{text}");
}

#[test]
fn interfaces_with_both_directions_have_round_trips() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The queue of the bottleneck is between the points, and iperf3 fills it.
    let script = r#"
        cd "$1"
        mkfifo message listening
        "$0" delay tap-a@wirestamp-router tap-b@wirestamp-sink -Q inout --filter 'tcp port 5201' \
            --json > found 2> message &
        measuring=$!
        exec 3< message
        grep -q -m1 Ctrl-C <&3
        ip netns exec wirestamp-sink iperf3 -s -1 --forceflush > listening 2>&1 &
        serving=$!
        exec 4< listening
        grep -q -m1 listening <&4
        ip netns exec wirestamp-source iperf3 -c 10.77.2.2 -n 500K > sent
        wait $serving
        kill -INT $measuring
        wait $measuring
        "#;
    let path = folder.path().to_str().unwrap();
    let output = run(&["lab", "run", "sh", "-euc", script, env!("CARGO_BIN_EXE_wirestamp"), path]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found = fs::read_to_string(folder.path().join("found")).unwrap();
    let found = schema::document("delay", found.as_bytes());
    let flows = found["flows"].as_array().unwrap();
    let data = flows
        .iter()
        .filter(|flow| flow["dport"] == 5201)
        .max_by_key(|flow| flow["sent_bytes"].as_u64());
    let data = data.unwrap();
    let trip = |key: &str| data[key]["mean"].as_f64().unwrap();
    assert!(trip("rtt_a_ns") > 10.0 * trip("rtt_b_ns"), "{data:#}");
    assert!(data["rtt_between_mean_ns"].as_f64() > Some(1e6), "{data:#}");
}
