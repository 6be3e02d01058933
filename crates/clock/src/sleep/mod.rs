//! Sleeping until a tick: in the kernel at first, spinning on the counter at the end.
//!
//! A sleep ends late because of the timer's slack (50 us for an ordinary thread, prctl(2), `PR_SET_TIMERSLACK`), the
//! exit from the processor's idle state, and other running threads. So the sleep ends a [`Margin`] before the deadline,
//! and the thread spins for the rest. Another thread can end both parts with an [`Interrupter`].
//!
//! # Long sleeps
//! The kernel measures a sleep by `CLOCK_MONOTONIC`, which is slewed against the counter, usually by up to 500 ppm
//! (adjtimex(2), `ADJ_FREQUENCY`). In a sleep of 50 ms that is 25 us, within the min margin of [`Margin::DEFAULT`]. A
//! time daemon that slews by up to 10 % can delay a sleep by up to 10 %.
//!
//! A longer sleep ends 1 ms early, at the latest after one second, and further sleeps cover the rest. That also limits
//! the time until a jump of the counter, after a suspend or a migration, is detected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::{
    ClockMismatch, Counter, CounterTicks, DifferenceClock, OutOfRange, Span, TickSpan, TickTime,
    Ticking,
};

/// Up to this length the slewing of the kernel's clock is negligible.
const SHORT_SLEEP: Span = Span::from_millis(50);
/// How much earlier a longer sleep ends: twice 500 ppm of [`MAX_SLEEP`].
const LONG_SLEEP_ADVANCE: Span = Span::from_millis(1);
/// The remembered lateness decays by one part in this number per sleep, and per spun wait long enough for a sleep.
const DECAY_SLEPT: i64 = 64;
const DECAY_SPUN: i64 = 4_096;
/// Max length of one sleep.
const MAX_SLEEP: Span = Span::from_secs(1);

/// Time before the deadline at which the sleep ends and the spinning begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// Constant. Not positive: never spins. [`Span::MAX`]: never sleeps.
    Fixed(Span),
    /// Twice the worst recent lateness, which decays by 1/64 per sleep: a quiet machine spins little, a busy one
    /// more. It starts at four times `min`.
    ///
    /// Waits longer than `min` and shorter than the margin are spun and give no new lateness. Each of them decays the
    /// lateness by 1/4096, so that one late wake-up does not keep the processor busy permanently. If all sleeps are
    /// this late, about one wait in some thousand tries to sleep again and is late.
    Adaptive {
        /// Min margin. Not positive counts as zero.
        min: Span,
        /// Max margin; `min` takes precedence if it is larger.
        max: Span,
    },
}

impl Margin {
    /// Leaves the whole wait to the kernel. Costs no processor time, but each wake-up latency delays its end.
    pub const SLEEP_ONLY: Self = Self::Fixed(Span::ZERO);
    /// Never sleeps. Keeps a processor busy, and is late by one read.
    pub const SPIN_ONLY: Self = Self::Fixed(Span::MAX);
    /// From 50 us to 2 ms. The min covers a timer's interrupt and a wake-up on an idle machine, with reserve. Beyond
    /// the max, the machine is too busy for precision, and longer spinning would make it busier.
    pub const DEFAULT: Self =
        Self::Adaptive { min: Span::from_nanos(50_000), max: Span::from_millis(2) };

    /// The margin after sleeps of this lateness.
    fn after(self, lateness: Span) -> Span {
        match self {
            Self::Fixed(margin) => margin.max(Span::ZERO),
            Self::Adaptive { min, max } => (lateness + lateness).min(max).max(min).max(Span::ZERO),
        }
    }

    /// Initial lateness.
    fn first_lateness(self) -> Span {
        match self {
            Self::Fixed(_) => Span::ZERO,
            Self::Adaptive { min, .. } => min + min,
        }
    }
}

