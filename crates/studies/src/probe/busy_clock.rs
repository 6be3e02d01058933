//! A clock for a sender that never sleeps.
//!
//! A sleep lets the core halt. The hypervisor then takes it for others, and the next packet finds cold caches: its way to
//! the stamp takes longer. A traffic generator, which the papers use, does not share a core with the probe.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_traffic::{PacingClock, ServiceClock};

/// The machine's counter, with sleeps that are busy waits.
pub(super) struct BusyClock<'a>(pub(super) ServiceClock<'a>);

impl PacingClock for BusyClock<'_> {
    fn now(&self) -> u64 {
        self.0.now()
    }

    fn ticks(&self, span: Span) -> u64 {
        self.0.ticks(span)
    }

    fn span(&self, from: u64, to: u64) -> Span {
        self.0.span(from, to)
    }

    fn utc(&self, reading: u64) -> Time<Utc> {
        self.0.utc(reading)
    }

    fn sleep(&self, span: Span) {
        let (start, ticks) = (self.now(), self.ticks(span));
        while self.now().saturating_sub(start) < ticks {}
    }

    fn refresh(&mut self) {
        self.0.refresh();
    }
}
