//! An interval in which the capture lost packets.

use wirestamp_clock::{Span, Time, Utc};

use crate::CaptureLoss;
use crate::flow::gap::Gap;
use crate::flow::uncertainty::Uncertainty;

/// A loss interval and the packets not yet assigned for good.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossInterval {
    pub(super) times: (Time<Utc>, Time<Utc>),
    pub(super) packets: u64,
    /// Uncertainty caused by gaps that are no longer kept.
    pub(super) uncertainty: Uncertainty,
}

impl LossInterval {
    pub(super) fn of(CaptureLoss { from, until, packets }: CaptureLoss) -> Self {
        Self { times: (from, until), packets, uncertainty: Uncertainty::default() }
    }

    /// Whether all packets are assigned to removed gaps, without uncertainty.
    pub(super) fn is_exhausted(&self) -> bool {
        self.packets == 0 && self.uncertainty == Uncertainty::default()
    }

    /// Gaps that overlap it.
    pub(super) fn near<'a>(&self, gaps: &'a [&mut Gap]) -> impl Iterator<Item = &'a Gap> {
        let times = self.times;
        gaps.iter().map(|gap| &**gap).filter(move |gap| gap.overlaps(times))
    }

    /// Gaps that overlap it, mutable.
    pub(super) fn near_mut<'a, 'g>(
        &self,
        gaps: &'a mut [&'g mut Gap],
    ) -> impl Iterator<Item = &'a mut &'g mut Gap> {
        let times = self.times;
        gaps.iter_mut().filter(move |gap| gap.overlaps(times))
    }

    /// Assigns this many missing packets: first those due in it, then those due nearest to it that may have passed in
    /// it.
    pub(super) fn take(&self, id: u64, packets: u64, gaps: &mut [&mut Gap]) {
        if packets == 0 {
            return;
        }
        let mut near: Vec<_> = self.near_mut(gaps).collect();
        let Some(max_distance) = near.iter().map(|gap| gap.max_distance()).max() else { return };
        let due = |distance| near.iter().map(|gap| gap.due(self.times, distance)).sum::<u64>();
        let (at, nearer) = if due(max_distance) <= packets {
            (max_distance, Some(max_distance))
        } else {
            let at = first_that(max_distance, |distance| due(distance) > packets);
            (at, (at > Span::ZERO).then(|| Span::from_nanos(at.as_nanos() - 1)))
        };
        let sure = nearer.map_or(0, due);
        let (together, left) = (due(at) - sure, packets - sure);
        let (mut passed, mut taken, phase) = (0, 0, phase(id));
        for gap in &mut near {
            if let Some(nearer) = nearer {
                gap.miss(self.times, nearer, u64::MAX, id);
            }
            passed += gap.due(self.times, at);
            let part = part(left, passed, together, phase) - taken;
            taken += part;
            gap.miss(self.times, at, part, id);
        }
    }
}

/// Min distance up to `max` for which the monotonic predicate holds; it holds for `max`.
fn first_that(max: Span, holds: impl Fn(Span) -> bool) -> Span {
    let (mut below, mut above) = (-1, max.as_nanos());
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if holds(Span::from_nanos(middle)) { above = middle } else { below = middle }
    }
    Span::from_nanos(above)
}

/// Share of `count` for `some` of `all`, rounded down from a phase in 2^32 parts.
fn part(count: u64, some: u64, all: u64, phase: u32) -> u64 {
    let all = u128::from(all.max(1));
    let share = (u128::from(count) * u128::from(some) + ((all * u128::from(phase)) >> 32)) / all;
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Rounding phase of an interval, so that the same gaps do not always get less. Multiples of the golden ratio fill the
/// circle evenly (D. Knuth, The Art of Computer Programming, volume 3, section 6.4).
fn phase(id: u64) -> u32 {
    const GOLDEN: u64 = 2_654_435_769;
    u32::try_from(id.wrapping_mul(GOLDEN) & u64::from(u32::MAX)).unwrap_or(0)
}
