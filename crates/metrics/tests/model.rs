//! The correlator compared to a model of both complete streams.

mod common;
mod event;

use Point::{A, B};
use common::{ERROR_NS, SKEW_MS, TIMEOUT_MS, outcomes, seen_in};
use event::Event;
use proptest::prelude::*;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation, Outcome, Point, UndeterminedReason};

const MANY: usize = 10_000;
const TIMEOUT: Span = Span::from_millis(TIMEOUT_MS);
const SKEW: Span = Span::from_millis(SKEW_MS);

/// Observations of both points, each in its order.
#[derive(Clone, Debug)]
struct Streams {
    sent: Vec<Observation>,
    received: Vec<Observation>,
    /// Capture losses at A and at B, each with the number of observations before it.
    missed: [Vec<(usize, CaptureLoss)>; 2],
}

/// The place of each observation: the latest stamp up to it.
fn places(stream: &[Observation]) -> Vec<Time<Utc>> {
    let latest = |latest: &mut Time<Utc>, observation: &Observation| {
        *latest = observation.stamp.utc.max(*latest);
        Some(*latest)
    };
    stream.iter().scan(Time::from_nanos(i64::MIN), latest).collect()
}

/// For each observation at B, the packet at A that it matches; if there is none, the packet that it duplicates.
fn pair_up(streams: &Streams) -> Vec<(Option<usize>, Option<usize>)> {
    let departures = places(&streams.sent);
    let arrivals = places(&streams.received);
    let mut arrival_of = vec![None; departures.len()];
    let mut pairs = Vec::new();
    for (arrival, received) in streams.received.iter().enumerate() {
        let earliest = arrivals[arrival] - TIMEOUT;
        let latest = arrivals[arrival] + SKEW;
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

/// Loss intervals in effect at a point with observations at these places; each with the earliest time of its packets.
fn loss_intervals(
    missed: &[(usize, CaptureLoss)],
    places: &[Time<Utc>],
) -> Vec<(Time<Utc>, CaptureLoss)> {
    let (mut open, mut until) = (Time::from_nanos(i64::MIN), Time::from_nanos(i64::MIN));
    let hold = |(before, missed): &(usize, CaptureLoss)| {
        let delivered = before.checked_sub(1).map_or(open, |last| places[last]);
        open = missed.from.max(delivered).max(open);
        until = missed.until.max(open).max(until);
        (open, CaptureLoss { until, ..*missed })
    };
    missed.iter().filter(|(_, missed)| missed.packets > 0).map(hold).collect()
}

/// Packets of a point that the intervals at the other point account for. Each packet has its place here and, if
/// observed there, its place there; packets are up to `before` earlier at the other point, and up to `after` later.
fn accounted_for(
    packets: &[(Time<Utc>, Option<Time<Utc>>)],
    loss_intervals: &[(Time<Utc>, CaptureLoss)],
    (before, after): (Span, Span),
) -> Vec<bool> {
    let mut accounted_for = vec![false; packets.len()];
    for (open, interval) in loss_intervals {
        let mut nearest = Vec::new();
        for (number, &(here, there)) in packets.iter().enumerate() {
            let possible = here - before <= interval.until && here + after >= *open;
            if there.is_some() || accounted_for[number] || !possible {
                continue;
            }
            let latest = packets[..number].iter().filter_map(|(_, there)| *there).max();
            let mut neighbours = packets[number..].iter().filter_map(|(_, there)| *there);
            let next = neighbours.find(|there| latest.is_none_or(|latest| *there > latest));
            let place = latest.unwrap_or(here);
            let is_ahead = place < interval.from && next.is_some_and(|next| next <= interval.from);
            nearest.push(if is_ahead {
                (interval.from - place, 0, place, number)
            } else {
                ((place - interval.until).max(Span::ZERO), 1, place, number)
            });
        }
        nearest.sort();
        let packets = usize::try_from(interval.packets).expect("a few");
        nearest.iter().take(packets).for_each(|(.., number)| accounted_for[*number] = true);
    }
    accounted_for
}

/// The outcomes by definition, in any order.
fn model(streams: &Streams) -> Vec<Outcome> {
    let Streams { sent, received, missed } = streams;
    let pairs = pair_up(streams);
    let departures = places(sent);
    let arrivals = places(received);
    let arrival_of = |departure| pairs.iter().position(|pair| pair.0 == Some(departure));
    let delay = |departure: usize| {
        arrival_of(departure).map(|arrival| received[arrival].stamp.utc - sent[departure].stamp.utc)
    };
    let in_flow = |departure: usize, other: &usize| sent[*other].flow == sent[departure].flow;
    let sequence =
        |departure: usize| (0..departure).filter(|other| in_flow(departure, other)).count() as u64;
    let missed_at_b: Vec<_> = (0..sent.len())
        .map(|departure| (departures[departure], arrival_of(departure).map(|at| arrivals[at])))
        .collect();
    let missed_at_b =
        accounted_for(&missed_at_b, &loss_intervals(&missed[1], &arrivals), (SKEW, TIMEOUT));
    // A duplicate needs no loss interval, and has no place at A.
    let missed_at_a: Vec<_> = (0..received.len())
        .filter(|arrival| pairs[*arrival].0.is_some() || pairs[*arrival].1.is_none())
        .map(|arrival| (arrival, (arrivals[arrival], pairs[arrival].0.map(|at| departures[at]))))
        .collect();
    let (numbers, packets): (Vec<usize>, Vec<_>) = missed_at_a.into_iter().unzip();
    let missed_at_a =
        accounted_for(&packets, &loss_intervals(&missed[0], &departures), (TIMEOUT, SKEW));
    let missed_at_a =
        |arrival| numbers.iter().zip(&missed_at_a).any(|(at, missed)| *at == arrival && *missed);
    let undetermined = |point, observation, sequence| Outcome::Undetermined {
        point,
        observation,
        sequence,
        reason: UndeterminedReason::Missed,
    };

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
            (None, None) if missed_at_a(arrival) => undetermined(B, received[arrival], None),
            (None, None) => Outcome::Unexpected { received: received[arrival] },
        });
    }
    for departure in 0..sent.len() {
        let sequence = sequence(departure);
        if missed_at_b[departure] {
            outcomes.push(undetermined(A, sent[departure], Some(sequence)));
        } else if arrival_of(departure).is_none() {
            outcomes.push(Outcome::Lost { sent: sent[departure], sequence });
        }
        let since = departures[departure] - TIMEOUT;
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

/// A packet: identity, pause before it leaves, stamp offset, and the delay of each of its copies. All times in
/// milliseconds.
fn packet(identities: u64) -> impl Strategy<Value = (u64, i64, i64, Vec<i64>)> {
    let delays = prop_oneof![8 => 1i64..60, 2 => -150i64..1500];
    let copies = prop::collection::vec(delays, 0..3);
    (0..identities, prop_oneof![8 => 0i64..40, 1 => 0i64..1500], 0i64..20, copies)
}

/// Packets that are dropped, duplicated, reordered and mixed with unexpected ones. If `distinct`, all identities
/// differ.
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
                // A late stamp does not change the order of capture.
                arrivals.push((now + delay, seen_in(flow, id, now + delay - stamp_off)));
            }
        }
        arrivals.sort_by_key(|(arrival, _)| *arrival);
        let received = arrivals.into_iter().map(|(_, received)| received).collect();
        Streams { sent, received, missed: [Vec::new(), Vec::new()] }
    })
}

