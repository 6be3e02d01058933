//! What the recorders make of outcomes and stamps.

mod common;

use Point::{A, B};
use common::{ERROR_NS, flow, outcomes, seen_in};
use wirestamp_clock::{Domain, Span, Timeline};
use wirestamp_metrics::{ClockError, Counts, FlowTable, InterArrival, Observation, Point, Quality};

const MANY: usize = 100;

/// Two flows: in the first, packet 1 arrives twice, 2 is lost, 3 and 4 change places, 9 comes from
/// nowhere; in the second, all is well.
fn two_flows() -> Vec<(Point, Observation)> {
    let sent = [(0, 1, 0), (0, 2, 10), (1, 6, 15), (0, 3, 20), (0, 4, 30), (1, 7, 35)];
    let received =
        [(0, 1, 5), (0, 1, 6), (0, 9, 7), (1, 6, 16), (0, 4, 38), (0, 3, 39), (1, 7, 40)];
    let at = |point, packets: &[(u16, u64, i64)]| -> Vec<_> {
        packets.iter().map(|(flow, id, millis)| (point, seen_in(*flow, *id, *millis))).collect()
    };
    [at(A, &sent), at(B, &received)].concat()
}

/// The quality of a flow in the table.
fn of_flow(table: &FlowTable, number: u16) -> Option<Quality> {
    let mut flows = table.flows().into_iter();
    flows.find(|(key, _)| *key == flow(number)).map(|(_, quality)| quality.clone())
}

fn table(limit: usize) -> FlowTable {
    let mut table = FlowTable::new(limit);
    for outcome in outcomes(MANY, two_flows()) {
        table.record(&outcome);
    }
    table
}

#[test]
fn the_counts_are_those_of_the_flow() {
    let table = table(MANY);
    let first = Counts {
        sent: 4,
        received: 5,
        matched: 3,
        lost: 1,
        duplicated: 1,
        reordered: 1,
        unexpected: 1,
        ..Counts::default()
    };
    let second = Counts { sent: 2, received: 2, matched: 2, ..Counts::default() };
    let counts = |number| of_flow(&table, number).map(|quality| *quality.counts());
    assert_eq!((counts(0), counts(1)), (Some(first), Some(second)));
    let total = *table.total().counts();
    assert_eq!((total.sent, total.received, total.matched, total.reordered), (6, 7, 5, 1));
    let keys: Vec<_> = table.flows().iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [flow(0), flow(1)]);
}

#[test]
fn flows_beyond_the_limit_are_counted_together() {
    // The first outcome is of the first flow.
    let table = table(1);
    let keys: Vec<_> = table.flows().iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [flow(0)]);
    assert_eq!(table.others().counts().sent, 2);
}

#[test]
fn delays_and_their_variation_are_taken_within_the_flow() {
    let table = table(MANY);
    let millis = |nanos: i64| nanos / 1_000_000;
    let first = of_flow(&table, 0).expect("the flow is in the table");
    let delay = first.delay().summary().expect("delays");
    assert_eq!((delay.count, millis(delay.min), millis(delay.max)), (3, 5, 19));
    // Only packets 3 and 4 are neighbours that both arrived: 8 ms after 19 ms.
    let variation = first.variation().summary().expect("a variation");
    assert_eq!((variation.count, millis(variation.min)), (1, -11));
    assert_eq!(table.total().variation().count(), 2);
}

#[test]
fn the_clock_error_is_that_of_the_delays() {
    let error = ClockError { mean: 140.0, max: Span::from_nanos(2 * ERROR_NS) };
    assert_eq!(table(MANY).total().clock_error(), Some(error));
    assert_eq!(Quality::new().clock_error(), None);
}

#[test]
fn throughput_counts_the_bits_after_the_first_packet() {
    // Flow 1: packets of 100 bytes at 16 ms and 40 ms.
    let table = table(MANY);
    let throughput =
        of_flow(&table, 1).and_then(|quality| quality.throughput()).expect("two packets");
    assert!((throughput - 800.0 / 0.024).abs() < 1e-6, "{throughput}");
    assert_eq!(Quality::new().throughput(), None);
}

#[test]
fn a_quality_is_serialised_with_the_keys_of_the_contract() {
    let json = serde_json::to_value(table(MANY).total()).expect("a quality can be serialised");
    for (key, value) in
        [("sent", 6), ("received", 7), ("matched", 5), ("lost", 1), ("duplicated", 1)]
    {
        assert_eq!(json[key], value, "{key}");
    }
    assert_eq!((&json["reordered"], &json["clock_error_ns"]), (&1.into(), &140.into()));
    assert_eq!((&json["owd_ns"]["count"], &json["ipdv_ns"]["count"]), (&5.into(), &2.into()));
    let empty = serde_json::to_value(Quality::new()).expect("a quality can be serialised");
    assert!(empty["clock_error_ns"].is_null() && empty["owd_ns"]["p50"].is_null());
}

#[test]
fn inter_arrival_times_are_differences_of_neighbours() {
    let mut recorder = InterArrival::new();
    recorder.set_difference_clock(Timeline::realtime().difference());
    for millis in [0, 20, 41, 60] {
        let mut stamp = seen_in(0, 1, millis).stamp;
        stamp.raw.domain = Domain::Realtime;
        // The system clock runs away; the raw values do not.
        stamp.utc = stamp.utc + Span::from_millis(millis * 1000);
        recorder.record(stamp);
    }
    let times = recorder.distribution().summary().expect("three times");
    assert_eq!((times.count, times.min, times.max), (3, 19_000_000, 21_000_000));
    assert!((times.mean - 20e6).abs() < 1e-6, "{}", times.mean);
}
