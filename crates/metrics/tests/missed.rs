//! What the captures lost is kept apart from what the network lost.

mod common;
mod said;

use Point::{A, B};
use common::{outcomes, seen_in};
use proptest::prelude::*;
use said::Said;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation, Outcome, Point, UndeterminedReason};

const MANY: usize = 10_000;

fn at(millis: i64) -> Time<Utc> {
    Time::from_nanos(0) + Span::from_millis(millis)
}

fn missed(point: Point, from: i64, until: i64, packets: u64) -> (Point, Said) {
    (point, Said::Missed(CaptureLoss { from: at(from), until: at(until), packets }))
}

/// Packets seen at a point: (identity, milliseconds).
fn seen(point: Point, packets: &[(u64, i64)]) -> Vec<(Point, Said)> {
    packets.iter().map(|(id, ms)| (point, Said::Seen(seen_in(0, *id, *ms)))).collect()
}

/// The packets that are lost or unexpected, and those given up because of the capture.
fn blamed(said: Vec<(Point, Said)>) -> (Vec<u64>, Vec<u64>) {
    let (mut network, mut capture) = (Vec::new(), Vec::new());
    for outcome in outcomes(MANY, said) {
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
fn what_b_missed_between_two_packets_is_not_lost_and_what_is_elsewhere_is() {
    let sent = seen(A, &[(1, 0), (2, 10), (3, 20), (4, 30), (5, 40), (6, 50), (7, 60)]);
    let before = seen(B, &[(1, 5), (3, 25)]);
    let after = seen(B, &[(5, 46), (7, 65)]);
    // The network lost 2 and 6, B's capture 4.
    let said = [sent, before, vec![missed(B, 25, 46, 1)], after].concat();
    assert_eq!(blamed(said), (vec![2, 6], vec![4]));
}

#[test]
fn no_more_packets_are_given_up_than_the_capture_lost() {
    let sent = seen(A, &[(1, 0), (2, 10), (3, 20), (4, 30), (5, 40)]);
    let said = [sent, seen(B, &[(1, 5)]), vec![missed(B, 5, 45, 2)], seen(B, &[(5, 45)])].concat();
    assert_eq!(blamed(said), (vec![4], vec![2, 3]));
}

#[test]
fn what_a_missed_is_not_unexpected() {
    let before = seen(A, &[(1, 0), (2, 10)]);
    let after = seen(A, &[(5, 40), (6, 50)]);
    let received = seen(B, &[(1, 5), (2, 15), (3, 25), (4, 35), (5, 45), (9, 52), (6, 55)]);
    let said = [before, vec![missed(A, 10, 40, 2)], after, received].concat();
    assert_eq!(blamed(said), (vec![9], vec![3, 4]));
}

#[test]
fn a_capture_that_lost_packets_long_before_accounts_for_nothing() {
    let sent = seen(A, &[(1, 0), (2, 1102), (3, 1110), (4, 5000)]);
    let received = seen(B, &[(1, 5), (3, 1115), (4, 5005)]);
    let stretch = |until| [sent.clone(), vec![missed(B, 0, until, 9)], received.clone()].concat();
    assert_eq!(blamed(stretch(1001)), (vec![2], vec![]));
    assert_eq!(blamed(stretch(1002)), (vec![], vec![2]));
}

#[test]
fn a_stretch_told_of_after_the_packet_behind_it_counts_all_the_same() {
    let sent = seen(A, &[(1, 0), (2, 10), (3, 20), (4, 30)]);
    let received = seen(B, &[(1, 5), (3, 25), (4, 35)]);
    let said = [sent, received, vec![missed(B, 5, 25, 1)]].concat();
    assert_eq!(blamed(said), (vec![], vec![2]));
}

#[test]
fn a_capture_that_loses_everything_accounts_for_everything() {
    let sent: Vec<_> = (1..100).zip((0..).step_by(10)).collect();
    let said = [seen(A, &sent), vec![missed(B, 0, 2000, 99)]].concat();
    assert_eq!(blamed(said), (vec![], (1..100).collect()));
}

#[test]
fn stretches_that_follow_each_other_account_for_what_passed_in_each() {
    let received: Vec<_> = (1..61).zip((0..).step_by(10)).collect();
    let stretches =
        (0..6).map(|nth| missed(A, 100 * nth, 100 * nth + 95, 10 - u64::from(nth == 0)));
    let said = [
        seen(A, &[(1, 0)]),
        stretches.collect(),
        seen(A, &[(99, 700)]),
        seen(B, &received),
        seen(B, &[(99, 700)]),
    ];
    assert_eq!(blamed(said.concat()), (vec![], (2..61).collect()));
}

/// What happens to a packet: the pause before it leaves, its delay, and who loses it, if anyone.
#[derive(Clone, Copy, Debug)]
struct Fate {
    pause: i64,
    delay: i64,
    by_network: bool,
    by_capture: bool,
}

fn fates(delays: std::ops::Range<i64>) -> impl Strategy<Value = Vec<Fate>> {
    let fate = (0i64..20, delays, prop::bool::weighted(0.15), prop::bool::weighted(0.2)).prop_map(
        |(pause, delay, by_network, by_capture)| Fate { pause, delay, by_network, by_capture },
    );
    prop::collection::vec(fate, 0..200)
}

/// The observations at both points, and the stretches that B's capture tells of.
fn measured(fates: &[Fate], keep_order: bool) -> Vec<(Point, Said)> {
    let (mut now, mut latest) = (0, 0);
    let mut sent: Vec<(Point, Said)> = Vec::new();
    let mut arrivals: Vec<(i64, bool, Observation)> = Vec::new();
    for (id, fate) in (0u64..).zip(fates) {
        now += fate.pause;
        sent.push((A, Said::Seen(seen_in(u16::from(id % 3 == 0), id, now))));
        if !fate.by_network {
            let arrival = now + fate.delay;
            latest = arrival.max(if keep_order { latest + 1 } else { arrival });
            let arrival = if keep_order { latest } else { arrival };
            let seen = seen_in(u16::from(id % 3 == 0), id, arrival);
            arrivals.push((arrival, fate.by_capture, seen));
        }
    }
    arrivals.sort_by_key(|(arrival, ..)| *arrival);
    let mut said = sent;
    let (mut from, mut packets) = (0, 0);
    for (arrival, by_capture, seen) in arrivals {
        if by_capture {
            packets += 1;
            continue;
        }
        if packets > 0 {
            said.push(missed(B, from, arrival, packets));
        }
        said.push((B, Said::Seen(seen)));
        (from, packets) = (arrival, 0);
    }
    if packets > 0 {
        said.push(missed(B, from, i64::from(u32::MAX), packets));
    }
    said
}

fn count(fates: &[Fate], is: impl Fn(&Fate) -> bool) -> usize {
    fates.iter().filter(|fate| is(fate)).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn on_any_path_the_network_s_losses_are_counted_exactly(
        fates in fates(1..200), keep_order in any::<bool>(),
    ) {
        let (network, capture) = blamed(measured(&fates, keep_order));
        prop_assert_eq!(network.len(), count(&fates, |fate| fate.by_network));
        prop_assert_eq!(capture.len(), count(&fates, |fate| fate.by_capture && !fate.by_network));
    }

    #[test]
    fn on_a_path_that_keeps_order_each_stretch_has_its_own_packets(fates in fates(1..200)) {
        let (network, _) = blamed(measured(&fates, true));
        // Losses with no packet of the capture's between the same neighbours are told apart.
        let mut lost_there = Vec::new();
        let mut ambiguous = false;
        let mut certain = Vec::new();
        for (id, fate) in (0u64..).zip(&fates) {
            match (fate.by_network, fate.by_capture) {
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
