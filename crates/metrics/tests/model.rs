//! The correlator against a model that looks at the whole of both streams at once.

mod common;

use Point::{A, B};
use common::{ERROR_NS, SKEW_MS, TIMEOUT_MS, outcomes, seen_in};
use proptest::prelude::*;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Observation, Outcome, Point};

const MANY: usize = 10_000;

/// What was seen at both points, each in its order.
#[derive(Clone, Debug)]
struct Streams {
    sent: Vec<Observation>,
    received: Vec<Observation>,
}

/// The place of each observation: the latest stamp up to it.
fn places(stream: &[Observation]) -> Vec<Time<Utc>> {
    let latest = |latest: &mut Time<Utc>, observation: &Observation| {
        *latest = observation.stamp.utc.max(*latest);
        Some(*latest)
    };
    stream.iter().scan(Time::from_nanos(i64::MIN), latest).collect()
}

/// For each observation at B, the packet at A that it is matched to; and where there is none, the
/// packet that it is a duplicate of.
fn pair_up(streams: &Streams) -> Vec<(Option<usize>, Option<usize>)> {
    let departures = places(&streams.sent);
    let arrivals = places(&streams.received);
    let mut arrival_of = vec![None; departures.len()];
    let mut pairs = Vec::new();
    for (arrival, received) in streams.received.iter().enumerate() {
        let earliest = arrivals[arrival] - Span::from_millis(TIMEOUT_MS);
        let latest = arrivals[arrival] + Span::from_millis(SKEW_MS);
        let candidates: Vec<usize> = (0..departures.len())
            .filter(|departure| streams.sent[*departure].id == received.id)
            .filter(|departure| (earliest..=latest).contains(&departures[*departure]))
            .collect();
        let open = candidates.iter().copied().find(|candidate| arrival_of[*candidate].is_none());
        if let Some(open) = open {
            arrival_of[open] = Some(arrival);
            pairs.push((Some(open), None));
        } else {
            pairs.push((None, candidates.last().copied()));
        }
    }
    pairs
}

/// The outcomes by definition, in any order.
fn model(streams: &Streams) -> Vec<Outcome> {
    let Streams { sent, received } = streams;
    let pairs = pair_up(streams);
    let departures = places(sent);
    let arrival_of = |departure| pairs.iter().position(|pair| pair.0 == Some(departure));
    let delay = |departure: usize| {
        arrival_of(departure).map(|arrival| received[arrival].stamp.utc - sent[departure].stamp.utc)
    };
    let in_flow = |departure: usize, other: &usize| sent[*other].flow == sent[departure].flow;
    let sequence =
        |departure: usize| (0..departure).filter(|other| in_flow(departure, other)).count() as u64;
    let mut outcomes = Vec::new();
    for (arrival, pair) in pairs.iter().enumerate() {
        outcomes.push(match *pair {
            (Some(departure), _) => {
                let previous = (0..departure).rev().find(|other| in_flow(departure, other));
                let next = (departure + 1..sent.len()).find(|other| in_flow(departure, other));
                let already = |other: &usize| arrival_of(*other).is_some_and(|at| at < arrival);
                let delay_of = |other: Option<usize>| other.filter(already).and_then(delay);
                let own = received[arrival].stamp.utc - sent[departure].stamp.utc;
                Outcome::Matched {
                    sent: sent[departure],
                    received: received[arrival],
                    sequence: sequence(departure),
                    delay: own,
                    error: Span::from_nanos(2 * ERROR_NS),
                    reordered: (departure + 1..sent.len())
                        .any(|other| in_flow(departure, &other) && already(&other)),
                    since_previous: delay_of(previous).map(|previous| own - previous),
                    until_next: delay_of(next).map(|next| next - own),
                }
            }
            (None, Some(original)) => {
                Outcome::Duplicated { sent: sent[original], received: received[arrival] }
            }
            (None, None) => Outcome::Unexpected { received: received[arrival] },
        });
    }
    for departure in 0..sent.len() {
        if arrival_of(departure).is_none() {
            outcomes.push(Outcome::Lost { sent: sent[departure], sequence: sequence(departure) });
        }
        let since = departures[departure] - Span::from_millis(TIMEOUT_MS);
        let twin = |other: &usize| sent[*other].id == sent[departure].id;
        if (0..departure).any(|other| twin(&other) && departures[other] >= since) {
            outcomes.push(Outcome::Identical { sent: sent[departure] });
        }
    }
    outcomes
}

