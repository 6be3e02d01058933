//! Bounds of the packets assigned from one or several loss intervals to each gap.

use super::interval::LossInterval;
use crate::flow::gap::Gap;
use crate::flow::uncertainty::{Uncertainty, UnnumberedPackets};

/// Packets lost by the capture in one or several intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IntervalTotal {
    packets: u64,
    /// Min and max number of them with sequence numbers.
    pub(super) min_numbered: u64,
    max: u64,
    /// Packets missing in all gaps that may have passed then.
    possible: u64,
}

impl IntervalTotal {
    /// Total of one interval. Packets without numbers that passed then may be among the losses.
    pub(super) fn of(interval: &LossInterval, others: &[UnnumberedPackets]) -> Self {
        let others = others.iter().map(|it| it.within(interval.times)).fold(0, u64::saturating_add);
        let min_numbered = interval.packets.saturating_sub(interval.uncertainty.fewer);
        Self {
            packets: interval.packets,
            min_numbered: min_numbered.saturating_sub(others),
            max: interval.packets.saturating_add(interval.uncertainty.more),
            possible: 0,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            min_numbered: self.min_numbered.saturating_add(other.min_numbered),
            max: self.max.saturating_add(other.max),
            possible: self.possible.saturating_add(other.possible),
        }
    }

    /// Bounds of the share of a gap that has `own` of the possible packets; the other gaps take at most theirs. If the
    /// capture lost more than is possible, an unknown number of packets belongs to unknown flows.
    fn bounds(&self, own: u64) -> (u64, u64) {
        let others = self.possible.saturating_sub(own);
        let min =
            if self.packets > self.possible { 0 } else { self.min_numbered.saturating_sub(others) };
        (min.min(own), own.min(self.max))
    }
}

/// Sets the uncertainty of each gap for one interval.
pub(super) fn bound_one(
    id: u64,
    interval: &LossInterval,
    gaps: &mut [&mut Gap],
    others: &[UnnumberedPackets],
) {
    let possible = interval.near(gaps).map(|gap| gap.possible(interval.times)).sum();
    let total = IntervalTotal { possible, ..IntervalTotal::of(interval, others) };
    for gap in interval.near_mut(gaps) {
        let own = gap.possible(interval.times);
        let (min, max) = total.bounds(own);
        let is_known = min == max && (max == 0 || max == own);
        if !is_known {
            let uncertainty = Uncertainty::of(gap.missed_in(&(id..id + 1)), min, max);
            gap.uncertainties.push((id, uncertainty));
        }
    }
}

/// Sets the joint uncertainty of consecutive intervals that share gaps: the total lost in all of them is known, but
/// not the share of each.
pub(super) fn bound_jointly(
    intervals: &[(u64, LossInterval)],
    gaps: &mut [&mut Gap],
    others: &[UnnumberedPackets],
) {
    let is_shared = |(_, one): &(u64, LossInterval), (_, next): &(u64, LossInterval)| {
        gaps.iter().any(|gap| gap.overlaps(one.times) && gap.overlaps(next.times))
    };
    let joint: Vec<_> = intervals.chunk_by(is_shared).filter(|joint| joint.len() > 1).collect();
    joint.into_iter().for_each(|joint| bound_group(joint, gaps, others));
}

/// Sets the joint uncertainty of each gap for a group of intervals.
fn bound_group(joint: &[(u64, LossInterval)], gaps: &mut [&mut Gap], others: &[UnnumberedPackets]) {
    let [Some((first, _)), Some((last, _))] = [joint.first(), joint.last()] else { return };
    let ids = *first..last + 1;
    let own = |gap: &Gap| {
        let near = joint.iter().filter(|(_, it)| gap.overlaps(it.times));
        near.map(|(_, it)| gap.possible(it.times)).sum::<u64>().min(gap.not_come())
    };
    let totals = joint.iter().map(|(_, it)| IntervalTotal::of(it, others));
    let possible = gaps.iter().map(|gap| own(gap)).sum();
    let total =
        IntervalTotal { possible, ..totals.fold(IntervalTotal::default(), IntervalTotal::plus) };
    for gap in gaps {
        let own = own(gap);
        if own > 0 {
            let (min, max) = total.bounds(own);
            let uncertainty = Uncertainty::of(gap.missed_in(&ids), min, max);
            gap.joint_uncertainties.push((ids.clone(), uncertainty));
        }
    }
}
