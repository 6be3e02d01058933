//! Sleeping until a tick: in the kernel while it is far, spinning on the counter when it is near.
//!
//! A sleep ends late: by the timer's slack (50 us for an ordinary thread, prctl(2),
//! `PR_SET_TIMERSLACK`), by the way out of the processor's idle state, by whoever is running. So
//! the sleep ends a [`Margin`] ahead of the deadline, and the rest is spun. Another thread can end
//! either part through an [`Interrupter`].
//!
//! # Long sleeps
//!
//! The kernel measures a sleep by `CLOCK_MONOTONIC`, which is slewed against the counter, by up to
//! 500 ppm in the ordinary course of things (adjtimex(2), `ADJ_FREQUENCY`). Up to 50 ms that is
//! 25 us, within the least margin of [`Margin::DEFAULT`]. A time daemon that slews faster, by up to
//! 10 %, can make a sleep late by as much.
//!
//! A longer sleep ends 1 ms early, no sleep is longer than a second, and what is left is slept
//! afterwards. That also bounds how long a jump of the counter, after a suspend or a migration, goes
//! unnoticed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::{
    Counter, CounterTicks, DifferenceClock, OtherClock, OutOfRange, Span, TickSpan, TickTime,
    Ticking,
};

/// Up to this the slewing of the kernel's clock does not matter.
const SHORT: Span = Span::from_millis(50);
/// How much earlier a longer sleep ends: what 500 ppm of [`LONGEST`] come to, twice.
const EARLIER: Span = Span::from_millis(1);
/// The part of the lateness that a sleep forgets, and a wait that could have been one.
const FORGET_SLEPT: i64 = 64;
const FORGET_SPUN: i64 = 4_096;
/// The longest sleep in one go.
const LONGEST: Span = Span::from_secs(1);

/// How long before the deadline the sleep ends and the spinning begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// Always the same. Not positive: never spins. [`Span::MAX`]: never sleeps.
    Fixed(Span),
    /// Twice the worst lateness of late, which is forgotten by 1/64 a sleep: a quiet machine spins
    /// little, a busy one more. It begins at four times `least`.
    ///
    /// Waits that are longer than `least` and shorter than the margin are spun and teach nothing.
    /// They forget by 1/4096 each, so that one bad wake-up does not keep the processor busy for
    /// good; where sleeping does not pay, about one in some thousand is late by trying.
    Adaptive {
        /// The margin is never smaller. Not positive counts as zero.
        least: Span,
        /// The margin is never larger; `least` wins where it is the smaller of the two.
        most: Span,
    },
}

impl Margin {
    /// Leaves all of it to the kernel. Costs no processor time, and is late by every wake-up.
    pub const SLEEP_ONLY: Self = Self::Fixed(Span::ZERO);
    /// Leaves none of it to the kernel. Keeps a processor busy, and is late by a read.
    pub const SPIN_ONLY: Self = Self::Fixed(Span::MAX);
    /// From 50 us to 2 ms. The least is what a timer's interrupt and a wake-up take on an idle
    /// machine, with room to spare. Beyond the most, the machine is too busy for precision, and
    /// spinning longer would make it busier.
    pub const DEFAULT: Self =
        Self::Adaptive { least: Span::from_nanos(50_000), most: Span::from_millis(2) };

    /// The margin after sleeps of this lateness.
    fn after(self, lateness: Span) -> Span {
        match self {
            Self::Fixed(margin) => margin.max(Span::ZERO),
            Self::Adaptive { least, most } => {
                (lateness + lateness).min(most).max(least).max(Span::ZERO)
            }
        }
    }

    /// The lateness to begin with.
    fn first_lateness(self) -> Span {
        match self {
            Self::Fixed(_) => Span::ZERO,
            Self::Adaptive { least, .. } => least + least,
        }
    }
}

impl Default for Margin {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake<C> {
    /// The deadline is here.
    Due {
        /// How long ago it was, by the read that found it past; never negative.
        late: TickSpan<C>,
        /// Whether the kernel woke the thread only after the deadline, so that nothing was left
        /// to spin: then the margin was too small, or there was none.
        overslept: bool,
    },
    /// Somebody interrupted.
    Interrupted {
        /// How far the deadline is still ahead; negative if it has passed.
        ahead: TickSpan<C>,
    },
}

/// Ends a [`Sleeper`]'s sleep from any thread. Clones interrupt the same sleeper.
#[derive(Clone, Debug, Default)]
pub struct Interrupter(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    raised: AtomicBool,
    /// Held to raise the flag and to look at it before waiting, so that no wake-up is missed.
    lock: Mutex<()>,
    wakes: Condvar,
}

impl Interrupter {
    /// Ends the sleep that is under way, or the next one if none is.
    ///
    /// Interrupts do not add up: several before a sleep has ended end only that one. What this
    /// thread wrote before is visible to the one that was sleeping.
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
        // Poisoned or not, there is nothing in the lock to be half done.
        let _ = self.0.wakes.wait_timeout_while(lock, at_most, |()| !self.is_pending());
    }

