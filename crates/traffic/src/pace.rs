//! Waits for deadlines: sleeps while the deadline is far, and busy-waits on the counter when it is
//! near.
//!
//! A sleep ends late. The wake-up latency depends on the machine and its load: timer slack, exit
//! from the processor's idle state, other running threads. So each sleep ends a *margin* before the
//! deadline, and a busy-wait follows. The margin is twice the recent max wake-up latency, which
//! decays by 1/64 per sleep. An idle machine busy-waits 50 us per packet, a busy one longer. A wait
//! without a sleep also decays the max, but more slowly. Otherwise one late wake-up could raise the
//! margin above the interval, and no sleep would ever correct it.

use std::sync::atomic::{AtomicBool, Ordering};

use wirestamp_clock::Span;

use crate::PacingClock;

/// Bounds and start value of the margin. The min covers a timer interrupt and a wake-up on an idle
/// machine. Above the max, the machine is too busy for precise pacing, and a longer busy-wait would
/// add load.
const MARGIN_MIN: Span = Span::from_nanos(50_000);
const MARGIN_MAX: Span = Span::from_millis(2);
const MARGIN_START: Span = Span::from_nanos(200_000);

/// Divisor of the decay after a wait without sleep: at a thousand packets per second the margin
/// halves in a few seconds.
const SPUN_DECAY_DIVISOR: i64 = 4096;

/// Max sleep: the max delay until a stop request takes effect.
const MAX_SLEEP: Span = Span::from_millis(10);

/// Result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitResult {
    /// The deadline is reached.
    Due,
    /// A sleep ended after the deadline.
    Overslept,
    /// A stop was requested.
    Stopped,
}

/// Waits for deadlines, and adapts to the machine's wake-up latency.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Recent max wake-up latency.
    latency: Span,
}

impl Pacer {
    pub(crate) const fn new() -> Self {
        Self { latency: Span::from_nanos(MARGIN_START.as_nanos() / 2) }
    }

    /// Time between the end of the last sleep and the deadline.
    fn margin(&self) -> Span {
        (self.latency + self.latency).clamp(MARGIN_MIN, MARGIN_MAX)
    }

    fn record_latency(&mut self, latency: Span) {
        self.decay(64);
        self.latency = self.latency.max(latency);
    }

    fn decay(&mut self, divisor: i64) {
        self.latency = self.latency - Span::from_nanos(self.latency.as_nanos() / divisor);
    }

