//! Shards report the outcomes of a single correlator.

use super::common::{config, outcomes, seen_in};
use Point::{A, B};
use proptest::prelude::*;
use wirestamp_metrics::{CaptureLoss, Observation, Outcome, Point, Shards};

const MANY: usize = 10_000;

fn sharded(shards: usize, seen: &[(Point, Observation)]) -> Vec<Vec<Outcome>> {
    let record = |outcomes: &mut Vec<Outcome>, outcome| outcomes.push(outcome);
    let mut shards = Shards::new(shards, config(MANY), Vec::new, record).expect("threads");
    for (point, observation) in seen {
        shards.observe(*point, *observation);
    }
    shards.finish()
}

fn sorted(outcomes: &[Outcome]) -> Vec<String> {
    let mut lines: Vec<_> = outcomes.iter().map(|outcome| format!("{outcome:?}")).collect();
    lines.sort();
    lines
}

/// Packets of several flows at either point, partly out of order: point, identity, pause and stamp offset.
fn seen() -> impl Strategy<Value = Vec<(Point, Observation)>> {
    let packet = (any::<bool>(), 0u64..30, 0i64..40, -60i64..60);
    prop::collection::vec(packet, 0..300).prop_map(|packets| {
        let mut now = 5000;
        let mut seen = |(at_a, id, pause, off): (bool, u64, i64, i64)| {
            now += pause;
            let flow = u16::try_from(id % 7).expect("a small number");
            (if at_a { A } else { B }, seen_in(flow, id, now + off))
        };
        packets.into_iter().map(&mut seen).collect()
    })
}

proptest! {
    #[test]
    fn the_outcomes_are_those_of_one_correlator(seen in seen(), count in 0usize..5) {
        let found = sharded(count, &seen).concat();
        prop_assert_eq!(sorted(&found), sorted(&outcomes(MANY, seen)));
    }
}

#[test]
fn every_shard_receives_several_batches() {
    let seen: Vec<_> = (0..20_000)
        .map(|id: i64| {
            let (packet, point) = (id / 2, if id % 2 == 0 { A } else { B });
            let flow = u16::try_from(packet % 100).expect("a small number");
            (point, seen_in(flow, packet.unsigned_abs(), id / 100))
        })
        .collect();
    let found = sharded(4, &seen);
    assert!(found.iter().all(|outcomes| outcomes.len() > 1000));
    assert!(sorted(&found.concat()) == sorted(&outcomes(MANY, seen)), "the same outcomes");
}

#[test]
fn capture_loss_is_lost_in_no_shard() {
    let record =
        |lost: &mut u32, outcome| *lost += u32::from(matches!(outcome, Outcome::Lost { .. }));
    let mut shards = Shards::new(3, config(MANY), || 0, record).expect("threads");
    for id in 0..10 {
        shards.observe(A, seen_in(u16::try_from(id).expect("small"), id, 10));
    }
    let [from, until] = [0, 40].map(|millis| seen_in(0, 0, millis).stamp.utc);
    shards.missed(B, CaptureLoss { from, until, packets: 10 });
    assert_eq!(shards.finish().iter().sum::<u32>(), 0);
}

#[test]
fn panic_of_a_sink_is_propagated() {
    let mut shards =
        Shards::new(2, config(MANY), || (), |(), _| panic!("on purpose")).expect("threads");
    for id in 0..100_000 {
        shards.observe(A, seen_in(0, id, id.cast_signed()));
    }
    let finished = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shards.finish()));
    assert_eq!(finished.unwrap_err().downcast_ref(), Some(&"on purpose"));
}
