//! Captures of the same traffic in which hardly any packet is recognised: loss is unknown, with its reason.

use serde_json::Value;

use crate::common::{run, stderr};
use crate::delay::{A, B, Classic, delay, files, sent};
use crate::schema;

const PACKETS: u32 = 50;
const GRE: u8 = 47;

/// The payload of a packet.
fn payload(number: u32) -> Vec<u8> {
    [&number.to_be_bytes()[..], &[0; 396]].concat()
}

/// Packets as they pass A.
fn at_a() -> Classic {
    let mut capture = Classic::of_link(1);
    (0..PACKETS).for_each(|n| capture.udp(sent(n), 5000, 6000, &payload(n)));
    capture
}

/// Packets at B, each made by `frame`.
fn at_b(frame: impl Fn(&mut Classic, i64, u32)) -> Classic {
    let mut capture = Classic::of_link(1);
    (0..PACKETS).for_each(|n| frame(&mut capture, sent(n) + delay(n), n));
    capture
}

/// The datagram of a packet, with its UDP header.
fn datagram(from: u16, number: u32) -> Vec<u8> {
    let payload = payload(number);
    let length = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
    let ports = [from, 6000].map(u16::to_be_bytes);
    [ports.as_flattened(), &length, &[0, 0], &payload].concat()
}

#[track_caller]
fn assert_unknown(a: Classic, b: Classic, reason: &str) {
    let (folder, files) = files(a, b);
    let report = folder.path().join("report.html");
    let report = report.to_str().unwrap();
    let rule = ["--match", "packet"];
    let output =
        run(&[&["delay", &files[0], &files[1], "--json", "--report", report][..], &rule].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = schema::document("delay", &output.stdout);
    assert_eq!((&found["lost"], &found["matched"]), (&Value::Null, &0.into()), "{found:#}");
    let said = found["lost_reason"].as_str().unwrap();
    assert!(said.contains(reason), "{said}");
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("Loss is unknown") && !page.contains("none arrived"), "a total loss");
    let text = run(&[&["delay", &files[0], &files[1]][..], &rule].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("unknown") && text.contains(reason), "{text}");
    assert!(!text.contains("(100"), "{text}");
}

#[test]
fn address_translation_is_not_loss() {
    let public = [192, 0, 2, 7];
    let b = at_b(|capture, time, n| capture.ip(time, 17, [public, B], &datagram(40_000, n)));
    assert_unknown(at_a(), b, "NAT");
}

#[test]
fn rewritten_ip_identifications_are_not_loss() {
    let b = at_b(|capture, time, n| {
        let identification = u16::try_from(n + 1).unwrap();
        capture.ip_with(time, identification, 17, [A, B], &datagram(5000, n));
    });
    assert_unknown(at_a(), b, "other IP identifications");
}

#[test]
fn tunnel_at_one_point_is_not_loss() {
    let ends = [[198, 51, 100, 1], [198, 51, 100, 2]];
    let b = at_b(|capture, time, n| {
        let mut inner = Classic(Vec::new());
        inner.ip(0, 17, [A, B], &datagram(5000, n));
        // Behind the record's head and the Ethernet header.
        let packet = &inner.0[16 + 14..];
        capture.ip(time, GRE, ends, &[&[0, 0, 8, 0], packet].concat());
    });
    assert_unknown(at_a(), b, "GRE");
}

#[test]
fn snap_length_at_one_point_is_not_loss() {
    let b = at_b(|capture, time, n| {
        let mut whole = Classic(Vec::new());
        whole.udp(0, 5000, 6000, &payload(n));
        capture.frame_cut(time, &whole.0[16..], 64);
    });
    assert_unknown(at_a(), b, "snap length");
}

#[test]
fn unrelated_packets_are_not_loss() {
    let b = at_b(|capture, time, n| {
        let hosts = [[10, 1, 1, 1], [10, 2, 2, 2]];
        let segment =
            [&[0, 80, 1, 187][..], &n.to_be_bytes(), &[0; 4], &[0x50, 0x10, 0, 0, 0, 0, 0, 0]];
        capture.ip(time, 6, hosts, &segment.concat());
    });
    assert_unknown(at_a(), b, "no flow in common");
}

