//! `wirestamp stamp` with `wirestamp reflect`.

use crate::common::{is_root, stderr};
use crate::schema;
use crate::stamp::lossy_path::{LOST_BACK, LOST_THERE, lossy_path};
use crate::stamp::{Reflector, SECRET, counts, key_file, loopback, stamp, stamped};
use serde_json::Value;
use wirestamp_lab::{Impairments, PathLab, SINK_V4, SINK_V6};

const KEYS: &str = "to payload_bytes interval_ns poisson sent answered lost lost_there lost_back \
    lost_undecided late foreign forged not_stamp failed first_error answers_dropped round_trip_ns response_ns \
    there back owd_reason impossible_there impossible_back same_clock clock reflector_clock \
    reflector_counts sent_by_kernel returned_by_kernel dscp_there";

/// Checks that every packet was answered and stamped by the kernel, on a path with one clock.
fn assert_whole(document: &Value, packets: u64) {
    let all = ["sent", "answered", "sent_by_kernel"];
    assert_eq!(counts(document, all), [packets; 3], "{document}");
    let none = ["lost", "late", "foreign", "forged", "not_stamp", "failed"];
    assert_eq!(counts(document, none), [0; 6], "{document}");
    assert_eq!(counts(document, ["impossible_there", "impossible_back"]), [0; 2], "{document}");
    for way in ["there", "back"] {
        let delay = &document[way]["owd_ns"];
        assert_eq!(delay["count"], packets, "{document}");
        assert!(delay["min"].as_i64().unwrap() >= 0, "{document}");
    }
}

#[test]
fn packets_return_over_ipv4_and_ipv6() {
    if !is_root() {
        return;
    }
    let namespace = loopback();
    let reflector = Reflector::start(&namespace, &[]);
    for host in ["127.0.0.1", "[::1]:862"] {
        let document =
            stamped(&namespace, &[host, "-c", "50", "-i", "1ms", "--same-clock", "--session", "7"]);
        for key in KEYS.split_whitespace() {
            assert!(document.get(key).is_some(), "{key}: {document}");
        }
        assert_whole(&document, 50);
        assert_eq!(document["returned_by_kernel"], 50, "{document}");
        assert_eq!(document["reflector_counts"], true, "{document}");
        assert_eq!(document["round_trip_ns"]["count"], 50, "{document}");
    }
    let document = reflector.end();
    // One more packet of each session has reported the send time of the last answer.
    assert_eq!(counts(&document, ["reflected", "sessions", "stamped_late"]), [102, 2, 0]);
    assert_eq!(document["listening"], serde_json::json!(["0.0.0.0:862", "[::]:862"]));
}

#[test]
fn only_packets_with_the_key_are_answered() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let right = key_file(folder.path(), "right", SECRET);
    let wrong = key_file(folder.path(), "wrong", "another secret of some length");
    let namespace = loopback();
    let reflector = Reflector::start(&namespace, &["--key-file", &right]);
    let test = ["127.0.0.1", "-c", "20", "-i", "1ms", "--same-clock"];
    let document = stamped(&namespace, &[&test[..], &["--key-file", &right]].concat());
    assert_whole(&document, 20);
    assert_eq!(document["returned_by_kernel"], 20, "{document}");
    for key in [&["--key-file", &wrong][..], &["--size", "200"]] {
        let output = stamp(&namespace, &[&test[..], key].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let document = schema::document("stamp", &output.stdout);
        assert_eq!(counts(&document, ["sent", "answered", "lost_undecided"]), [20, 0, 20]);
    }
    let document = reflector.end();
    let found = counts(&document, ["reflected", "forged", "not_stamp", "sessions"]);
    assert_eq!(found, [21, 40, 0, 1], "{document}");
}

#[test]
fn session_above_the_max_rate_is_not_answered() {
    if !is_root() {
        return;
    }
    let namespace = loopback();
    let reflector = Reflector::start(&namespace, &["--max-rate", "50"]);
    // Only a burst of a second is answered, and then 50 a second.
    let test = ["127.0.0.1", "-i", "1ms", "--light"];
    let document = stamped(&namespace, &[&test[..], &["-c", "500"]].concat());
    let [answered] = counts(&document, ["answered"]);
    assert!((50..400).contains(&answered), "{document}");
    // The next session has a rate of its own.
    let next = stamped(&namespace, &[&test[..], &["-c", "40"]].concat());
    assert_eq!(counts(&next, ["answered"]), [40], "{next}");
    let document = reflector.end();
    let found = counts(&document, ["reflected", "limited", "sessions", "dropped"]);
    assert_eq!(found, [answered + 40, 500 - answered, 2, 0], "{document}");
}