impl Default for Margin {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Outcome of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake<C> {
    /// The deadline has passed.
    Due {
        /// Time since the deadline at the read that detected it; never negative.
        late: TickSpan<C>,
        /// True if the kernel woke the thread only after the deadline, so that nothing was left to spin: the margin
        /// was too small or zero.
        overslept: bool,
    },
    /// Another thread interrupted the sleep.
    Interrupted {
        /// Time left until the deadline; negative if it has passed.
        ahead: TickSpan<C>,
    },
}

/// Ends a [`Sleeper`]'s sleep from any thread. Clones interrupt the same sleeper.
#[derive(Clone, Debug, Default)]
pub struct Interrupter(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    raised: AtomicBool,
    /// Held to set the flag and to check it before waiting, so that no wake-up is missed.
    lock: Mutex<()>,
    wakes: Condvar,
}

impl Interrupter {
    /// Ends the current sleep, or the next one if there is none.
    ///
    /// Interrupts do not accumulate: several before the end of a sleep end only that one. Earlier writes of this
    /// thread are visible to the sleeping thread.
    pub fn interrupt(&self) {
        {
            let _lock = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.raised.store(true, Ordering::Release);
        }
        self.0.wakes.notify_one();
    }

    /// Waits in the kernel until interrupted, or for `at_most`; the interrupt stays pending.
    pub fn wait(&self, at_most: Duration) {
        let lock = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // The mutex protects no data, so a poisoned lock is valid.
        let _ = self.0.wakes.wait_timeout_while(lock, at_most, |()| !self.is_pending());
    }

    /// True if an interrupt has not ended a sleep yet.
    #[inline]
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.0.raised.load(Ordering::Relaxed)
    }

    /// Clears the pending interrupt; true if there was one.
    #[inline]
    fn take(&self) -> bool {
        // A plain load in every round of the spin; the exchange only if needed.
        self.is_pending() && self.0.raised.swap(false, Ordering::Acquire)
    }
}

/// The clock of a [`Sleeper`].
pub trait SleepClock {
    /// The clock, as a type.
    type Ticks: Ticking;

    /// The current time, which the spinning reads.
    fn now(&self) -> TickTime<Self::Ticks>;

    /// A span in nanoseconds. A rough rate is sufficient: it determines when spinning begins, not when the sleep
    /// ends.
    fn span(&self, ticks: TickSpan<Self::Ticks>) -> Span;

    /// Sleeps until interrupted, or for `at_most`, possibly a little longer.
    fn sleep(&self, interrupter: &Interrupter, at_most: Duration) {
        interrupter.wait(at_most);
    }
}

/// The machine's counter with a rate: the clock of a [`Sleeper`] outside of tests.
#[derive(Clone, Copy, Debug)]
pub struct CounterSleep {
    counter: Counter,
    rate: DifferenceClock,
}

impl CounterSleep {
    /// Sleeps by `counter`, which ticks at `rate`. The rate may be old, because it measures only the last second
    /// before a deadline.
    ///
    /// # Errors
    /// If `rate` belongs to another clock.
    pub fn new(counter: Counter, rate: DifferenceClock) -> Result<Self, ClockMismatch> {
        TickSpan::<CounterTicks>::ZERO.to_span(&rate)?;
        Ok(Self { counter, rate })
    }

    /// The rate given at creation.
    #[must_use]
    pub const fn rate(&self) -> &DifferenceClock {
        &self.rate
    }
}

impl SleepClock for CounterSleep {
    type Ticks = CounterTicks;

    #[inline(always)]
    fn now(&self) -> TickTime<CounterTicks> {
        TickTime::now(self.counter)
    }

    fn span(&self, ticks: TickSpan<CounterTicks>) -> Span {
        ticks.to_span(&self.rate).expect("the rate was checked to be the counter's in `new`")
    }
}

