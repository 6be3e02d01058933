//! Capture losses are separated from network losses.

mod common;
mod event;

use Point::{A, B};
use common::{outcomes, seen_in};
use event::Event;
use proptest::prelude::*;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation, Outcome, Point, UndeterminedReason};

const MANY: usize = 10_000;

fn at(millis: i64) -> Time<Utc> {
    Time::from_nanos(0) + Span::from_millis(millis)
}

fn missed(point: Point, from: i64, until: i64, packets: u64) -> (Point, Event) {
    (point, Event::Missed(CaptureLoss { from: at(from), until: at(until), packets }))
}

/// Packets observed at a point: (identity, milliseconds).
fn seen(point: Point, packets: &[(u64, i64)]) -> Vec<(Point, Event)> {
    packets.iter().map(|(id, ms)| (point, Event::Seen(seen_in(0, *id, *ms)))).collect()
}

/// Packets lost or unexpected, and packets undetermined because of the capture.
fn assigned(events: Vec<(Point, Event)>) -> (Vec<u64>, Vec<u64>) {
    let (mut network, mut capture) = (Vec::new(), Vec::new());
    for outcome in outcomes(MANY, events) {
        match outcome {
            Outcome::Lost { sent: seen, .. } | Outcome::Unexpected { received: seen } => {
                network.push(seen.id.0);
            }
            Outcome::Undetermined { observation, reason: UndeterminedReason::Missed, .. } => {
                capture.push(observation.id.0);
            }
            _ => {}
        }
    }
    network.sort_unstable();
    capture.sort_unstable();
    (network, capture)
}

#[test]
fn capture_loss_at_b_is_not_lost() {
    let sent = seen(A, &[(1, 0), (2, 10), (3, 20), (4, 30), (5, 40), (6, 50), (7, 60)]);
    let before = seen(B, &[(1, 5), (3, 25)]);
    let after = seen(B, &[(5, 46), (7, 65)]);
    // The network lost 2 and 6, B's capture 4.
    let events = [sent, before, vec![missed(B, 25, 46, 1)], after].concat();
    assert_eq!(assigned(events), (vec![2, 6], vec![4]));
}

#[test]
fn undetermined_packets_are_limited_to_the_capture_loss() {
    let sent = seen(A, &[(1, 0), (2, 10), (3, 20), (4, 30), (5, 40)]);
    let events =
        [sent, seen(B, &[(1, 5)]), vec![missed(B, 5, 45, 2)], seen(B, &[(5, 45)])].concat();
    assert_eq!(assigned(events), (vec![4], vec![2, 3]));
}

#[test]
fn capture_loss_at_a_is_not_unexpected() {
    let before = seen(A, &[(1, 0), (2, 10)]);
    let after = seen(A, &[(5, 40), (6, 50)]);
    let received = seen(B, &[(1, 5), (2, 15), (3, 25), (4, 35), (5, 45), (9, 52), (6, 55)]);
    let events = [before, vec![missed(A, 10, 40, 2)], after, received].concat();
    assert_eq!(assigned(events), (vec![9], vec![3, 4]));
}

#[test]
fn old_capture_loss_has_no_effect() {
    let sent = seen(A, &[(1, 0), (2, 1102), (3, 1110), (4, 5000)]);
    let received = seen(B, &[(1, 5), (3, 1115), (4, 5005)]);
    let with_loss = |until| [sent.clone(), vec![missed(B, 0, until, 9)], received.clone()].concat();
    assert_eq!(assigned(with_loss(1001)), (vec![2], vec![]));
    assert_eq!(assigned(with_loss(1002)), (vec![], vec![2]));
}

#[test]
fn capture_loss_may_be_reported_late() {
    let sent = seen(A, &[(1, 0), (2, 10), (3, 20), (4, 30)]);
    let received = seen(B, &[(1, 5), (3, 25), (4, 35)]);
    let events = [sent, received, vec![missed(B, 5, 25, 1)]].concat();
    assert_eq!(assigned(events), (vec![], vec![2]));
}

#[test]
fn total_capture_loss_covers_all_packets() {
    let sent: Vec<_> = (1..100).zip((0..).step_by(10)).collect();
    let events = [seen(A, &sent), vec![missed(B, 0, 2000, 99)]].concat();
    assert_eq!(assigned(events), (vec![], (1..100).collect()));
}

