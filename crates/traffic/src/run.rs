//! The time that a run of packets goes by.

use std::sync::atomic::AtomicBool;

use wirestamp_clock::Span;

use crate::outlet::Outlet;
use crate::pace::{Pacer, Wait};
use crate::{PacingClock, Sent, sys};

/// From the start of a run to its first deadline, so that its first wait is a wait.
const LEAD: Span = Span::from_millis(1);
/// The last stamp is taken so long before a deadline: many times what the system call takes.
const HANDS_OFF: Span = Span::from_micros(20);

/// A run of packets, from a start that all deadlines count from.
pub(crate) struct Run<'a, C> {
    pub(crate) clock: &'a mut C,
    stop: &'a AtomicBool,
    pacer: Pacer,
    start: u64,
    /// Packets that were late because a sleep ended after their deadline.
    pub(crate) overslept: u64,
    /// Whether it ended by request.
    pub(crate) stopped: bool,
}

impl<'a, C: PacingClock> Run<'a, C> {
    /// Begins now. Leaves the calling thread with the shortest timer slack.
    pub(crate) fn start(clock: &'a mut C, stop: &'a AtomicBool) -> Self {
        sys::end_sleeps_on_time();
        let start = clock.now().saturating_add(clock.ticks(LEAD));
        Self { clock, stop, pacer: Pacer::new(), start, overslept: 0, stopped: false }
    }

    /// Waits until `offset` from the start has passed, and returns the reading of the clock that
    /// was waited for; none if somebody asked to stop.
    ///
    /// Whatever time there is until then goes to `outlets`: packets that wait are handed over, and
    /// stamps are taken.
    pub(crate) fn wait(
        &mut self,
        offset: Span,
        outlets: &mut [Outlet],
        mut on_sent: impl FnMut(&Sent),
    ) -> Option<u64> {
        self.clock.refresh();
        let clock = &*self.clock;
        let deadline = self.start.saturating_add(clock.ticks(offset));
        if clock.now() < deadline {
            outlets.iter_mut().for_each(Outlet::flush);
        }
        let hands_off = deadline.saturating_sub(clock.ticks(HANDS_OFF));
        for outlet in outlets {
            outlet.collect(|| clock.now() < hands_off, &mut on_sent);
        }
        match self.pacer.wait(clock, deadline, self.stop) {
            Wait::Due => {}
            Wait::Overslept => self.overslept += 1,
            Wait::Stopped => {
                self.stopped = true;
                return None;
            }
        }
        Some(deadline)
    }
}