#[test]
fn answers_without_the_key_are_rejected() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let key = key_file(folder.path(), "key", SECRET);
    let namespace = loopback();
    // A reflector without a key answers every packet, but without a code that the sender accepts.
    let reflector = Reflector::start(&namespace, &[]);
    let test = ["::1", "-c", "10", "-i", "1ms", "--key-file", &key];
    let output = stamp(&namespace, &test);
    assert_eq!(output.status.code(), Some(1));
    let document = schema::document("stamp", &output.stdout);
    assert_eq!(counts(&document, ["answered", "forged"]), [0, 10], "{document}");
    assert_eq!(counts(&reflector.end(), ["reflected"]), [10]);
}

#[test]
fn packets_have_the_requested_properties() {
    if !is_root() {
        return;
    }
    let namespace = loopback();
    let _reflector = Reflector::start(&namespace, &[]);
    let test = ["127.0.0.1", "-c", "30", "-i", "1ms", "--same-clock"];
    let with = |more: &[&str]| {
        let document = stamped(&namespace, &[&test[..], more].concat());
        assert_whole(&document, 30);
        document
    };
    let poisson = with(&["--poisson"]);
    assert_eq!((&poisson["poisson"], &poisson["interval_ns"]), (&true.into(), &1_000_000.into()));
    assert_eq!(with(&["--size", "1400"])["payload_bytes"], 1400);
    assert_eq!(with(&["--dscp", "46"])["dscp_there"], 46);
    let light = with(&["--light", "--size", "100"]);
    // No extensions are requested, so the reflector sends none.
    assert_eq!((&light["returned_by_kernel"], &light["dscp_there"]), (&0.into(), &Value::Null));
}

#[test]
fn missing_reflector_fails_with_a_next_step() {
    if !is_root() {
        return;
    }
    let namespace = loopback();
    let output = stamp(&namespace, &["127.0.0.1", "-c", "5", "-i", "1ms", "--timeout", "50ms"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("start `wirestamp reflect` at 127.0.0.1:862"), "{output:?}");
    let document = schema::document("stamp", &output.stdout);
    assert_eq!(counts(&document, ["sent", "answered", "lost", "failed"]), [5, 0, 5, 0]);
}

#[test]
fn losses_have_the_routers_direction() {
    if !is_root() {
        return;
    }
    let lab = lossy_path();
    let _reflector = Reflector::start(lab.sink(), &[]);
    for host in [SINK_V4.to_string(), SINK_V6.to_string()] {
        let test = [&host, "-c", "100", "-i", "1ms", "--timeout", "500ms", "--same-clock"];
        let document = stamped(lab.source(), &test);
        let found = counts(&document, ["answered", "lost", "lost_there", "lost_back"]);
        assert_eq!(found, [88, 12, LOST_THERE, LOST_BACK], "{document}");
        assert_eq!(document["lost_undecided"], 0, "{document}");
    }
}

#[test]
fn queue_drops_are_losses_there() {
    if !is_root() {
        return;
    }
    let lab = PathLab::new(&Impairments::bottleneck(2_000_000, 10_000)).unwrap();
    let _reflector = Reflector::start(lab.sink(), &[]);
    let host = SINK_V4.to_string();
    let test = [&host, "-c", "200", "-i", "1ms", "--size", "1000", "--timeout", "500ms"];
    let document = stamped(lab.source(), &[&test[..], &["--same-clock"]].concat());
    let [sent, answered, there, back, undecided] =
        counts(&document, ["sent", "answered", "lost_there", "lost_back", "lost_undecided"]);
    let truth = lab.bottleneck().unwrap();
    // If no packet after the last dropped ones was answered, their loss direction is undetermined.
    assert_eq!((there + undecided, back), (truth.dropped_packets, 0), "{document}");
    assert!(there > 10, "{document}");
    // One more packet requests the send time of the last answer.
    assert_eq!((sent, answered + 1), (200, truth.sent_packets), "{document}");
    // Nine packets of a thousand bytes wait for more than 36 ms.
    let greatest = document["there"]["owd_ns"]["max"].as_i64().unwrap();
    assert!(greatest > 30_000_000, "{document}");
}
