//! Metrics of outcomes and stamps.

mod common;

use Point::{A, B};
use common::{ERROR_NS, flow, outcomes, seen_in};
use wirestamp_clock::{Domain, Span, Timeline};
use wirestamp_metrics::emodel::Codec;
use wirestamp_metrics::{
    ClockError, Counts, FlowTable, InterArrival, Observation, Outcome, Point, Quality,
    UndeterminedReason,
};

const MANY: usize = 100;

/// Two flows. In the first, packet 1 arrives twice, 2 is lost, 3 and 4 are reordered, 9 is unexpected; in the second,
/// all packets arrive.
fn two_flows() -> Vec<(Point, Observation)> {
    let sent = [(0, 1, 0), (0, 2, 10), (1, 6, 15), (0, 3, 20), (0, 4, 30), (1, 7, 35)];
    let received =
        [(0, 1, 5), (0, 1, 6), (0, 9, 7), (1, 6, 16), (0, 4, 38), (0, 3, 39), (1, 7, 40)];
    let at = |point, packets: &[(u16, u64, i64)]| -> Vec<_> {
        packets.iter().map(|(flow, id, millis)| (point, seen_in(*flow, *id, *millis))).collect()
    };
    [at(A, &sent), at(B, &received)].concat()
}

/// Quality of a flow in the table.
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
    assert_eq!(table.others.counts().sent, 2);
}