/// Sleeps until deadlines, and adapts to the machine's wake-up latency. For use by one thread.
///
/// ```
/// use wirestamp_clock::{ClockService, CounterSleep, Margin, Sleeper, Span, TickSpan, TickTime, Wake};
///
/// let service = ClockService::start(wirestamp_clock::Counter::select())?;
/// let counter = service.counter();
/// let rate = service.timeline(counter.domain()).difference();
/// let mut sleeper = Sleeper::new(CounterSleep::new(counter, rate)?, Margin::DEFAULT);
/// let deadline = TickTime::now(counter) + TickSpan::of(Span::from_micros(200), &rate)?;
/// match sleeper.sleep_until(deadline) {
///     Wake::Due { late, .. } => println!("{} late", late.to_span(&rate)?),
///     Wake::Interrupted { .. } => unreachable!("there is no interrupter"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sleeper<K> {
    clock: K,
    margin: Margin,
    /// Worst recent lateness.
    lateness: Span,
    interrupter: Interrupter,
}

impl<K: SleepClock> Sleeper<K> {
    /// A sleeper by `clock`, whose sleeps end `margin` before the deadline.
    #[must_use]
    pub fn new(clock: K, margin: Margin) -> Self {
        let interrupter = Interrupter::default();
        Self { clock, margin, lateness: margin.first_lateness(), interrupter }
    }

    /// Handle by which other threads end this sleeper's sleeps.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// Time before a deadline at which the next sleep would end.
    #[must_use]
    pub fn margin(&self) -> Span {
        self.margin.after(self.lateness)
    }

    /// The clock that it sleeps by.
    #[must_use]
    pub const fn clock(&self) -> &K {
        &self.clock
    }

    /// Returns as soon as the clock has reached `deadline`, and not before, unless interrupted.
    ///
    /// A pending interrupt takes precedence over a reached deadline. For a deadline in the past it returns at once,
    /// with the lateness.
    pub fn sleep_until(&mut self, deadline: TickTime<K::Ticks>) -> Wake<K::Ticks> {
        let mut slept = false;
        // Within one call the margin only grows. If it shrank after a sleep, another very short sleep would fit in
        // and end too late.
        let mut margin = self.margin();
        loop {
            let now = self.clock.now();
            if self.interrupter.take() {
                return Wake::Interrupted { ahead: deadline - now };
            }
            if now >= deadline {
                return Wake::Due { late: now - deadline, overslept: slept };
            }
            let left = self.clock.span(deadline - now);
            let ahead = left - margin;
            if ahead <= Span::ZERO && margin > Span::ZERO {
                if !slept && left > self.margin.after(Span::ZERO) {
                    self.lateness = self.decayed(DECAY_SPUN);
                }
                return self.spin_until(deadline);
            }
            self.sleep_once(now, ahead);
            slept = true;
            margin = margin.max(self.margin());
        }
    }

    /// Spins until the deadline or an interrupt.
    fn spin_until(&self, deadline: TickTime<K::Ticks>) -> Wake<K::Ticks> {
        // No pause instruction: in a virtual machine it may exit to the hypervisor.
        loop {
            let now = self.clock.now();
            if self.interrupter.take() {
                return Wake::Interrupted { ahead: deadline - now };
            }
            if now >= deadline {
                return Wake::Due { late: now - deadline, overslept: false };
            }
        }
    }

    /// Sleeps `ahead`, or the part of it that one sleep covers.
    fn sleep_once(&mut self, now: TickTime<K::Ticks>, ahead: Span) {
        // Without a margin even less than a nanosecond must be slept.
        let asked = if ahead > SHORT_SLEEP {
            (ahead - LONG_SLEEP_ADVANCE).min(MAX_SLEEP)
        } else {
            ahead.max(Span::from_nanos(1))
        };
        let at_most = Duration::try_from(asked).unwrap_or_else(OutOfRange::into_nearest);
        self.clock.sleep(&self.interrupter, at_most);
        // The lateness of a long sleep is mostly slewing, and an interrupted one has none.
        if ahead <= SHORT_SLEEP && !self.interrupter.is_pending() {
            let lateness = self.clock.span(self.clock.now() - now) - asked;
            self.lateness = lateness.max(self.decayed(DECAY_SLEPT));
        }
    }

    /// The lateness less one part in `parts`.
    fn decayed(&self, parts: i64) -> Span {
        self.lateness - Span::from_nanos(self.lateness.as_nanos() / parts)
    }
}

#[cfg(test)]
mod tests;