#[test]
fn consecutive_intervals_cover_their_packets() {
    let received: Vec<_> = (1..61).zip((0..).step_by(10)).collect();
    let intervals =
        (0..6).map(|nth| missed(A, 100 * nth, 100 * nth + 95, 10 - u64::from(nth == 0)));
    let events = [
        seen(A, &[(1, 0)]),
        intervals.collect(),
        seen(A, &[(99, 700)]),
        seen(B, &received),
        seen(B, &[(99, 700)]),
    ];
    assert_eq!(assigned(events.concat()), (vec![], (2..61).collect()));
}

/// Path of a packet: the pause before it leaves, its delay, and where it is lost.
#[derive(Clone, Copy, Debug)]
struct PacketPath {
    pause: i64,
    delay: i64,
    by_network: bool,
    by_capture: bool,
}

fn paths(delays: std::ops::Range<i64>) -> impl Strategy<Value = Vec<PacketPath>> {
    let path = (0i64..20, delays, prop::bool::weighted(0.15), prop::bool::weighted(0.2)).prop_map(
        |(pause, delay, by_network, by_capture)| PacketPath {
            pause,
            delay,
            by_network,
            by_capture,
        },
    );
    prop::collection::vec(path, 0..200)
}

/// Observations at both points, and the losses reported by B's capture.
fn measured(paths: &[PacketPath], keep_order: bool) -> Vec<(Point, Event)> {
    let (mut now, mut latest) = (0, 0);
    let mut sent: Vec<(Point, Event)> = Vec::new();
    let mut arrivals: Vec<(i64, bool, Observation)> = Vec::new();
    for (id, path) in (0u64..).zip(paths) {
        now += path.pause;
        sent.push((A, Event::Seen(seen_in(u16::from(id % 3 == 0), id, now))));
        if !path.by_network {
            let arrival = now + path.delay;
            latest = arrival.max(if keep_order { latest + 1 } else { arrival });
            let arrival = if keep_order { latest } else { arrival };
            let seen = seen_in(u16::from(id % 3 == 0), id, arrival);
            arrivals.push((arrival, path.by_capture, seen));
        }
    }
    arrivals.sort_by_key(|(arrival, ..)| *arrival);
    let mut events = sent;
    let (mut from, mut packets) = (0, 0);
    for (arrival, by_capture, seen) in arrivals {
        if by_capture {
            packets += 1;
            continue;
        }
        if packets > 0 {
            events.push(missed(B, from, arrival, packets));
        }
        events.push((B, Event::Seen(seen)));
        (from, packets) = (arrival, 0);
    }
    if packets > 0 {
        events.push(missed(B, from, i64::from(u32::MAX), packets));
    }
    events
}

fn count(paths: &[PacketPath], is: impl Fn(&PacketPath) -> bool) -> usize {
    paths.iter().filter(|path| is(path)).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn network_loss_is_counted_exactly_on_any_path(
        paths in paths(1..200), keep_order in any::<bool>(),
    ) {
        let (network, capture) = assigned(measured(&paths, keep_order));
        prop_assert_eq!(network.len(), count(&paths, |path| path.by_network));
        prop_assert_eq!(capture.len(), count(&paths, |path| path.by_capture && !path.by_network));
    }

    #[test]
    fn intervals_have_their_own_packets_without_reordering(paths in paths(1..200)) {
        let (network, _) = assigned(measured(&paths, true));
        // Losses without a capture loss between the same neighbours are unambiguous.
        let mut lost_there = Vec::new();
        let mut ambiguous = false;
        let mut certain = Vec::new();
        for (id, path) in (0u64..).zip(&paths) {
            match (path.by_network, path.by_capture) {
                (true, _) => lost_there.push(id),
                (false, true) => ambiguous = true,
                (false, false) => {
                    certain.extend(lost_there.drain(..).filter(|_| !ambiguous));
                    lost_there.clear();
                    ambiguous = false;
                }
            }
        }
        prop_assert!(certain.iter().all(|id| network.contains(id)), "{certain:?} in {network:?}");
    }
}
