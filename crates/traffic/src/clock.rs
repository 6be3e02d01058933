//! The clock that paces the sender.

use std::thread;
use std::time::Duration;

use wirestamp_clock::{
    ClockService, Counter, DifferenceClock, RawStamp, Span, Time, Timeline, Utc,
};

/// A pacing clock: a counter with its tick length and its conversion to UTC.
pub trait PacingClock {
    /// The counter's value now, in ticks.
    fn now(&self) -> u64;
    /// The ticks in `span`; 0 if `span` is not positive. Constant during a run.
    fn ticks(&self, span: Span) -> u64;
    /// The time between two readings; negative if `to` is the earlier one.
    fn span(&self, from: u64, to: u64) -> Span;
    /// The reading as UTC.
    fn utc(&self, reading: u64) -> Time<Utc>;
    /// Sleeps for at least `span`.
    fn sleep(&self, span: Span);
    /// Updates the conversion to UTC; called between packets.
    fn refresh(&mut self) {}
}

/// Maximum age of the conversion to UTC.
const STALE_AFTER: Span = Span::from_millis(100);

/// The machine's counter, calibrated by a [`ClockService`].
///
/// All deadlines use the rate measured at the start. A new rate during the run would shift all
/// remaining deadlines at once.
#[derive(Debug)]
pub struct ServiceClock<'a> {
    service: &'a ClockService,
    counter: Counter,
    rate: DifferenceClock,
    timeline: Timeline,
    fetched: u64,
    stale_after: u64,
}

impl<'a> ServiceClock<'a> {
    /// The counter of `service`.
    #[must_use]
    pub fn new(service: &'a ClockService) -> Self {
        let counter = service.counter();
        let timeline = service.timeline(counter.domain());
        let rate = timeline.difference();
        let stale_after = rate.ticks(STALE_AFTER);
        Self { service, counter, rate, timeline, fetched: counter.read(), stale_after }
    }

    fn stamp(&self, value: u64) -> RawStamp {
        RawStamp { domain: self.counter.domain(), value }
    }
}

impl PacingClock for ServiceClock<'_> {
    fn now(&self) -> u64 {
        self.counter.read()
    }

    fn ticks(&self, span: Span) -> u64 {
        self.rate.ticks(span)
    }

    fn span(&self, from: u64, to: u64) -> Span {
        self.rate.span(self.stamp(from), self.stamp(to)).unwrap_or(Span::ZERO)
    }

    fn utc(&self, reading: u64) -> Time<Utc> {
        self.timeline.convert(reading).utc
    }

    fn sleep(&self, span: Span) {
        if let Ok(nanos) = u64::try_from(span.as_nanos()) {
            thread::sleep(Duration::from_nanos(nanos));
        }
    }

    fn refresh(&mut self) {
        let now = self.counter.read();
        if now.saturating_sub(self.fetched) > self.stale_after {
            self.timeline = self.service.timeline(self.counter.domain());
            self.fetched = now;
        }
    }
}
