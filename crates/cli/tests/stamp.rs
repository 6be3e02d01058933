//! `wirestamp stamp` and `wirestamp reflect` with each other, as people and scripts run them.

#[expect(dead_code, reason = "not every test file needs all of it")]
mod common;
#[expect(dead_code, reason = "not every test file needs all of it")]
mod reflecting;

use common::{is_root, stderr};
use reflecting::{Reflector, SECRET, counts, key_file, loopback, stamp, stamped};
use serde_json::Value;
use wirestamp_lab::{EGRESS, Impairments, Netns, PathLab, SINK_V4, SINK_V6, TAP_A};

const KEYS: &str = "to payload_bytes interval_ns poisson sent answered lost lost_there lost_back \
    lost_undecided late foreign forged not_stamp failed first_error round_trip_ns response_ns there \
    back owd_reason impossible_there impossible_back same_clock clock reflector_clock \
    reflector_counts sent_by_kernel returned_by_kernel dscp_there";

/// Everything came back and is known to the kernel, on a path with one clock.
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
fn packets_go_there_and_back_by_both_ip_versions() {
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
    // One more packet of each session has told when the last answer left.
    assert_eq!(counts(&document, ["reflected", "sessions", "stamped_late"]), [102, 2, 0]);
    assert_eq!(document["listening"][0], "[::]:862");
}

#[test]
fn only_those_with_the_key_are_answered() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let right = key_file(folder.path(), "right", SECRET);
    let wrong = key_file(folder.path(), "wrong", "another secret of some length");
    let namespace = loopback();
    let reflector = Reflector::start(&namespace, &["--key-file", &right]);
    let test = ["127.0.0.1", "-c", "20", "-i", "1ms", "--same-clock", "--timeout", "100ms"];
    let document = stamped(&namespace, &[&test[..], &["--key-file", &right]].concat());
    assert_whole(&document, 20);
    assert_eq!(document["returned_by_kernel"], 20, "{document}");
    for key in [&["--key-file", &wrong][..], &["--size", "200"]] {
        let output = stamp(&namespace, &[&test[..], key].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(counts(&document, ["sent", "answered", "lost_undecided"]), [20, 0, 20]);
    }
    let document = reflector.end();
    let found = counts(&document, ["reflected", "forged", "not_stamp", "sessions"]);
    assert_eq!(found, [21, 40, 0, 1], "{document}");
}

#[test]
fn answers_without_the_key_are_refused() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let key = key_file(folder.path(), "key", SECRET);
    let namespace = loopback();
    // Who has no key answers to anything, with no code that the sender would take.
    let reflector = Reflector::start(&namespace, &[]);
    let test = ["::1", "-c", "10", "-i", "1ms", "--timeout", "100ms", "--key-file", &key];
    let output = stamp(&namespace, &test);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts(&document, ["answered", "forged"]), [0, 10], "{document}");
    assert_eq!(counts(&reflector.end(), ["reflected"]), [10]);
}

#[test]
fn packets_are_as_they_are_asked_for() {
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
    // Nothing is asked of the reflector, so it tells nothing.
    assert_eq!((&light["returned_by_kernel"], &light["dscp_there"]), (&0.into(), &Value::Null));
}

#[test]
fn when_nothing_answers_it_fails_and_says_what_may_be_missing() {
    if !is_root() {
        return;
    }
    let namespace = loopback();
    let output = stamp(&namespace, &["127.0.0.1", "-c", "5", "-i", "1ms", "--timeout", "50ms"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is there a reflector at 127.0.0.1:862"), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts(&document, ["sent", "answered", "lost", "failed"]), [5, 0, 5, 0]);
}

/// Packets by a port and by the lowest four bits of their number.
struct Dropped {
    interface: &'static str,
    /// Where the port that is 862 stands in the header of UDP.
    port_at: usize,
    low_bits: u8,
}

/// Has the router drop what comes in: it goes to a cable whose other end is down, because the action
/// `drop` is missing from small kernels.
fn drop_in(router: &Netns, all: &[Dropped]) {
    let run = |line: &str| {
        let mut words = line.split_whitespace();
        let status = router.command(words.next().unwrap()).args(words).status().unwrap();
        assert!(status.success(), "{line}");
    };
    run("ip link add name away type veth peer name nowhere");
    run("ip link set away up");
    for &Dropped { interface, port_at, low_bits } in all {
        run(&format!("tc qdisc add dev {interface} clsact"));
        for (protocol, udp) in [("ip", 20), ("ipv6", 40)] {
            run(&format!(
                "tc filter add dev {interface} ingress protocol {protocol} prio {udp} u32 \
                 match u16 862 0xffff at {} match u8 {low_bits} 0x0f at {} \
                 action mirred egress redirect dev away",
                udp + port_at,
                udp + 8 + 3,
            ));
        }
    }
}

#[test]
fn losses_are_told_by_direction_as_a_router_dropped_them() {
    if !is_root() {
        return;
    }
    let lab = PathLab::new(&Impairments::bottleneck(1_000_000_000, 1_000_000)).unwrap();
    // Of 100 packets, 7, 23, 39, 55, 71 and 87 on the way there; of the 94 answers six on the way back.
    let there = Dropped { interface: TAP_A, port_at: 2, low_bits: 7 };
    let back = Dropped { interface: EGRESS, port_at: 0, low_bits: 3 };
    drop_in(lab.router(), &[there, back]);
    let _reflector = Reflector::start(lab.sink(), &[]);
    for host in [SINK_V4.to_string(), SINK_V6.to_string()] {
        let test = [&host, "-c", "100", "-i", "1ms", "--timeout", "100ms", "--same-clock"];
        let document = stamped(lab.source(), &test);
        let found = counts(&document, ["answered", "lost", "lost_there", "lost_back"]);
        assert_eq!(found, [88, 12, 6, 6], "{document}");
        assert_eq!(document["lost_undecided"], 0, "{document}");
    }
}

#[test]
fn a_full_queue_loses_on_the_way_there_what_the_bottleneck_dropped() {
    if !is_root() {
        return;
    }
    let lab = PathLab::new(&Impairments::bottleneck(2_000_000, 10_000)).unwrap();
    let _reflector = Reflector::start(lab.sink(), &[]);
    let host = SINK_V4.to_string();
    let test = [&host, "-c", "200", "-i", "1ms", "--size", "1000", "--timeout", "200ms"];
    let document = stamped(lab.source(), &[&test[..], &["--same-clock"]].concat());
    let [sent, answered, there, back, undecided] =
        counts(&document, ["sent", "answered", "lost_there", "lost_back", "lost_undecided"]);
    let truth = lab.bottleneck().unwrap();
    // Behind the last that were dropped, none may have come to tell.
    assert_eq!((there + undecided, back), (truth.dropped_packets, 0), "{document}");
    assert!(there > 50, "{document}");
    // The last packet asks when the last answer left.
    assert_eq!((sent, answered + 1), (200, truth.sent_packets), "{document}");
    // Ten packets of a thousand bytes wait for 40 ms.
    let greatest = document["there"]["owd_ns"]["max"].as_i64().unwrap();
    assert!((20_000_000..60_000_000).contains(&greatest), "{document}");
}
