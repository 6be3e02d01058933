//! A paced run: waits for deadlines, and uses the time until then.

use std::sync::atomic::AtomicBool;

use wirestamp_clock::Span;
use wirestamp_sys::scheduling::disable_timer_slack;

use crate::egress::Egress;
use crate::pace::{Pacer, WaitResult};
use crate::{PacingClock, SentPacket};

/// Time from the start of a run to its first deadline, so that the first packet is not late.
const START_DELAY: Span = Span::from_millis(1);
/// Reading of stamps ends this long before a deadline: many times the duration of the system call.
const STAMP_READ_MARGIN: Span = Span::from_micros(20);

/// A run of packets; all deadlines count from its start.
pub(crate) struct PacedRun<'a, C> {
    pub(crate) clock: &'a mut C,
    stop: &'a AtomicBool,
    pacer: Pacer,
    start: u64,
    /// Packets that were late because a sleep ended after their deadline.
    pub(crate) overslept: u64,
    /// Whether a request ended the run.
    pub(crate) stopped: bool,
}

impl<'a, C: PacingClock> PacedRun<'a, C> {
    /// Starts now. Sets the calling thread's timer slack to the minimum.
    pub(crate) fn start(clock: &'a mut C, stop: &'a AtomicBool) -> Self {
        disable_timer_slack();
        let start = clock.now().saturating_add(clock.ticks(START_DELAY));
        Self { clock, stop, pacer: Pacer::new(), start, overslept: 0, stopped: false }
    }

    /// Waits until `offset` after the start, and returns the deadline as a clock reading; none if a
    /// stop was requested.
    ///
    /// Until then, flushes waiting packets of `egresses` and reads their stamps.
    pub(crate) fn wait(
        &mut self,
        offset: Span,
        egresses: &mut [Egress],
        mut on_sent: impl FnMut(&SentPacket),
    ) -> Option<u64> {
        self.clock.refresh();
        let clock = &*self.clock;
        let deadline = self.start.saturating_add(clock.ticks(offset));
        if clock.now() < deadline {
            egresses.iter_mut().for_each(Egress::flush);
        }
        let stamps_until = deadline.saturating_sub(clock.ticks(STAMP_READ_MARGIN));
        for egress in egresses {
            egress.collect(|| clock.now() < stamps_until, &mut on_sent);
        }
        match self.pacer.wait(clock, deadline, self.stop) {
            WaitResult::Due => {}
            WaitResult::Overslept => self.overslept += 1,
            WaitResult::Stopped => {
                self.stopped = true;
                return None;
            }
        }
        Some(deadline)
    }
}
