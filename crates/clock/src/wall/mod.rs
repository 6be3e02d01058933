//! The wall clock: the time of day at the cost of reading a counter.

mod line;
mod lines;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::{Counter, RawStamp, Span, Stamp, Time, Timeline, Utc};
use line::Line;
use lines::Lines;

/// Time between the publication and the start of a line: some hundred times the duration of a publication. Half of it
/// is longer than any reordering by a CPU.
const LEAD: Span = Span::from_nanos(100_000);

/// The system's time of day, read from the counter; see [`crate::ClockService::wall_clock`]. All threads may read
/// clones.
///
/// # Accuracy and monotony
///
/// The service compares the counter with the system clock four times a second, and more often at its start. It
/// corrects an offset until the next comparison by a slightly faster or slower rate: time never jumps and never goes
/// back. [`Self::now`] is monotone on one thread; [`Self::now_ordered`] is monotone across threads, because it
/// prevents reordering by the CPU. The same holds for all clones of one clock. The clocks of two services differ by
/// their errors.
///
/// After a *step* of the system clock or a disruption of the counter this clock jumps with the next sample;
/// [`Timeline::steps`] counts it. A [`Timeline`] still converts an earlier stamp to its old time, for the minute that
/// it covers.
///
/// # Error
///
/// [`Self::now_with_error`] bounds the distance from `CLOCK_REALTIME`, under the assumption and with the exceptions
/// of [the crate's documentation](crate). The bound grows without samples: after the service was dropped, or in a
/// forked child, which has no service thread. Then the clock continues along its last line.
#[derive(Clone, Debug)]
pub struct WallClock {
    counter: Counter,
    lines: Arc<Lines>,
}

impl WallClock {
    /// UTC now, in nanoseconds, by an unordered read of the counter ([`Counter::read`]).
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time<Utc> {
        self.lines.read(|| self.counter.read(), lines::Slot::utc)
    }

    /// UTC now, read after all earlier and before all later instructions: never earlier than a time that another
    /// thread has published.
    #[inline]
    #[must_use]
    pub fn now_ordered(&self) -> Time<Utc> {
        self.lines.read(|| self.counter.read_ordered(), lines::Slot::utc)
    }

    /// UTC now as a stamp, by an unordered read: the time, its error bound, and the raw value for a later conversion.
    #[must_use]
    pub fn now_with_error(&self) -> Stamp {
        let domain = self.counter.domain();
        let convert = |slot: &lines::Slot, value| {
            let (utc, error) = slot.utc_and_error(value);
            Stamp { raw: RawStamp { domain, value }, utc, error }
        };
        self.lines.read(|| self.counter.read(), convert)
    }
}

/// Steers a wall clock along its timelines. The counter is injected as a function that reads it ordered.
#[derive(Debug)]
pub(crate) struct Steering {
    lines: Arc<Lines>,
    newest: Line,
    steps: u32,
}

impl Steering {
    /// A clock that shows the time of `timeline` from the counter's value `now` on.
    pub(crate) fn new(timeline: &Timeline, now: u64) -> Self {
        let newest = Line::restart(timeline.newest(), now);
        Self { lines: Arc::new(Lines::new(&newest)), newest, steps: timeline.steps() }
    }

    /// The steered clock, over the counter of its timelines.
    pub(crate) fn clock(&self, counter: Counter) -> WallClock {
        WallClock { counter, lines: Arc::clone(&self.lines) }
    }

    /// Steers the clock to the time of `timeline` within `interval`, when the next timeline is expected; at once
    /// after a step of the system clock or a disruption of the counter.
    pub(crate) fn follow(
        &mut self,
        timeline: &Timeline,
        interval: Span,
        mut counter: impl FnMut() -> u64,
    ) {
        if timeline.steps() != self.steps {
            self.steps = timeline.steps();
            self.newest = Line::restart(timeline.newest(), counter());
            self.lines.replace(&self.newest);
            return;
        }
        if counter() <= self.newest.start {
            return; // Readers use two lines only, and the newest has not started.
        }
        let rate = timeline.difference();
        let horizon = NonZeroU64::new(rate.ticks(interval)).unwrap_or(NonZeroU64::MIN);
        let mut lead = rate.ticks(LEAD).max(2);
        // Near the wrap of the counter, the clock is not steered.
        while let Some(start) = counter().checked_add(lead)
            && start.checked_add(horizon.get()).is_some()
        {
            let line = self.newest.towards(timeline.newest(), start, horizon);
            if self.lines.publish(&line, start - lead / 2, &mut counter) {
                self.newest = line;
                return;
            }
            // The thread was interrupted; a longer lead makes success more likely.
            lead = lead.saturating_mul(2);
        }
        self.lines.cancel();
    }
}