fn sorted(outcomes: &[Outcome]) -> Vec<String> {
    let mut lines: Vec<_> = outcomes.iter().map(|outcome| format!("{outcome:?}")).collect();
    lines.sort();
    lines
}

/// A packet: what it is, the pause before it leaves, how far its stamp is off, and the delay of
/// each of its copies. All times in milliseconds.
fn packet(identities: u64) -> impl Strategy<Value = (u64, i64, i64, Vec<i64>)> {
    let delays = prop_oneof![8 => 1i64..60, 2 => -150i64..1500];
    let copies = prop::collection::vec(delays, 0..3);
    (0..identities, prop_oneof![8 => 0i64..40, 1 => 0i64..1500], 0i64..20, copies)
}

/// Packets that are dropped, copied, delayed into one another and mixed with strangers. If
/// `distinct`, no two packets have the same identity.
fn streams(distinct: bool) -> impl Strategy<Value = Streams> {
    let packets = prop::collection::vec(packet(8), 0..60);
    let strangers = prop::collection::vec((100u64..104, 0i64..3000), 0..4);
    (packets, strangers).prop_map(move |(packets, strangers)| {
        let mut now = 5000;
        let mut sent = Vec::new();
        let mut arrivals: Vec<_> = strangers
            .iter()
            .map(|(id, time)| (5000 + time, seen_in(0, *id, 5000 + time)))
            .collect();
        for (number, (id, pause, stamp_off, delays)) in (1000..).zip(packets) {
            let id = if distinct { number } else { id };
            let flow = if id % 2 == 0 { 0 } else { 1 };
            now += pause;
            sent.push(seen_in(flow, id, now - stamp_off));
            for delay in delays {
                // What was stamped late was captured in the order of arrival all the same.
                arrivals.push((now + delay, seen_in(flow, id, now + delay - stamp_off)));
            }
        }
        arrivals.sort_by_key(|(arrival, _)| *arrival);
        Streams { sent, received: arrivals.into_iter().map(|(_, received)| received).collect() }
    })
}

/// Both streams in one, A's next observation wherever `choice` says so.
fn interleave(streams: &Streams, choice: &[bool]) -> Vec<(Point, Observation)> {
    let mut sent = streams.sent.iter().map(|sent| (A, *sent));
    let mut received = streams.received.iter().map(|received| (B, *received));
    let mut merged = Vec::new();
    for from_a in choice {
        merged.extend(if *from_a { sent.next() } else { received.next() });
    }
    merged.extend(sent);
    merged.extend(received);
    merged
}

fn interleaving() -> impl Strategy<Value = Vec<bool>> {
    (0.0..1.0f64, 0usize..200).prop_flat_map(|(from_a, length)| {
        prop::collection::vec(prop::bool::weighted(from_a), length)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_interleaving_gives_what_the_definition_says(
        streams in streams(false),
        choice in interleaving(),
    ) {
        let found = outcomes(MANY, interleave(&streams, &choice));
        prop_assert_eq!(sorted(&found), sorted(&model(&streams)));
    }

    #[test]
    fn beyond_the_capacity_nothing_is_said_that_is_not_so(
        streams in streams(true),
        choice in interleaving(),
        capacity in 0usize..8,
    ) {
        let truth = model(&streams);
        let found = outcomes(capacity, interleave(&streams, &choice));
        let (mut sent, mut received) = (0, 0);
        for outcome in &found {
            match outcome {
                Outcome::Lost { .. } => {
                    sent += 1;
                    prop_assert!(truth.contains(outcome), "{:?}", outcome);
                }
                Outcome::Unexpected { .. } | Outcome::Duplicated { .. } => {
                    received += 1;
                    prop_assert!(truth.contains(outcome), "{:?}", outcome);
                }
                Outcome::Matched { .. } => {
                    sent += 1;
                    received += 1;
                }
                Outcome::GivenUp { point: A, .. } => sent += 1,
                Outcome::GivenUp { point: B, .. } => received += 1,
                Outcome::Identical { .. } => {}
            }
        }
        prop_assert_eq!((sent, received), (streams.sent.len(), streams.received.len()));
    }
}
