//! Outcomes of packets with a known path.

mod chain;
#[path = "../common/mod.rs"]
mod common;

use Point::{A, B};
use common::{ERROR_NS, config, outcomes, seen_in};
use wirestamp_clock::{Domain, Span, Timeline};
use wirestamp_metrics::{Correlator, Observation, Outcome, Point, UndeterminedReason};

const MANY: usize = 100;

fn seen(id: u64, millis: i64) -> Observation {
    seen_in(0, id, millis)
}

/// Short form of an outcome: its name, the packet and, for matches, the delay in milliseconds.
fn brief(outcome: &Outcome) -> String {
    let name = |name: &str, id: u64| format!("{name} {id}");
    match outcome {
        Outcome::Matched { sent, delay, reordered, .. } => format!(
            "{} {} after {}",
            if *reordered { "reordered" } else { "matched" },
            sent.id.0,
            delay.as_nanos() / 1_000_000
        ),
        Outcome::Lost { sent, .. } => name("lost", sent.id.0),
        Outcome::Duplicated { sent, .. } => name("duplicated", sent.id.0),
        Outcome::Unexpected { received } => name("unexpected", received.id.0),
        Outcome::Identical { sent } => name("identical", sent.id.0),
        Outcome::Undetermined { point, observation, .. } => {
            format!("undetermined at {point:?} {}", observation.id.0)
        }
    }
}

fn briefs(outcomes: &[Outcome]) -> Vec<String> {
    outcomes.iter().map(brief).collect()
}

/// Packets observed at a point: (identity, milliseconds).
fn at(point: Point, packets: &[(u64, i64)]) -> Vec<(Point, Observation)> {
    packets.iter().map(|(id, millis)| (point, seen(*id, *millis))).collect()
}

/// Outcomes for all of A, then all of B; and in reverse order. Both must be equal except for the order.
fn outcomes_of(sent: &[(u64, i64)], received: &[(u64, i64)]) -> Vec<String> {
    let (sent, received) = (at(A, sent), at(B, received));
    let run = |first: &[_], second: &[_]| {
        let mut outcomes_of = briefs(&outcomes(MANY, first.iter().chain(second).copied()));
        outcomes_of.sort();
        outcomes_of
    };
    let outcomes_of = run(&sent, &received);
    assert_eq!(outcomes_of, run(&received, &sent), "the order of the calls must not matter");
    outcomes_of
}

#[test]
fn packets_that_arrive_in_order_are_matched() {
    assert_eq!(
        outcomes_of(&[(1, 0), (2, 10)], &[(1, 5), (2, 17)]),
        ["matched 1 after 5", "matched 2 after 7"]
    );
}

#[test]
fn a_packet_that_never_arrives_is_lost() {
    assert_eq!(outcomes_of(&[(1, 0), (2, 10)], &[(2, 15)]), ["lost 1", "matched 2 after 5"]);
}

#[test]
fn packet_after_the_timeout_is_lost_and_unexpected() {
    let outcomes_of = outcomes_of(&[(1, 0), (2, 10)], &[(2, 1010), (1, 1011)]);
    assert_eq!(outcomes_of, ["lost 1", "matched 2 after 1000", "unexpected 1"]);
}

#[test]
fn packet_exactly_at_the_timeout_is_matched() {
    let outcomes_of = outcomes_of(&[(1, 0), (2, 0), (3, 2000)], &[(2, 1000), (1, 1000), (3, 2005)]);
    assert_eq!(
        outcomes_of,
        ["matched 2 after 1000", "matched 3 after 5", "reordered 1 after 1000"]
    );
}

#[test]
fn a_packet_seen_at_b_only_is_unexpected() {
    assert_eq!(outcomes_of(&[(1, 0)], &[(7, 3), (1, 5)]), ["matched 1 after 5", "unexpected 7"]);
}

#[test]
fn duplicate_is_not_reordered() {
    let outcomes_of = outcomes_of(&[(1, 0), (2, 10)], &[(1, 5), (2, 15), (1, 16), (1, 17)]);
    let expected = ["duplicated 1", "duplicated 1", "matched 1 after 5", "matched 2 after 5"];
    assert_eq!(outcomes_of, expected);
}