#[test]
fn answers_at_b_are_not_loss() {
    let b = at_b(|capture, time, n| {
        let length = 12_u16.to_be_bytes();
        let ports = [6000, 5000].map(u16::to_be_bytes);
        let body = [ports.as_flattened(), &length, &[0, 0], &n.to_be_bytes()].concat();
        capture.ip(time, 17, [B, A], &body);
    });
    assert_unknown(at_a(), b, "-Q inout");
}

#[test]
fn total_loss_is_loss_where_b_has_little_else() {
    let b = Classic::packets((0..10).map(|n| (sent(n), 1_000 + n)));
    let (_folder, files) = files(at_a(), b);
    let output = run(&["delay", &files[0], &files[1], "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found = schema::document("delay", &output.stdout);
    assert_eq!((&found["lost"], &found["lost_reason"]), (&PACKETS.into(), &Value::Null));
}

#[test]
fn short_segments_that_were_merged_are_not_loss() {
    let tcp = |sequence: u32, payload: usize| {
        let ports = [4000_u16, 80].map(u16::to_be_bytes);
        let rest = [0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0];
        [ports.as_flattened(), &sequence.to_be_bytes(), &rest, &vec![7; payload]].concat()
    };
    let mut a = at_a();
    let mut b = at_b(|capture, time, n| capture.udp(time, 5000, 6000, &payload(n)));
    // The receiver merges ten segments of 100 bytes into one, which is as long as others on the network.
    for n in 0..100 {
        a.ip(sent(PACKETS + n), 6, [A, B], &tcp(n * 100, 100));
        if n % 10 == 9 {
            let first = (n - 9) * 100;
            b.ip(sent(PACKETS + n) + 1_000_000, 6, [A, B], &tcp(first, 1000));
        }
    }
    let (_folder, files) = files(a, b);
    let output = run(&["delay", &files[0], &files[1], "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = schema::document("delay", &output.stdout);
    let reason = found["lost_reason"].as_str().unwrap();
    assert!(reason.contains("GRO") && reason.contains("ethtool -K"), "{reason}");
    let lost = |protocol: u64| {
        let flows = found["flows"].as_array().unwrap();
        flows.iter().find(|flow| flow["protocol"] == protocol).unwrap()["lost"].clone()
    };
    assert_eq!((&found["lost"], lost(6), lost(17)), (&Value::Null, Value::Null, 0.into()));
}

/// A is a capture at `any` of a router: each packet comes in and goes out.
#[test]
fn packets_captured_twice_at_a_are_not_loss() {
    let mut a = Classic::of_link(1);
    for n in 0..PACKETS {
        a.udp(sent(n), 5000, 6000, &payload(n));
        a.udp(sent(n) + 20_000, 5000, 6000, &payload(n));
    }
    let b = Classic::of_link(1);
    let b = (0..PACKETS).filter(|n| n % 25 != 7).fold(b, |mut capture, n| {
        capture.udp(sent(n) + delay(n), 5000, 6000, &payload(n));
        capture
    });
    let (folder, files) = files(a, b);
    let csv = folder.path().join("rows.csv").to_str().unwrap().to_owned();
    let output = run(&["delay", &files[0], &files[1], "--json", "--csv", &csv]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = schema::document("delay", &output.stdout);
    assert_eq!((&found["lost"], &found["matched"]), (&Value::Null, &48.into()), "{found:#}");
    assert_eq!(found["flows"][0]["lost"], Value::Null);
    let reason = found["lost_reason"].as_str().unwrap();
    for part in ["A has 50 packets twice", "FILE#IF", "editcap -d"] {
        assert!(reason.contains(part), "{part} in {reason}");
    }
    let rows = std::fs::read_to_string(csv).unwrap();
    assert!(rows.contains("loss_unknown") && !rows.contains("\nlost,"), "{rows}");
    let text = run(&["delay", &files[0], &files[1]]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("unknown") && !text.contains("are identical"), "{text}");
}
