//! STAMP with stamp-suite 0.8, in both roles.
//!
//! Its relevant differences from the RFCs:
//! - Its follow-up telemetry (RFC 8972 section 4.7) contains the program's time after the send call. On a
//!   loopback interface the answer has arrived by then, so that delays back are negative. It is also sent in
//!   the stateless mode, where the RFC has none.
//! - Its class of service (RFC 8972 section 4.4) has two bits for congestion between the two code points,
//!   where the RFC has none: the code point that it received is misread by two bits. Later versions have
//!   the RFC's layout.
//! - Its reflector bypasses the runtime when it reads, so that the runtime keeps polling: it uses one full CPU
//!   from its first packet on, and ignores SIGINT. It is killed here.

use std::process::Command;

use crate::common::{is_root, stderr};
use crate::stamp::lossy_path::{LOST_BACK, LOST_THERE, lossy_path};
use crate::stamp::{Reflector, SECRET, counts, key_file, loopback, stamped};
use serde_json::Value;
use wirestamp_lab::{Netns, SINK_V4};

/// Where `tools/setup-peers` installs it.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/bin/stamp-suite");
const EXTENSIONS: [&str; 5] =
    ["--cos", "--dscp", "46", "--timestamp-info", "--follow-up-telemetry"];

fn suite(namespace: &Netns, arguments: &[&str]) -> Command {
    let mut command = namespace.command(PROGRAM);
    command.args(arguments).env("RUST_LOG", "warn");
    command
}

/// Output of its sender in a test of ten packets: a line for each answer, and the summary.
fn sends(namespace: &Netns, host: &str, arguments: &[&str]) -> (Vec<String>, Value) {
    let test = ["-S", host, "-o", "0", "-r", host, "-c", "10", "-d", "2", "-R"];
    let arguments = [&test[..], &["--output-format", "json", "-L", "2"], arguments].concat();
    let output = suite(namespace, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let message = String::from_utf8(output.stdout).unwrap();
    let lines = message.lines().map(str::to_owned).partition(|line| line.starts_with("seq="));
    let (answers, rest): (Vec<_>, Vec<_>) = lines;
    let summary = rest.iter().find(|line| line.starts_with('{')).expect("a summary");
    (answers, serde_json::from_str(summary).unwrap())
}

fn assert_all_came(summary: &Value) {
    let found = counts(summary, ["packets_sent", "packets_received", "packets_lost"]);
    assert_eq!(found, [10, 10, 0], "{summary}");
}

#[test]
fn suite_sender_accepts_our_answers() {
    if !is_root() {
        return;
    }
    let namespace = loopback();
    let reflector = Reflector::start(&namespace, &[]);
    for host in ["127.0.0.1", "::1"] {
        for plain in [&["--ssid", "7"][..], &["-K", "PTP"]] {
            let (answers, summary) = sends(&namespace, host, plain);
            assert_all_came(&summary);
            assert!(answers.iter().all(|line| line.contains(" ttl=64 ")), "{answers:?}");
        }
        let (answers, summary) = sends(&namespace, host, &EXTENSIONS);
        assert_all_came(&summary);
        // The program would list unknown or malformed extensions.
        assert!(answers.iter().all(|line| line.ends_with("tlv=[3 TLVs]")), "{answers:?}");
        let (answers, _) = sends(&namespace, host, &["--location", "--direct-measurement"]);
        assert!(answers.iter().all(|line| line.ends_with("tlv=[2 TLVs, 2U]")), "{answers:?}");
    }
    assert_eq!(counts(&reflector.end(), ["reflected", "not_stamp", "sessions"]), [80, 0, 8]);
}

#[test]
fn suite_sender_authenticates_with_our_reflector() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let key = key_file(folder.path(), "key", SECRET);
    let wrong = key_file(folder.path(), "wrong", "another secret of some length");
    let namespace = loopback();
    let reflector = Reflector::start(&namespace, &["--key-file", &key]);
    for host in ["127.0.0.1", "::1"] {
        let keyed = ["-A", "A", "--hmac-key-file", &key];
        let (_, summary) = sends(&namespace, host, &keyed);
        assert_all_came(&summary);
        let (answers, summary) = sends(&namespace, host, &[&keyed[..], &EXTENSIONS].concat());
        assert_all_came(&summary);
        assert!(answers.iter().all(|line| line.ends_with("HMAC:ok]")), "{answers:?}");
    }
    let (_, summary) = sends(&namespace, "127.0.0.1", &["-A", "A", "--hmac-key-file", &wrong]);
    assert_eq!(counts(&summary, ["packets_received"]), [0]);
    assert_eq!(counts(&reflector.end(), ["reflected", "forged"]), [40, 10]);
}

