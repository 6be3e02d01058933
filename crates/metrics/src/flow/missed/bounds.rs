//! Between which bounds lies what a stretch, or several, account for of each gap.

use super::interval::LossInterval;
use crate::flow::gap::Gap;
use crate::flow::uncertainty::Uncertainty;
use crate::flow::unnumbered::Unnumbered;

/// What the capture lost in a stretch, or in several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    packets: u64,
    /// Of these, packets with numbers, at the least and at the most.
    pub(super) fewest: u64,
    most: u64,
    /// Packets that are missing in all gaps and may have passed then.
    possible: u64,
}

impl Total {
    /// What the capture lost in a stretch, of which what else passed at these times may be a part.
    pub(super) fn of(stretch: &LossInterval, others: &[Unnumbered]) -> Self {
        let others = others.iter().map(|it| it.within(stretch.times)).fold(0, u64::saturating_add);
        let fewest = stretch.packets.saturating_sub(stretch.in_doubt.fewer);
        Self {
            packets: stretch.packets,
            fewest: fewest.saturating_sub(others),
            most: stretch.packets.saturating_add(stretch.in_doubt.more),
            possible: 0,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            fewest: self.fewest.saturating_add(other.fewest),
            most: self.most.saturating_add(other.most),
            possible: self.possible.saturating_add(other.possible),
        }
    }

    /// Between what the part of a gap lies which has `own` of the possible packets: the others cannot
    /// have more than theirs. If the capture lost more than what is possible, some are of no flow that
    /// is known, and it is not known how many.
    fn bounds(&self, own: u64) -> (u64, u64) {
        let others = self.possible.saturating_sub(own);
        let least =
            if self.packets > self.possible { 0 } else { self.fewest.saturating_sub(others) };
        (least.min(own), own.min(self.most))
    }
}

/// Tells each gap between which bounds its part of a stretch lies.
pub(super) fn bound_alone(
    name: u64,
    stretch: &LossInterval,
    gaps: &mut [&mut Gap],
    others: &[Unnumbered],
) {
    let possible = stretch.near(gaps).map(|gap| gap.possible(stretch.times)).sum();
    let total = Total { possible, ..Total::of(stretch, others) };
    for gap in stretch.near_mut(gaps) {
        let own = gap.possible(stretch.times);
        let (least, most) = total.bounds(own);
        let is_known = least == most && (most == 0 || most == own);
        if !is_known {
            gap.doubt(Uncertainty::of(gap.missed_in(&(name..name + 1)), least, most), name);
        }
    }
}

/// Tells each gap what is in doubt of stretches that follow each other, where they share gaps: it is known
/// how many packets the capture lost in all of them, though not in which it lost each.
pub(super) fn bound_jointly(
    stretches: &[(u64, LossInterval)],
    gaps: &mut [&mut Gap],
    others: &[Unnumbered],
) {
    let is_shared = |(_, one): &(u64, LossInterval), (_, next): &(u64, LossInterval)| {
        gaps.iter().any(|gap| gap.shares(one.times) && gap.shares(next.times))
    };
    let joint: Vec<_> = stretches.chunk_by(is_shared).filter(|joint| joint.len() > 1).collect();
    joint.into_iter().for_each(|joint| bound_together(joint, gaps, others));
}

/// Tells each gap between which bounds its part of several stretches lies.
fn bound_together(joint: &[(u64, LossInterval)], gaps: &mut [&mut Gap], others: &[Unnumbered]) {
    let [Some((first, _)), Some((last, _))] = [joint.first(), joint.last()] else { return };
    let names = *first..last + 1;
    let own = |gap: &Gap| {
        let near = joint.iter().filter(|(_, it)| gap.shares(it.times));
        near.map(|(_, it)| gap.possible(it.times)).sum::<u64>().min(gap.not_come())
    };
    let totals = joint.iter().map(|(_, it)| Total::of(it, others));
    let possible = gaps.iter().map(|gap| own(gap)).sum();
    let total = Total { possible, ..totals.fold(Total::default(), Total::plus) };
    for gap in gaps {
        let own = own(gap);
        if own > 0 {
            let (least, most) = total.bounds(own);
            gap.doubt_jointly(Uncertainty::of(gap.missed_in(&names), least, most), names.clone());
        }
    }
}
