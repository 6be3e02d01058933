//! Delay and loss of each segment of a chain of points.

use std::collections::BTreeMap;

use super::common::{config, seen_in};
use wirestamp_clock::Span;
use wirestamp_metrics::{CaptureLoss, Chain, Outcome, Segment};

const MANY: usize = 1000;

/// Packet, and its times at the points in milliseconds, as far as it gets.
type PacketTimes = (u64, &'static [i64]);

/// Outcomes of each segment: packet and delay in milliseconds, or none if lost or undetermined.
fn outcomes_by_segment(
    points: usize,
    packets: &[PacketTimes],
) -> BTreeMap<Segment, Vec<(u64, Option<i64>)>> {
    let mut outcomes_by_segment: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut sink = |segment, outcome| match outcome {
        Outcome::Matched { sent, delay, .. } => {
            let millis = delay.as_nanos() / Span::from_millis(1).as_nanos();
            outcomes_by_segment.entry(segment).or_default().push((sent.id.0, Some(millis)));
        }
        Outcome::Lost { sent: seen, .. } | Outcome::Undetermined { observation: seen, .. } => {
            outcomes_by_segment.entry(segment).or_default().push((seen.id.0, None));
        }
        other => panic!("{other:?}"),
    };
    let mut chain = Chain::new(points, config(MANY));
    for point in 0..points {
        for (id, times) in packets {
            if let Some(time) = times.get(point) {
                chain.observe(point, seen_in(0, *id, *time), &mut sink);
            }
        }
    }
    chain.finish(&mut sink);
    outcomes_by_segment.values_mut().for_each(|packets| packets.sort_unstable());
    outcomes_by_segment
}

#[test]
fn hops_and_whole_have_their_delay_and_losses() {
    let packets: [PacketTimes; 3] =
        [(1, &[0, 3, 7, 20]), (2, &[10, 12, 19]), (3, &[20, 24, 27, 30])];
    let outcomes_by_segment = outcomes_by_segment(4, &packets);
    assert_eq!(outcomes_by_segment[&Segment::Hop(0)], [(1, Some(3)), (2, Some(2)), (3, Some(4))]);
    assert_eq!(outcomes_by_segment[&Segment::Hop(1)], [(1, Some(4)), (2, Some(7)), (3, Some(3))]);
    assert_eq!(outcomes_by_segment[&Segment::Hop(2)], [(1, Some(13)), (2, None), (3, Some(3))]);
    assert_eq!(outcomes_by_segment[&Segment::Whole], [(1, Some(20)), (2, None), (3, Some(10))]);
    assert_eq!(outcomes_by_segment.len(), 4);
}

#[test]
fn two_points_are_one_hop() {
    let outcomes_by_segment = outcomes_by_segment(2, &[(1, &[0, 5])]);
    assert_eq!(outcomes_by_segment, BTreeMap::from([(Segment::Hop(0), vec![(1, Some(5))])]));
}

#[test]
fn capture_loss_in_the_middle_is_lost_on_no_hop() {
    let mut outcomes = Vec::new();
    let mut sink = |segment, outcome| outcomes.push((segment, outcome));
    let mut chain = Chain::new(3, config(MANY));
    for (point, times) in [[0, 10, 20], [2, 12, 22], [4, 14, 24]].into_iter().enumerate() {
        for (id, time) in (1..).zip(times) {
            if point == 1 && id == 2 {
                let [from, until] = [seen_in(0, 1, 2), seen_in(0, 3, 22)].map(|it| it.stamp.utc);
                chain.missed(1, CaptureLoss { from, until, packets: 1 });
            } else {
                chain.observe(point, seen_in(0, id, time), &mut sink);
            }
        }
    }
    chain.finish(&mut sink);
    let of = |segment: Segment| outcomes.iter().filter(move |it| it.0 == segment);
    for hop in [Segment::Hop(0), Segment::Hop(1)] {
        assert_eq!(of(hop).filter(|it| matches!(it.1, Outcome::Undetermined { .. })).count(), 1);
        assert_eq!(of(hop).filter(|it| matches!(it.1, Outcome::Matched { .. })).count(), 2);
    }
    let whole = of(Segment::Whole).filter(|it| matches!(it.1, Outcome::Matched { .. }));
    assert_eq!((whole.count(), outcomes.len()), (3, 9));
}