    /// Returns as soon as the counter has reached `deadline`, never before; returns early only if
    /// `stop` is set.
    pub(crate) fn wait(
        &mut self,
        clock: &impl PacingClock,
        deadline: u64,
        stop: &AtomicBool,
    ) -> WaitResult {
        let mut slept = false;
        // The margin never shrinks within one wait. Otherwise another tiny sleep would seem to fit,
        // and it would end as late as a long one.
        let mut margin = self.margin();
        loop {
            if stop.load(Ordering::Relaxed) {
                return WaitResult::Stopped;
            }
            let now = clock.now();
            if now >= deadline {
                return if slept { WaitResult::Overslept } else { WaitResult::Due };
            }
            let ahead = clock.span(now, deadline) - margin;
            if ahead <= Span::ZERO {
                // Back-to-back packets never sleep, so they do not affect the margin.
                if !slept && clock.span(now, deadline) > MARGIN_MIN {
                    self.decay(SPUN_DECAY_DIVISOR);
                }
                // No pause instruction: in a virtual machine it may exit to the hypervisor.
                while clock.now() < deadline {}
                return WaitResult::Due;
            }
            let asked = ahead.min(MAX_SLEEP);
            clock.sleep(asked);
            slept = true;
            self.record_latency(clock.span(now, clock.now()) - asked);
            margin = margin.max(self.margin());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use proptest::prelude::*;
    use wirestamp_clock::{Time, Utc};

    use super::*;

    /// A clock of 2.5 GHz: a reading takes 20 ns, and sleeps end late.
    struct Simulated {
        nanos: Cell<i64>,
        /// Wake-up latencies of the next sleeps, in nanoseconds.
        late: RefCell<Box<dyn Iterator<Item = i64>>>,
        slept: Cell<i64>,
    }

    impl Simulated {
        fn new(late: impl Iterator<Item = i64> + 'static) -> Self {
            let late = RefCell::new(Box::new(late) as Box<_>);
            Self { nanos: Cell::new(1_000_000), late, slept: Cell::new(0) }
        }
    }

    impl PacingClock for Simulated {
        fn now(&self) -> u64 {
            self.nanos.set(self.nanos.get() + 20);
            u64::try_from(self.nanos.get() * 5 / 2).unwrap()
        }
        fn ticks(&self, span: Span) -> u64 {
            u64::try_from(span.as_nanos() * 5 / 2).unwrap()
        }
        fn span(&self, from: u64, to: u64) -> Span {
            Span::from_nanos((i64::try_from(to).unwrap() - i64::try_from(from).unwrap()) * 2 / 5)
        }
        fn utc(&self, reading: u64) -> Time<Utc> {
            Time::from_nanos(i64::try_from(reading).unwrap())
        }
        fn sleep(&self, span: Span) {
            assert!(span > Span::ZERO && span <= MAX_SLEEP, "{span:?}");
            let late = self.late.borrow_mut().next().unwrap_or(0);
            self.nanos.set(self.nanos.get() + span.as_nanos() + late);
            self.slept.set(self.slept.get() + span.as_nanos());
        }
    }

    static RUNNING: AtomicBool = AtomicBool::new(false);

    proptest! {
        #[test]
        fn packets_are_on_time_while_latency_varies_by_two(
            late in prop::collection::vec(50_000_i64..100_000, 1..200), interval in 1_i64..30_000_000,
        ) {
            let clock = Simulated::new(late.into_iter().cycle());
            let mut pacer = Pacer::new();
            let step = clock.ticks(Span::from_nanos(interval));
            let mut deadline = clock.now();
            for _ in 0..100 {
                deadline += step;
                prop_assert_eq!(pacer.wait(&clock, deadline, &RUNNING), WaitResult::Due);
                let error = clock.span(deadline, clock.now()).as_nanos();
                // Two readings of 20 ns: one in the wait, one here.
                prop_assert!((0..=40).contains(&error) || interval < 60, "{error} ns");
            }
        }
    }

    #[test]
    fn late_wake_up_is_reported_and_raises_the_margin() {
        let clock = Simulated::new([0, 700_000].into_iter().chain(std::iter::repeat(600_000)));
        let mut pacer = Pacer::new();
        let step = clock.ticks(Span::from_millis(5));
        let start = clock.now();
        let waits: Vec<_> =
            (1..=20).map(|k| pacer.wait(&clock, start + k * step, &RUNNING)).collect();
        assert_eq!(waits[1], WaitResult::Overslept);
        let others = waits.iter().enumerate().filter(|&(k, _)| k != 1);
        assert!(others.map(|(_, wait)| *wait).all(|wait| wait == WaitResult::Due), "{waits:?}");
        assert!(pacer.margin() > Span::from_nanos(1_200_000));
    }

    #[test]
    fn short_waits_sleep_again_after_very_late_wake_up() {
        let clock = Simulated::new(std::iter::once(3_000_000).chain(std::iter::repeat(5_000)));
        let mut pacer = Pacer::new();
        let step = clock.ticks(Span::from_nanos(1_367_992));
        let start = clock.now();
        let mut slept_at_last = 0;
        for k in 1..=20_000 {
            let before = clock.slept.get();
            pacer.wait(&clock, start + k * step, &RUNNING);
            slept_at_last = clock.slept.get() - before;
        }
        assert!(slept_at_last > 1_200_000, "{slept_at_last} ns of 1,367,992");
    }

    #[test]
    fn idle_machine_sleeps_most_of_the_wait() {
        let clock = Simulated::new(std::iter::repeat(5_000));
        let mut pacer = Pacer::new();
        let step = clock.ticks(Span::from_millis(20));
        let start = clock.now();
        for k in 1..=500 {
            assert_eq!(pacer.wait(&clock, start + k * step, &RUNNING), WaitResult::Due);
        }
        assert_eq!(pacer.margin(), MARGIN_MIN);
        assert!(clock.slept.get() > 500 * 19_800_000, "{} ns", clock.slept.get());
    }

    #[test]
    fn stop_ends_the_wait() {
        let clock = Simulated::new(std::iter::empty());
        let stop = AtomicBool::new(true);
        assert_eq!(Pacer::new().wait(&clock, u64::MAX, &stop), WaitResult::Stopped);
    }
}
