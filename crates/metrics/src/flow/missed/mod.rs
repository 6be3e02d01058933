//! Loss intervals of the capture, and the missing packets assigned to them.

mod bounds;
mod exchange;
mod interval;

use std::collections::VecDeque;

use self::interval::LossInterval;
use super::gap::Gap;
use super::uncertainty::UnnumberedPackets;
use crate::CaptureLoss;

/// Max loss intervals kept.
const MAX_KEPT: usize = 256;
/// Loss intervals removed at once.
const FORGOTTEN_AT_ONCE: u64 = MAX_KEPT as u64 / 2;

/// Newest intervals in which the capture lost packets.
///
/// Packets are assigned late, and again with new information: a capture may report losses after the packets behind
/// them, and gaps of slow streams close long after.
#[derive(Clone, Debug, Default)]
pub(super) struct CaptureLosses {
    newest_last: VecDeque<LossInterval>,
    /// Number of intervals removed so far.
    forgotten: u64,
    /// Whether a new assignment is due.
    pub(super) is_due: bool,
    /// Whether it is due at once.
    pub(super) is_urgent: bool,
}

impl CaptureLosses {
    pub(super) fn note(&mut self, missed: CaptureLoss) {
        if missed.packets == 0 {
            return;
        }
        self.newest_last.push_back(LossInterval::of(missed));
        self.is_due = true;
        self.is_urgent |= self.newest_last.len() >= MAX_KEPT;
    }

    /// Requests an assignment at once.
    pub(super) fn request_decision(&mut self) {
        (self.is_due, self.is_urgent) = (true, true);
    }

    /// Whether the capture lost packets while a gap was open.
    pub(super) fn affects(&self, gap: &Gap) -> bool {
        self.newest_last.iter().rev().any(|it| !it.is_exhausted() && gap.overlaps(it.times))
    }

    /// Records a new gap.
    pub(super) fn note_gap(&mut self, gap: &Gap) {
        let concerns = |it: &LossInterval| gap.overlaps(it.times) && gap.possible(it.times) > 0;
        self.is_due = self.is_due || self.newest_last.iter().rev().any(concerns);
    }

    /// Assigns the missing packets of these gaps to the loss intervals that are kept.
    ///
    /// An interval takes as many missing packets as the capture lost in it: first those due in it, then those due
    /// nearest to it that may have passed in it. If more were due at the same distance, the rest are network losses,
    /// distributed over all gaps in proportion, because it is unknown which packets these are.
    ///
    /// Intervals exchange packets where one took packets that another needs. Packets without numbers that passed at
    /// these times may be among the losses.
    pub(super) fn decide(&mut self, gaps: &mut [&mut Gap], others: &[UnnumberedPackets]) {
        gaps.iter_mut().for_each(|gap| gap.clear_assignments(self.forgotten));
        // In an overload, most intervals belong to gaps no longer kept, and time is short.
        let concerned = |(_, it): &(u64, LossInterval)| it.near(gaps).next().is_some();
        let intervals = (self.forgotten..).zip(self.newest_last.iter().copied());
        let intervals: Vec<_> = intervals.filter(concerned).collect();
        for (id, interval) in &intervals {
            interval.take(*id, interval.packets, gaps);
        }
        exchange::exchange(&intervals, gaps, others);
        for (id, interval) in &intervals {
            bounds::bound_one(*id, interval, gaps, others);
        }
        // Intervals removed at different times are not combined.
        let batch = |(id, _): &(u64, LossInterval)| id / FORGOTTEN_AT_ONCE;
        for kept_together in intervals.chunk_by(|one, next| batch(one) == batch(next)) {
            bounds::bound_jointly(kept_together, gaps, others);
        }
        (self.is_due, self.is_urgent) = (false, false);
    }

    /// Removes a gap after its assignment: its packets are taken from the intervals.
    pub(super) fn forget(&mut self, gap: &Gap) {
        for (id, packets) in gap.missed() {
            if let Some(interval) = self.interval(id) {
                interval.packets = interval.packets.saturating_sub(packets);
            }
        }
        for (id, uncertainty) in &gap.uncertainties {
            if let Some(interval) = self.interval(*id) {
                interval.uncertainty = interval.uncertainty.plus(uncertainty.complement());
            }
        }
    }

    fn interval(&mut self, id: u64) -> Option<&mut LossInterval> {
        let place = usize::try_from(id.checked_sub(self.forgotten)?).ok()?;
        self.newest_last.get_mut(place)
    }

    /// Removes the oldest intervals if there are too many. Assignments to them remain.
    pub(super) fn make_room(&mut self) {
        if self.newest_last.len() >= MAX_KEPT {
            self.newest_last.drain(..MAX_KEPT / 2);
            self.forgotten += FORGOTTEN_AT_ONCE;
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Span, Time};

    use super::*;

    /// Packets assigned to the capture. Missing numbers were due every 50 ns from 50 ns on, and may have passed 10 ns
    /// before or after; the capture lost one packet in each interval.
    fn accounted_for(missing: u64, intervals: &[(i64, i64)]) -> u64 {
        let times = (Time::from_nanos(0), Time::from_nanos(50 * (missing.cast_signed() + 1)));
        let mut gap = Gap::before(missing, missing, times, Some(Span::from_nanos(10)));
        let mut missed = CaptureLosses::default();
        for (from, until) in intervals {
            let [from, until] = [from, until].map(|it| Time::from_nanos(*it));
            missed.note(CaptureLoss { from, until, packets: 1 });
        }
        missed.decide(&mut [&mut gap], &[]);
        gap.losses().by_capture
    }

    #[test]
    fn intervals_exchange_packets_to_account_for_all() {
        // The first interval takes the packet due at 100, the only one near the second interval.
        assert_eq!(accounted_for(3, &[(60, 105), (100, 105)]), 2);
        // Also, the second interval takes the packet due at 150, the only one near the third.
        assert_eq!(accounted_for(4, &[(60, 105), (110, 155), (150, 155)]), 3);
    }

    #[test]
    fn impossible_packets_are_left_over() {
        assert_eq!(accounted_for(3, &[(100, 105), (95, 105)]), 1);
        assert_eq!(accounted_for(3, &[]), 0);
    }
}