#[test]
fn delay_variation_stays_within_a_flow() {
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
fn quality_has_the_keys_of_the_contract() {
    let json = serde_json::to_value(table(MANY).total()).expect("a quality can be serialised");
    for (key, value) in
        [("sent", 6), ("received", 7), ("matched", 5), ("lost", 1), ("duplicated", 1)]
    {
        assert_eq!(json[key], value, "{key}");
    }
    assert_eq!((&json["reordered"], &json["clock_error_ns"]), (&1.into(), &140.into()));
    assert_eq!((&json["owd_ns"]["count"], &json["ipdv_ns"]["count"]), (&5.into(), &2.into()));
    for key in ["pdv_ns", "reordering", "loss_pattern", "gap_a_ns", "gap_b_ns", "duplication"] {
        assert!(json[key].is_object(), "{key}");
    }
    assert_eq!((&json["pdv_ns"]["min"], &json["sent_bytes"]), (&0.into(), &600.into()));
    assert_eq!(json["duplication"]["replicated_rate"], 0.2);
    assert_eq!(json["reordering"]["n_reordered"][0], 1);
    let empty = serde_json::to_value(Quality::new()).expect("a quality can be serialised");
    assert!(empty["clock_error_ns"].is_null() && empty["owd_ns"]["p50"].is_null());
}

#[test]
fn inter_arrival_times_are_differences_of_neighbours() {
    let mut recorder = InterArrival::default();
    recorder.set_difference_clock(Timeline::realtime().difference());
    for millis in [0, 20, 41, 60] {
        let mut stamp = seen_in(0, 1, millis).stamp;
        stamp.raw.domain = Domain::Realtime;
        // The system clock drifts; the raw values do not.
        stamp.utc = stamp.utc + Span::from_millis(millis * 1000);
        recorder.record(stamp);
    }
    let times = recorder.distribution.summary().expect("three times");
    assert_eq!((times.count, times.min, times.max), (3, 19_000_000, 21_000_000));
    assert!((times.mean - 20e6).abs() < 1e-6, "{}", times.mean);
}

#[test]
fn sequence_metrics_follow_the_packet_order() {
    let table = table(MANY);
    let first = of_flow(&table, 0).expect("the flow is in the table");
    let metrics = first.sequence_metrics().expect("one flow");
    // 1, 4, 3 arrived; 2 was lost.
    let reordering = &metrics.reordering;
    assert_eq!((reordering.ratio(), reordering.extents.max), (Some(1.0 / 3.0), 1));
    assert_eq!(reordering.late_times.summary().expect("a late packet").max, 1_000_000);
    let losses = metrics.loss_pattern();
    assert_eq!((losses.lost, losses.periods, losses.loss_ratio()), (1, 1, Some(0.25)));
    assert_eq!(metrics.train.at_a.count(), 0, "no two neighbours stayed neighbours");
    let second = of_flow(&table, 1).expect("the flow is in the table");
    let train = &second.sequence_metrics().expect("one flow").train;
    let gap = |gaps: &wirestamp_metrics::Distribution| gaps.summary().map(|gaps| gaps.max);
    assert_eq!((gap(&train.at_a), gap(&train.at_b)), (Some(20_000_000), Some(24_000_000)));
    let slots = metrics.series.slots();
    assert_eq!(slots.map(|(_, slot)| slot.matched + slot.lost).sum::<u64>(), 4);
}

#[test]
fn late_losses_have_their_correct_position() {
    // Of ten packets 2, 5, 7, 9 and 10 are lost, as in RFC 3357 section 5.4.3.
    let sent = (1..=10).map(|id| (A, seen_in(0, id, 10 * id.cast_signed())));
    let arrive = [1, 3, 4, 6, 8].map(|id: u64| (B, seen_in(0, id, 10 * id.cast_signed() + 5)));
    let mut quality = Quality::of_flow();
    for outcome in outcomes(MANY, sent.chain(arrive)) {
        quality.record(&outcome);
    }
    let losses = quality.sequence_metrics().expect("one flow").loss_pattern();
    assert_eq!((losses.lost, losses.periods, losses.burst_ratio()), (5, 4, Some(0.625)));
    let distances = losses.distances.summary().expect("losses");
    assert_eq!((distances.count, distances.mean), (4, 2.0));
}

#[test]
fn undetermined_packets_leave_no_gap_between_losses() {
    let observation = |id: u64| seen_in(0, id, 0);
    let lost = |id| Outcome::Lost { sent: observation(id), sequence: id };
    let undetermined = |id| Outcome::Undetermined {
        point: A,
        observation: observation(id),
        sequence: Some(id),
        reason: UndeterminedReason::Missed,
    };
    let mut quality = Quality::of_flow();
    // The capture loss becomes known late.
    for outcome in [lost(0), lost(3), lost(4), undetermined(1), lost(2)] {
        quality.record(&outcome);
    }
    let losses = quality.sequence_metrics().expect("one flow").loss_pattern();
    assert_eq!((losses.lost, losses.periods, losses.period_lengths().max), (4, 1, 4));
}

#[test]
fn total_combines_all_flows() {
    let all = table(MANY).total();
    let metrics = all.sequence_metrics().expect("flows in the table");
    assert_eq!((metrics.reordering.counts.reordered, metrics.loss_pattern().lost), (1, 1));
    assert_eq!(metrics.loss_pattern().loss_ratio(), Some(1.0 / 6.0));
    assert_eq!(metrics.train.at_b.count(), 1);
    // Counts and delays are complete where flows were counted together; their sequence metrics are unknown.
    let some = table(1).total();
    assert_eq!(some.counts(), all.counts());
    assert_eq!(some.delay().summary().map(|delay| delay.max), Some(19_000_000));
    assert_eq!(some.sequence_metrics().expect("a flow").loss_pattern().loss_ratio(), Some(0.25));
}

#[test]
fn flow_is_rated_as_a_call() {
    let rating = |number| {
        let quality = of_flow(&table(MANY), number).expect("the flow is in the table");
        quality.as_call(&Codec::G711.into()).expect("it arrived")
    };
    assert!(rating(1).r_factor() > 90.0);
    assert!(rating(0).r_factor() < 60.0, "a packet of four is lost");
    assert!(Quality::of_flow().as_call(&Codec::G711.into()).is_none());
    assert!(table(0).total().as_call(&Codec::G711.into()).is_none());
}

#[test]
fn call_is_rated_per_interval() {
    // Intervals of 1.024 s: all arrive, every fourth is lost, none is sent, all arrive.
    let sent = (0..200_i64).filter(|number| !(100..150).contains(number));
    let packets = sent.flat_map(|number| {
        let (id, at) = (number.unsigned_abs(), number * 1024 / 50);
        let lost = (50..100).contains(&number) && number % 4 == 0;
        let arrival = (!lost).then(|| (B, seen_in(0, id, at + 5)));
        [Some((A, seen_in(0, id, at))), arrival].into_iter().flatten()
    });
    let mut table = FlowTable::new(MANY);
    outcomes(1000, packets.collect::<Vec<_>>()).iter().for_each(|it| table.record(it));
    let quality = of_flow(&table, 0).expect("the flow is in the table");
    let over_time = quality.as_call_over_time(&Codec::G711.into()).expect("packets arrived");
    assert_eq!(over_time.interval, Span::from_millis(1024));
    // 24 % of loss cost 95 · 24 / (24 + 4.3) on the scale of R.
    let impaired: Vec<_> =
        over_time.intervals.iter().map(|it| it.map(|call| call.equipment.round())).collect();
    assert_eq!(impaired, [Some(0.0), Some(81.0), None, Some(0.0)]);
    assert!(Quality::of_flow().as_call_over_time(&Codec::G711.into()).is_none());
}
