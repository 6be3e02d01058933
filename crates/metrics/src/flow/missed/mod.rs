//! When the capture lost packets, and which of the packets that are missing it accounts for.

mod bounds;
mod exchange;
mod interval;

use std::collections::VecDeque;

use self::interval::LossInterval;
use super::gap::Gap;
use super::unnumbered::UnnumberedPackets;
use crate::CaptureLoss;

/// GapLosses of the capture that are remembered, the newest.
const MAX_KEPT: usize = 256;
/// So many of them are forgotten at once.
const FORGOTTEN_AT_ONCE: u64 = MAX_KEPT as u64 / 2;

/// The newest times in which the capture lost packets.
///
/// Which gaps they account for is decided on late, and again when there is news: a capture may tell
/// of its losses after the packets behind them, and the gaps of slow streams close long after.
#[derive(Clone, Debug, Default)]
pub(super) struct CaptureLosses {
    newest_last: VecDeque<LossInterval>,
    /// How many there were before these.
    forgotten: u64,
    /// Whether there is news since the last decision.
    is_due: bool,
    /// Whether somebody cannot remember more before there is a decision.
    is_urgent: bool,
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

    /// Whether a decision is due.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether it has to be made at once.
    pub(super) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Asks for a decision at once.
    pub(super) fn request_decision(&mut self) {
        (self.is_due, self.is_urgent) = (true, true);
    }

    /// Whether the capture lost packets while a gap was open.
    pub(super) fn affects(&self, gap: &Gap) -> bool {
        self.newest_last.iter().rev().any(|it| !it.is_exhausted() && gap.overlaps(it.times))
    }

    /// Takes note of a gap.
    pub(super) fn note_gap(&mut self, gap: &Gap) {
        let concerns = |it: &LossInterval| gap.overlaps(it.times) && gap.possible(it.times) > 0;
        self.is_due = self.is_due || self.newest_last.iter().rev().any(concerns);
    }

    /// Decides which of these gaps the capture accounts for, of all that are remembered.
    ///
    /// A stretch accounts for as many of the missing packets as the capture lost in it: those that
    /// were due in it and, if they are fewer, those that were due nearest to it, as far as they may
    /// have passed in it. If more were due at the same distance, the network lost the others: then
    /// all gaps have their part in what the network lost, because it is not known which has.
    ///
    /// What is left over only because another stretch took what this one needed, they exchange.
    ///
    /// What else passed at these times may be among what the capture lost.
    pub(super) fn decide(&mut self, gaps: &mut [&mut Gap], others: &[UnnumberedPackets]) {
        gaps.iter_mut().for_each(|gap| gap.clear_assignments(self.forgotten));
        // Of an overload most are of gaps that are forgotten, and there is no time to lose.
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
        // Those that are forgotten at different times are not taken together.
        let batch = |(id, _): &(u64, LossInterval)| id / FORGOTTEN_AT_ONCE;
        for kept_together in intervals.chunk_by(|one, next| batch(one) == batch(next)) {
            bounds::bound_jointly(kept_together, gaps, others);
        }
        (self.is_due, self.is_urgent) = (false, false);
    }

    /// Forgets a gap that was decided on: what accounts for it accounts for nothing else.
    pub(super) fn forget(&mut self, gap: &Gap) {
        for (id, packets) in gap.missed() {
            if let Some(interval) = self.interval(id) {
                interval.packets = interval.packets.saturating_sub(packets);
            }
        }
        for (id, uncertainty) in gap.uncertainties() {
            if let Some(interval) = self.interval(id) {
                interval.uncertainty = interval.uncertainty.plus(uncertainty.complement());
            }
        }
    }

    fn interval(&mut self, id: u64) -> Option<&mut LossInterval> {
        let place = usize::try_from(id.checked_sub(self.forgotten)?).ok()?;
        self.newest_last.get_mut(place)
    }

    /// Forgets the oldest, if they are many. What was decided by them stays.
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

    /// Numbers are missing that were due every 50 ns from 50 ns on, and may have passed 10 ns before or
    /// after; the capture lost one packet in each stretch. How many does it account for?
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
    fn a_stretch_leaves_to_another_what_only_that_can_account_for() {
        // The first takes what was due at 100, which is all that is near the second.
        assert_eq!(accounted_for(3, &[(60, 105), (100, 105)]), 2);
        // So do the second and the third.
        assert_eq!(accounted_for(4, &[(60, 105), (110, 155), (150, 155)]), 3);
    }

    #[test]
    fn what_nobody_can_account_for_is_left_over() {
        assert_eq!(accounted_for(3, &[(100, 105), (95, 105)]), 1);
        assert_eq!(accounted_for(3, &[]), 0);
    }
}