#[test]
fn a_packet_overtaken_in_its_flow_is_reordered() {
    let outcomes_of = outcomes_of(&[(1, 0), (2, 10), (3, 20)], &[(2, 25), (1, 26), (3, 27)]);
    assert_eq!(outcomes_of, ["matched 2 after 15", "matched 3 after 7", "reordered 1 after 26"]);
}

#[test]
fn a_loss_is_no_reordering() {
    let outcomes_of = outcomes_of(&[(1, 0), (2, 10), (3, 20)], &[(3, 25)]);
    assert_eq!(outcomes_of, ["lost 1", "lost 2", "matched 3 after 5"]);
}

#[test]
fn a_packet_of_another_flow_does_not_overtake() {
    let outcomes = outcomes(
        MANY,
        [
            (A, seen_in(0, 1, 0)),
            (A, seen_in(1, 2, 1)),
            (B, seen_in(1, 2, 5)),
            (B, seen_in(0, 1, 6)),
        ],
    );
    assert_eq!(briefs(&outcomes), ["matched 2 after 4", "matched 1 after 6"]);
}

#[test]
fn a_delay_may_be_negative_up_to_the_skew() {
    let outcomes_of = outcomes_of(&[(1, 200), (2, 210)], &[(1, 100), (2, 109)]);
    assert_eq!(outcomes_of, ["lost 2", "matched 1 after -100", "unexpected 2"]);
}

#[test]
fn identical_packets_match_in_order_of_departure() {
    let outcomes_of = outcomes_of(&[(1, 0), (1, 10), (1, 20)], &[(1, 5), (1, 16), (1, 27)]);
    assert_eq!(
        outcomes_of,
        [
            "identical 1",
            "identical 1",
            "matched 1 after 5",
            "matched 1 after 6",
            "matched 1 after 7"
        ]
    );
}

#[test]
fn packets_apart_by_the_timeout_are_not_identical() {
    let outcomes_of = outcomes_of(&[(1, 0), (1, 1001)], &[(1, 1006)]);
    assert_eq!(outcomes_of, ["lost 1", "matched 1 after 5"]);
}

/// Outcomes reported at each of these observations: (point, identity, milliseconds).
fn reported(observations: &[(Point, u64, i64)]) -> Vec<Vec<String>> {
    let mut correlator = Correlator::new(config(MANY));
    let mut observe = |&(point, id, millis): &(Point, u64, i64)| {
        let mut outcomes = Vec::new();
        correlator.observe(point, seen(id, millis), &mut |outcome| outcomes.push(outcome));
        briefs(&outcomes)
    };
    observations.iter().map(&mut observe).collect()
}

#[test]
fn observation_at_b_waits_for_a() {
    let reported = reported(&[(A, 2, 10), (B, 1, 5), (B, 2, 15), (A, 3, 105), (A, 4, 106)]);
    let expected: [&[&str]; 5] = [&[], &[], &[], &[], &["unexpected 1", "matched 2 after 5"]];
    assert_eq!(reported, expected);
}

#[test]
fn loss_is_reported_when_both_points_passed_it() {
    let reported = reported(&[(A, 1, 0), (A, 2, 1000), (B, 2, 1001), (A, 3, 1001)]);
    let expected: [&[&str]; 4] = [&[], &[], &["matched 2 after 1"], &["lost 1"]];
    assert_eq!(reported, expected);
}

#[test]
fn a_duplicate_after_the_time_out_is_unexpected() {
    let outcomes_of = outcomes_of(&[(1, 0)], &[(1, 5), (1, 1001)]);
    assert_eq!(outcomes_of, ["matched 1 after 5", "unexpected 1"]);
}

/// Outcomes of packets 1 to 1000, a millisecond apart, with too little memory to observe all at `first` before any at
/// the other point.
fn in_little_memory(first: Point) -> Vec<Outcome> {
    let sent: Vec<_> = (1..=1000).zip(0..).collect();
    let received: Vec<_> = (1..=1000).zip(5..).collect();
    let (sent, received) = (at(A, &sent), at(B, &received));
    let (one, other) = if first == A { (sent, received) } else { (received, sent) };
    outcomes(40, one.into_iter().chain(other))
}

