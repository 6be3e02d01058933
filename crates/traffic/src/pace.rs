//! Waiting for a deadline: asleep while it is far, spinning on the counter when it is near.
//!
//! A sleep ends late, by how much depends on the machine and its load: the timer's slack, the way
//! out of the processor's idle state, whoever is running. So the sleep ends a *margin* ahead of the
//! deadline, and the rest is spun. The margin follows what is seen: twice the worst lateness of
//! late, which is forgotten by 1/64 a sleep. A quiet machine spins 50 us a packet, a busy one more.
//! A wait that leaves no room for a sleep forgets too, only more slowly: otherwise one late wake-up
//! could raise the margin above the interval, and all that follows would be spun and nothing
//! learned.

use std::sync::atomic::{AtomicBool, Ordering};

use wirestamp_clock::Span;

use crate::PacingClock;

/// The margin's bounds, and where it begins. The least is what a timer's interrupt and a wake-up
/// take on an idle machine, with room to spare; beyond the most, the machine is too busy to be
/// paced precisely, and spinning longer would make it busier.
const MARGIN_MIN: Span = Span::from_nanos(50_000);
const MARGIN_MAX: Span = Span::from_millis(2);
const MARGIN_FIRST: Span = Span::from_nanos(200_000);

/// A wait that is spun whole forgets one part in so many: at a thousand packets a second the margin
/// halves in some seconds.
const SPUN_FORGET: i64 = 4096;

/// The longest sleep in one go: how long a request to stop may go unnoticed.
const SLICE: Span = Span::from_millis(10);

/// What became of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The deadline is here.
    Due,
    /// The deadline is here, and a sleep ended only after it.
    Overslept,
    /// Somebody asked to stop.
    Stopped,
}

/// Waits for deadlines, and learns how late this machine wakes up.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// The worst lateness of late.
    lateness: Span,
}

impl Pacer {
    pub(crate) const fn new() -> Self {
        Self { lateness: Span::from_nanos(MARGIN_FIRST.as_nanos() / 2) }
    }

    /// How long before a deadline the last sleep ends.
    fn margin(&self) -> Span {
        (self.lateness + self.lateness).clamp(MARGIN_MIN, MARGIN_MAX)
    }

    fn learn(&mut self, lateness: Span) {
        self.forget(64);
        self.lateness = self.lateness.max(lateness);
    }

    fn forget(&mut self, divisor: i64) {
        let forgotten = Span::from_nanos(self.lateness.as_nanos() / divisor);
        self.lateness = self.lateness - forgotten;
    }

    /// Returns as soon as the counter has reached `deadline`, and not before, unless `stop` is set.
    pub(crate) fn wait(
        &mut self,
        clock: &impl PacingClock,
        deadline: u64,
        stop: &AtomicBool,
    ) -> Wait {
        let mut slept = false;
        // Within one wait the margin only grows: as it shrank with a sleep, another, tiny one would
        // seem to fit in, and end as late as any.
        let mut margin = self.margin();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Wait::Stopped;
            }
            let now = clock.now();
            if now >= deadline {
                return if slept { Wait::Overslept } else { Wait::Due };
            }
            let ahead = clock.span(now, deadline) - margin;
            if ahead <= Span::ZERO {
                // Packets back to back are spun whatever the margin, and say nothing about it.
                if !slept && clock.span(now, deadline) > MARGIN_MIN {
                    self.forget(SPUN_FORGET);
                }
                // No pause instruction: in a virtual machine it may leave to the hypervisor.
                while clock.now() < deadline {}
                return Wait::Due;
            }
            let asked = ahead.min(SLICE);
            clock.sleep(asked);
            slept = true;
            self.learn(clock.span(now, clock.now()) - asked);
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

    /// A clock of 2.5 GHz on which a reading takes 20 ns and a sleep ends late.
    struct Simulated {
        nanos: Cell<i64>,
        /// How late the coming sleeps end, in turn, in nanoseconds.
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
            assert!(span > Span::ZERO && span <= SLICE, "{span:?}");
            let late = self.late.borrow_mut().next().unwrap_or(0);
            self.nanos.set(self.nanos.get() + span.as_nanos() + late);
            self.slept.set(self.slept.get() + span.as_nanos());
        }
    }

    static RUNNING: AtomicBool = AtomicBool::new(false);

    proptest! {
        #[test]
        fn a_packet_is_never_early_nor_overslept_while_lateness_varies_by_a_factor_of_two(
            late in prop::collection::vec(50_000_i64..100_000, 1..200), interval in 1_i64..30_000_000,
        ) {
            let clock = Simulated::new(late.into_iter().cycle());
            let mut pacer = Pacer::new();
            let step = clock.ticks(Span::from_nanos(interval));
            let mut deadline = clock.now();
            for _ in 0..100 {
                deadline += step;
                prop_assert_eq!(pacer.wait(&clock, deadline, &RUNNING), Wait::Due);
                let error = clock.span(deadline, clock.now()).as_nanos();
                // Found by a reading, and read once more: two readings of 20 ns.
                prop_assert!((0..=40).contains(&error) || interval < 60, "{error} ns");
            }
        }
    }

    #[test]
    fn one_late_wake_up_is_reported_and_the_margin_follows_it() {
        let clock = Simulated::new([0, 700_000].into_iter().chain(std::iter::repeat(600_000)));
        let mut pacer = Pacer::new();
        let step = clock.ticks(Span::from_millis(5));
        let start = clock.now();
        let waits: Vec<_> =
            (1..=20).map(|k| pacer.wait(&clock, start + k * step, &RUNNING)).collect();
        assert_eq!(waits[1], Wait::Overslept);
        let others = waits.iter().enumerate().filter(|&(k, _)| k != 1);
        assert!(others.map(|(_, wait)| *wait).all(|wait| wait == Wait::Due), "{waits:?}");
        assert!(pacer.margin() > Span::from_nanos(1_200_000));
    }

    #[test]
    fn after_one_very_late_wake_up_short_waits_are_slept_again() {
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
    fn on_a_quiet_machine_most_of_the_wait_is_slept() {
        let clock = Simulated::new(std::iter::repeat(5_000));
        let mut pacer = Pacer::new();
        let step = clock.ticks(Span::from_millis(20));
        let start = clock.now();
        for k in 1..=500 {
            assert_eq!(pacer.wait(&clock, start + k * step, &RUNNING), Wait::Due);
        }
        assert_eq!(pacer.margin(), MARGIN_MIN);
        assert!(clock.slept.get() > 500 * 19_800_000, "{} ns", clock.slept.get());
    }

    #[test]
    fn a_request_to_stop_ends_the_wait() {
        let clock = Simulated::new(std::iter::empty());
        let stop = AtomicBool::new(true);
        assert_eq!(Pacer::new().wait(&clock, u64::MAX, &stop), Wait::Stopped);
    }
}