/// Its reflector with these arguments, at port 862.
fn reflects(namespace: &Netns, host: &str, arguments: &[&str]) -> Reflector {
    let arguments = [&["-i", "-S", host], arguments].concat();
    Reflector::foreign(suite(namespace, &arguments), "STAMP Reflector listening on")
}

/// Our sender's result, with everything answered.
fn sent_to(namespace: &Netns, host: &str, arguments: &[&str]) -> Value {
    let test = ["-c", "40", "-i", "2ms", "--size", "300", "--same-clock", "--dscp", "46"];
    let document = stamped(namespace, &[&[host][..], &test, arguments].concat());
    assert_eq!(counts(&document, ["sent", "answered"]), [40; 2], "{document}");
    let none = ["lost", "late", "foreign", "forged", "not_stamp", "impossible_there"];
    assert_eq!(counts(&document, none), [0; 6], "{document}");
    // 46 with two bits before it and without its last two.
    assert_eq!(document["dscp_there"], 46 >> 2, "{document}");
    // The send time of each answer is in the next one, and that of the last in the answer that ends the test.
    assert_eq!(counts(&document, ["returned_by_kernel"]), [40], "{document}");
    document
}

#[test]
fn our_sender_accepts_suite_answers() {
    if !is_root() {
        return;
    }
    for host in ["127.0.0.1", "::1"] {
        for mode in [&[][..], &["--stateful-reflector", "--strict-packets"], &["-K", "PTP"]] {
            let namespace = loopback();
            let _reflector = reflects(&namespace, host, mode);
            sent_to(&namespace, host, &["--session", "9"]);
        }
    }
}

#[test]
fn our_sender_authenticates_with_suite_reflector() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let key = key_file(folder.path(), "key", SECRET);
    let keyed = ["-A", "A", "--verify-tlv-hmac", "--hmac-key-file", &key];
    for host in ["127.0.0.1", "::1"] {
        for more in [&[][..], &["--stateful-reflector"]] {
            let namespace = loopback();
            let _reflector = reflects(&namespace, host, &[&keyed, more].concat());
            sent_to(&namespace, host, &["--key-file", &key]);
        }
    }
}

#[test]
fn loss_direction_needs_a_counting_reflector() {
    if !is_root() {
        return;
    }
    let host = SINK_V4.to_string();
    let test = [&host, "-c", "100", "-i", "1ms", "--timeout", "500ms", "--same-clock"];
    let lab = lossy_path();
    let counting = reflects(lab.sink(), &host, &["--stateful-reflector"]);
    let document = stamped(lab.source(), &test);
    let found = counts(&document, ["answered", "lost_there", "lost_back", "lost_undecided"]);
    assert_eq!(found, [88, LOST_THERE, LOST_BACK, 0], "{document}");
    drop(counting);

    // The answers have the numbers of the packets, of which 3, 19, 35, 51, 67, 83 and 99 are lost.
    let _copying = reflects(lab.sink(), &host, &[]);
    let document = stamped(lab.source(), &test);
    assert_eq!(counts(&document, ["answered", "lost", "lost_undecided"]), [87, 13, 13]);
    assert_eq!((&document["lost_there"], &document["lost_back"]), (&Value::Null, &Value::Null));
}
