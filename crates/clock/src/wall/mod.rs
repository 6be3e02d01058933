//! The wall clock: the time of day for the price of reading a counter.

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

/// How far ahead of its start a line is published: some hundred times what publishing takes. The
/// last half of it is what a CPU may reorder, and more.
const LEAD: Span = Span::from_nanos(100_000);

/// The system's time of day, read from the counter. [`crate::ClockService::wall_clock`] gives it;
/// copies may be read from all threads.
///
/// # Kept right, and monotone
///
/// The service compares the counter with the system clock four times a second, and more often at
/// its start. What is off then is made up for until the next time by running a little faster or
/// slower: time never jumps and never goes back. On one thread [`Self::now`] is monotone; across
/// threads [`Self::now_ordered`] is, which keeps what the CPU reorders out of it. So are all copies
/// of one clock; the clocks of two services differ by what either is off.
///
/// When the system clock is *stepped*, or the counter disrupted, this clock follows with the next
/// sample, in a jump that [`Timeline::steps`] counts. Of a stamp taken before, a [`Timeline`] still
/// gives what it was, for the minute that it reaches back.
///
/// # Error
///
/// [`Self::now_with_error`] bounds the distance from `CLOCK_REALTIME`, with the assumption and the
/// exceptions of [the crate's documentation](crate). The bound grows as long as no sample comes: if
/// the service was dropped, or in a forked child, which has no service thread, the clock runs on
/// along its last line and says how little it knows.
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

    /// UTC now, read after everything earlier in the program and before anything later: a time that
    /// another thread was told of is never later than this one.
    #[inline]
    #[must_use]
    pub fn now_ordered(&self) -> Time<Utc> {
        self.lines.read(|| self.counter.read_ordered(), lines::Slot::utc)
    }

    /// UTC now as a stamp, by an unordered read: the time, how far off it can be, and the raw value,
    /// so that it can be converted again when more is known.
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

/// Keeps a wall clock on its timelines. The counter is injected: it is only ever read, ordered,
/// through the function that is given.
#[derive(Debug)]
pub(crate) struct Steering {
    lines: Arc<Lines>,
    newest: Line,
    steps: u32,
}

impl Steering {
    /// A clock that shows what `timeline` says, from the counter's value `now` on.
    pub(crate) fn new(timeline: &Timeline, now: u64) -> Self {
        let newest = Line::afresh(timeline.newest(), now);
        Self { lines: Arc::new(Lines::new(&newest)), newest, steps: timeline.steps() }
    }

    /// The clock that is steered, over the counter whose timelines it follows.
    pub(crate) fn clock(&self, counter: Counter) -> WallClock {
        WallClock { counter, lines: Arc::clone(&self.lines) }
    }

    /// Leads the clock to what `timeline` says within `interval`, when the next one is expected; at
    /// once if the system clock was stepped or the counter disrupted.
    pub(crate) fn follow(
        &mut self,
        timeline: &Timeline,
        interval: Span,
        mut counter: impl FnMut() -> u64,
    ) {
        if timeline.steps() != self.steps {
            self.steps = timeline.steps();
            self.newest = Line::afresh(timeline.newest(), counter());
            self.lines.replace(&self.newest);
            return;
        }
        if counter() <= self.newest.start {
            return; // Readers know of two lines only, and the newest has not begun.
        }
        let rate = timeline.difference();
        let horizon = NonZeroU64::new(rate.ticks(interval)).unwrap_or(NonZeroU64::MIN);
        let mut lead = rate.ticks(LEAD).max(2);
        // Less than so many ticks before it wraps, the counter is left to itself.
        while let Some(start) = counter().checked_add(lead)
            && start.checked_add(horizon.get()).is_some()
        {
            let line = self.newest.towards(timeline.newest(), start, horizon);
            if self.lines.publish(&line, start - lead / 2, &mut counter) {
                self.newest = line;
                return;
            }
            // Stopped in the middle of it: with more time it succeeds the sooner.
            lead = lead.saturating_mul(2);
        }
        self.lines.give_up();
    }
}
