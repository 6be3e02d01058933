//! STAMP with scapy's `contrib.stamp`, which knows open packets only.

use std::process::Command;

use crate::common::{is_root, stderr};
use crate::stamp::{Reflector, counts, loopback, stamped};
use serde_json::Value;
use wirestamp_lab::Netns;

/// The Python for which `tools/setup-peers` installs it.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/scapy/bin/python");
/// The flag U of an extension (RFC 8972 section 4).
const UNRECOGNISED: u64 = 128;
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/stamp/by_scapy.py");

fn scapy(namespace: &Netns, arguments: &[&str]) -> Command {
    let mut command = namespace.command(PYTHON);
    command.arg(SCRIPT).args(arguments);
    command
}

#[test]
fn scapy_reads_our_answers() {
    if !is_root() {
        return;
    }
    let namespace = loopback();
    let reflector = Reflector::start(&namespace, &[]);
    for host in ["127.0.0.1", "::1"] {
        let output = scapy(&namespace, &["send", host, "862", "20"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let answers: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answers.len(), 20);
        for (number, answer) in (0..).zip(&answers) {
            assert_answer(answer, number);
        }
    }
    let document = reflector.end();
    let found = counts(&document, ["reflected", "sessions", "not_stamp"]);
    assert_eq!(found, [40, 2, 0], "{document}");
}

/// Scapy's view of the answer with this number.
fn assert_answer(answer: &Value, number: u64) {
    assert_eq!(counts(answer, ["seq", "seq_sender", "ssid"]), [number, number, 7], "{answer}");
    assert_eq!(counts(answer, ["ttl_sender", "mbz1", "mbz2"]), [64, 0, 0], "{answer}");
    assert_eq!((&answer["same"], &answer["behind"]), (&true.into(), &"".into()), "{answer}");
    assert_eq!(answer["length"][0], answer["length"][1], "{answer}");
    let [sent, received, returned] = counts(answer, ["ts_sender", "ts_rx", "ts"]);
    assert!(sent <= received && received <= returned, "{answer}");
    // In units of 2^-32 s, and by Python's clock, which has fewer digits.
    #[expect(clippy::cast_precision_loss, reason = "a second has 32 bits")]
    let response = (returned - received) as f64 / 2_f64.powi(32);
    assert!(response <= answer["round_trip"].as_f64().unwrap() + 1e-6, "{answer}");
    let [stamps, unknown, padding] = &answer["tlv_objects"].as_array().unwrap()[..] else {
        panic!("{answer}")
    };
    // A known extension has no "unrecognised" flag.
    assert_eq!(counts(stamps, ["type", "flags"]), [3, 0], "{answer}");
    assert_ne!(stamps["value"], "00000000", "{answer}");
    assert_eq!(counts(unknown, ["type", "flags"]), [200, UNRECOGNISED], "{answer}");
    assert_eq!(counts(padding, ["type", "flags"]), [1, 0], "{answer}");
    assert_eq!(padding["value"], "07".repeat(9), "{answer}");
}

#[test]
fn our_sender_reads_scapy_answers() {
    if !is_root() {
        return;
    }
    let namespace = loopback();
    for host in ["127.0.0.1", "::1"] {
        let python = scapy(&namespace, &["reflect", host, "862"]);
        let reflector = Reflector::foreign(python, "reflecting");
        let test = ["-c", "40", "-i", "2ms", "--size", "200", "--dscp", "10", "--session", "513"];
        let test = [&[host][..], &test, &["--same-clock"]].concat();
        let document = stamped(&namespace, &test);
        // The reflector counts its answers, so the sender can determine the direction of losses.
        let found = counts(&document, ["sent", "answered", "lost_there", "lost_back", "foreign"]);
        assert_eq!(found, [40, 37, 2, 1, 0], "{document}");
        assert_eq!(document["reflector_counts"], true, "{document}");
        let clock = &document["reflector_clock"];
        assert_eq!(clock["error_ns"], 31_250_000, "{document}");
        assert_eq!(clock["synchronised"], true, "{document}");
        // The extensions come back unchanged: scapy does not process them.
        assert_eq!(counts(&document, ["returned_by_kernel"]), [0], "{document}");
        assert_eq!(document["dscp_there"], Value::Null, "{document}");
        let packets = reflector.hang_up();
        let packets = packets.as_array().unwrap();
        assert_eq!(packets.len(), 40);
        for (number, packet) in (0..).zip(packets) {
            assert_packet(packet, number);
        }
    }
}

/// Scapy's view of our packet with this number.
fn assert_packet(packet: &Value, number: u64) {
    let found = counts(packet, ["seq", "ssid", "mbz", "length"]);
    assert_eq!(found, [number, 513, 0, 200], "{packet}");
    assert_eq!(packet["behind"], "", "{packet}");
    let extensions = packet["tlv_objects"].as_array().unwrap();
    let kinds: Vec<_> = extensions.iter().map(|it| it["type"].as_u64().unwrap()).collect();
    // Follow-up telemetry, timestamp information, class of service, padding.
    assert_eq!(kinds, [7, 3, 4, 1], "{packet}");
    assert!(extensions.iter().all(|it| it["flags"] == UNRECOGNISED), "{packet}");
    let bytes: u64 = extensions.iter().map(|it| 4 + it["len"].as_u64().unwrap()).sum();
    assert_eq!(44 + bytes, 200, "{packet}");
}