    /// Whether an interrupt has not ended a sleep yet.
    #[inline]
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.0.raised.load(Ordering::Relaxed)
    }

    /// Takes the pending interrupt, if there is one.
    #[inline]
    fn take(&self) -> bool {
        // A plain load on every round of the spin; the exchange only when it is worth it.
        self.is_pending() && self.0.raised.swap(false, Ordering::Acquire)
    }
}

/// What a [`Sleeper`] needs of a clock.
pub trait SleepClock {
    /// The clock, as a type.
    type Ticks: Ticking;

    /// The present time. The spinning is on this.
    fn now(&self) -> TickTime<Self::Ticks>;

    /// A span in nanoseconds. A rough rate will do: it decides where spinning begins, not when the
    /// sleep ends.
    fn span(&self, ticks: TickSpan<Self::Ticks>) -> Span;

    /// Sleeps until interrupted, or for `at_most` or, as sleeps are, a little longer.
    fn sleep(&self, interrupter: &Interrupter, at_most: Duration) {
        interrupter.wait(at_most);
    }
}

/// The machine's counter with a rate: what a [`Sleeper`] sleeps by outside of tests.
#[derive(Clone, Copy, Debug)]
pub struct CounterSleep {
    counter: Counter,
    rate: DifferenceClock,
}

impl CounterSleep {
    /// Sleeps by `counter`, which ticks at `rate`. The rate may grow old, as only the last second
    /// before a deadline is measured by it.
    ///
    /// # Errors
    /// If `rate` is another clock's.
    pub fn new(counter: Counter, rate: DifferenceClock) -> Result<Self, OtherClock> {
        TickSpan::<CounterTicks>::ZERO.to_span(&rate)?;
        Ok(Self { counter, rate })
    }

    /// The rate that it was made with.
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
        ticks.to_span(&self.rate).expect("the rate was found to be the counter's when it came")
    }
}

/// Sleeps until deadlines, and learns how late this machine wakes up. One thread's own.
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
///     Wake::Interrupted { .. } => unreachable!("nobody has an interrupter"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sleeper<K> {
    clock: K,
    margin: Margin,
    /// The worst lateness of late.
    lateness: Span,
    interrupter: Interrupter,
}

impl<K: SleepClock> Sleeper<K> {
    /// A sleeper by `clock`, whose sleeps end `margin` ahead.
    #[must_use]
    pub fn new(clock: K, margin: Margin) -> Self {
        let interrupter = Interrupter::default();
        Self { clock, margin, lateness: margin.first_lateness(), interrupter }
    }

    /// The handle by which other threads end this sleeper's sleeps.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// How long before a deadline the next sleep would end.
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
    /// An interrupt that is pending when both hold is taken first. A deadline in the past is due
    /// at once, and its lateness is told all the same.
    pub fn sleep_until(&mut self, deadline: TickTime<K::Ticks>) -> Wake<K::Ticks> {
        let mut slept = false;
        // Within one call the margin only grows: as it shrank with a sleep, another, tiny one would
        // seem to fit in, and end as late as any.
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
                    self.lateness = self.forgotten(FORGET_SPUN);
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
        // No pause instruction: in a virtual machine it may leave to the hypervisor.
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

    /// Sleeps `ahead`, or the part of it that can be slept in one go.
    fn sleep_once(&mut self, now: TickTime<K::Ticks>, ahead: Span) {
        // Without a margin even less than a nanosecond has to be slept.
        let asked = if ahead > SHORT {
            (ahead - EARLIER).min(LONGEST)
        } else {
            ahead.max(Span::from_nanos(1))
        };
        let at_most = Duration::try_from(asked).unwrap_or_else(OutOfRange::into_nearest);
        self.clock.sleep(&self.interrupter, at_most);
        // A long sleep's lateness is largely slewing, and an interrupted one has none.
        if ahead <= SHORT && !self.interrupter.is_pending() {
            let lateness = self.clock.span(self.clock.now() - now) - asked;
            self.lateness = lateness.max(self.forgotten(FORGET_SLEPT));
        }
    }

    /// The lateness without one part in `parts`.
    fn forgotten(&self, parts: i64) -> Span {
        self.lateness - Span::from_nanos(self.lateness.as_nanos() / parts)
    }
}

#[cfg(test)]
mod tests;