/// Streams with capture losses, before the observations with these numbers and in intervals that need not lie between
/// their neighbours.
fn with_missed(streams: impl Strategy<Value = Streams>) -> impl Strategy<Value = Streams> {
    let interval = (0usize..60, 0i64..3000, 0i64..50, prop_oneof![4 => 0u64..4, 1 => 50u64..60]);
    let missed = || prop::collection::vec(interval.clone(), 0..5);
    (streams, [missed(), missed()]).prop_map(|(streams, missed)| {
        let lengths = [streams.sent.len(), streams.received.len()];
        let of_point = |(missed, length): (Vec<_>, usize)| {
            let mut missed: Vec<_> = missed
                .into_iter()
                .map(|(before, from, length_ms, packets)| {
                    let from = Time::from_nanos(0) + Span::from_millis(5000 + from);
                    let until = from + Span::from_millis(length_ms);
                    (usize::min(before, length), CaptureLoss { from, until, packets })
                })
                .collect();
            missed.sort_by_key(|(before, missed)| (*before, missed.from));
            missed
        };
        let [a, b] = missed;
        let missed = [(a, lengths[0]), (b, lengths[1])].map(of_point);
        Streams { missed, ..streams }
    })
}

/// Both streams merged; `choice` selects the point of the next event.
fn interleave(streams: &Streams, choice: &[bool]) -> Vec<(Point, Event)> {
    let events = |point, seen: &[Observation], missed: &[(usize, CaptureLoss)]| {
        let mut events = Vec::new();
        for number in 0..=seen.len() {
            let here = missed.iter().filter(|(before, _)| *before == number);
            events.extend(here.map(|(_, missed)| (point, Event::Missed(*missed))));
            events.extend(seen.get(number).map(|seen| (point, Event::Seen(*seen))));
        }
        events.into_iter()
    };
    let mut sent = events(A, &streams.sent, &streams.missed[0]);
    let mut received = events(B, &streams.received, &streams.missed[1]);
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
    fn any_interleaving_matches_the_model(
        streams in with_missed(streams(false)),
        choice in interleaving(),
    ) {
        let found = outcomes(MANY, interleave(&streams, &choice));
        prop_assert_eq!(sorted(&found), sorted(&model(&streams)));
    }

    #[test]
    fn outcomes_are_correct_without_enough_memory(
        streams in streams(true),
        choice in interleaving(),
        packets in 0usize..5,
    ) {
        let truth = model(&streams);
        let found = outcomes(packets, interleave(&streams, &choice));
        let (mut sent, mut received) = (0, 0);
        for outcome in &found {
            match outcome {
                Outcome::Lost { sent: lost, .. } => {
                    sent += 1;
                    // A removed flow skips sequence numbers.
                    let so = |it: &Outcome| matches!(it, Outcome::Lost { sent, .. } if sent == lost);
                    prop_assert!(truth.iter().any(so), "{:?}", outcome);
                }
                Outcome::Unexpected { .. } | Outcome::Duplicated { .. } => {
                    received += 1;
                    prop_assert!(truth.contains(outcome), "{:?}", outcome);
                }
                Outcome::Matched { .. } => {
                    sent += 1;
                    received += 1;
                }
                Outcome::Undetermined { point: A, .. } => sent += 1,
                Outcome::Undetermined { point: B, .. } => received += 1,
                Outcome::Identical { .. } => {}
            }
        }
        prop_assert_eq!((sent, received), (streams.sent.len(), streams.received.len()));
    }
}