/// Packets undetermined at a point.
fn undetermined(outcomes: &[Outcome], at: Point) -> Vec<u64> {
    let id = |outcome: &Outcome| match outcome {
        Outcome::Undetermined {
            point, observation, reason: UndeterminedReason::Memory, ..
        } if *point == at => Some(observation.id.0),
        _ => None,
    };
    outcomes.iter().filter_map(id).collect()
}

#[test]
fn oldest_packets_are_undetermined_without_memory() {
    for first in [A, B] {
        let outcomes = in_little_memory(first);
        let evicted = undetermined(&outcomes, first);
        let count = u64::try_from(evicted.len()).expect("at most a thousand");
        assert!((500..1000).contains(&count), "{count}");
        assert_eq!(evicted, (1..=count).collect::<Vec<_>>(), "the oldest packets first");
        let other = if first == A { B } else { A };
        assert_eq!(
            undetermined(&outcomes, other),
            evicted,
            "their counterparts are undetermined too"
        );
        let matched = outcomes.iter().filter(|it| matches!(it, Outcome::Matched { .. })).count();
        assert_eq!(matched + evicted.len(), 1000);
    }
}

#[test]
fn each_pair_of_neighbours_has_one_delay_variation() {
    // Delays 5, 8, lost, 20, 6; the last overtakes the one before it.
    let sent = [(1, 0), (2, 10), (3, 20), (4, 30), (5, 40)];
    let received = [(1, 5), (2, 18), (5, 46), (4, 50)];
    let outcomes = outcomes(MANY, [at(A, &sent), at(B, &received)].concat());
    let variations: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Matched { sent, since_previous, until_next, .. } => {
                let millis = |span: &Option<Span>| span.map(|span| span.as_nanos() / 1_000_000);
                Some((sent.id.0, millis(since_previous), millis(until_next)))
            }
            _ => None,
        })
        .collect();
    let expected = [(1, None, None), (2, Some(3), None), (5, None, None), (4, None, Some(-14))];
    assert_eq!(variations, expected);
}

#[test]
fn flow_slower_than_the_timeout_has_delay_variation() {
    let sent = [(1, 0), (2, 5000), (3, 10_000)];
    let received = [(1, 5), (2, 5007), (3, 10_004)];
    let merged = sent
        .iter()
        .zip(&received)
        .flat_map(|(sent, received)| [at(A, &[*sent])[0], at(B, &[*received])[0]]);
    let variations: Vec<_> = outcomes(MANY, merged)
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Matched { since_previous, .. } => *since_previous,
            _ => None,
        })
        .collect();
    assert_eq!(variations, [Span::from_millis(2), Span::from_millis(-3)]);
}

/// Delay and error of one packet whose system clock was stepped while it was in flight, with stamps of this domain and
/// a difference clock of nanoseconds.
fn delay_across_a_step(domain: Domain) -> (Span, Span) {
    let (mut sent, mut received) = (seen(1, 0), seen(1, 5));
    (sent.stamp.raw.domain, received.stamp.raw.domain) = (domain, domain);
    received.stamp.utc = received.stamp.utc + Span::from_millis(300);
    let mut correlator = Correlator::new(config(MANY));
    correlator.set_difference_clock(Timeline::realtime().difference());
    let mut found = None;
    let mut sink = |outcome| {
        if let Outcome::Matched { delay, error, .. } = outcome {
            found = Some((delay, error));
        }
    };
    correlator.observe(A, sent, &mut sink);
    correlator.observe(B, received, &mut sink);
    found.expect("a match")
}

#[test]
fn difference_clock_replaces_utc() {
    let clock = Timeline::realtime().difference();
    let delay = Span::from_millis(5);
    assert_eq!(delay_across_a_step(Domain::Realtime), (delay, clock.error(delay)));
}

#[test]
fn stamps_of_another_domain_are_compared_in_utc_with_its_slewing() {
    let slewed = 305_000_000 / 2_000;
    let expected = (Span::from_millis(305), Span::from_nanos(2 * ERROR_NS + slewed));
    assert_eq!(delay_across_a_step(Domain::Monotonic), expected);
}
