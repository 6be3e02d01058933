//! The sleeper on a simulated clock, and interrupts between real threads.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU64;
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::Domain;

type Tick = TickTime<CounterTicks>;
type Ticks = TickSpan<CounterTicks>;

/// A clock of 2.5 GHz on which a reading takes 20 ns and a sleep ends late.
struct SimulatedClock {
    nanos: Cell<i64>,
    /// Lateness of the following sleeps, in nanoseconds; negative is early.
    late: RefCell<Box<dyn Iterator<Item = i64>>>,
    /// Slowness of the kernel's clock, in ppm.
    slow_ppm: i64,
    sleeps: Cell<u32>,
    slept: Cell<i64>,
    reads: Cell<u32>,
    /// The sleep or the read during which an interrupt arrives.
    interrupted_sleep: Option<u32>,
    interrupted_read: Option<(u32, Interrupter)>,
}

impl SimulatedClock {
    fn new(late: impl Iterator<Item = i64> + 'static) -> Self {
        Self {
            nanos: Cell::new(1_000_000),
            late: RefCell::new(Box::new(late)),
            slow_ppm: 0,
            sleeps: Cell::new(0),
            slept: Cell::new(0),
            reads: Cell::new(0),
            interrupted_sleep: None,
            interrupted_read: None,
        }
    }
}

fn ticks(nanos: i64) -> Ticks {
    Ticks::from_count(nanos.saturating_mul(5) / 2)
}

impl SleepClock for SimulatedClock {
    type Ticks = CounterTicks;

    fn now(&self) -> Tick {
        self.nanos.set(self.nanos.get() + 20);
        self.reads.set(self.reads.get() + 1);
        if let Some((read, interrupter)) = &self.interrupted_read
            && *read == self.reads.get()
        {
            interrupter.interrupt();
        }
        Tick::from_count(0) + ticks(self.nanos.get())
    }

    fn span(&self, ticks: Ticks) -> Span {
        Span::from_nanos(ticks.count() / 5 * 2)
    }

    fn sleep(&self, interrupter: &Interrupter, at_most: Duration) {
        let asked = Span::try_from(at_most).unwrap();
        assert!(asked > Span::ZERO && asked <= MAX_SLEEP, "{asked:?}");
        if self.interrupted_sleep == Some(self.sleeps.get()) {
            interrupter.interrupt();
        }
        self.sleeps.set(self.sleeps.get() + 1);
        let late = self.late.borrow_mut().next().unwrap_or(0);
        let slept = asked.as_nanos() + asked.as_nanos() * self.slow_ppm / 1_000_000;
        self.nanos.set(self.nanos.get() + (slept + late).max(1));
        self.slept.set(self.slept.get() + slept);
    }
}

fn any_margin() -> impl Strategy<Value = Margin> {
    let span = || {
        prop_oneof![
            (0..3_000_000_i64).prop_map(Span::from_nanos),
            prop::sample::select(vec![Span::ZERO, Span::MAX, -Span::MAX, Span::from_nanos(1)]),
        ]
    };
    prop_oneof![
        span().prop_map(Margin::Fixed),
        (span(), span()).prop_map(|(min, max)| Margin::Adaptive { min, max }),
    ]
}

proptest! {
    #[test]
    fn no_sleep_ends_before_its_deadline(
        margin in any_margin(),
        late in prop::collection::vec(-1_000_000_i64..1_000_000, 1..50),
        intervals in prop::collection::vec(-1_000_000_i64..3_000_000, 1..20),
    ) {
        let mut sleeper = Sleeper::new(SimulatedClock::new(late.into_iter().cycle()), margin);
        for interval in intervals {
            let deadline = sleeper.clock().now() + ticks(interval);
            let Wake::Due { late, .. } = sleeper.sleep_until(deadline) else {
                panic!("no thread interrupts");
            };
            prop_assert!(late >= Ticks::ZERO);
            prop_assert!(sleeper.clock().now() >= deadline + late);
        }
    }

    #[test]
    fn margin_covers_lateness_that_varies_twofold(
        late in prop::collection::vec(50_000_i64..100_000, 1..200), interval in 60_i64..30_000_000,
    ) {
        let clock = SimulatedClock::new(late.into_iter().cycle());
        let mut deadline = clock.now();
        let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
        for _ in 0..100 {
            deadline += ticks(interval);
            let Wake::Due { late, overslept } = sleeper.sleep_until(deadline) else {
                panic!("no thread interrupts");
            };
            prop_assert!(!overslept);
            prop_assert!(late <= ticks(40) || interval < 100, "{late:?}");
        }
    }

    #[test]
    fn margin_stays_within_its_bounds(lateness in any::<i64>(), margin in any_margin()) {
        let found = margin.after(Span::from_nanos(lateness));
        prop_assert!(found >= Span::ZERO);
        if let Margin::Adaptive { min, max } = margin {
            prop_assert!(found >= min && found <= max.max(min).max(Span::ZERO));
        }
    }
}

#[test]
fn late_wake_up_is_reported_and_widens_margin() {
    let clock = SimulatedClock::new([0, 700_000].into_iter().chain(std::iter::repeat(600_000)));
    let start = clock.now();
    let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
    let overslept: Vec<_> = (1..=20)
        .map(|k| sleeper.sleep_until(start + ticks(5_000_000 * k)))
        .map(|wake| matches!(wake, Wake::Due { overslept: true, .. }))
        .collect();
    assert_eq!(overslept.iter().position(|&overslept| overslept), Some(1));
    assert_eq!(overslept.iter().filter(|&&overslept| overslept).count(), 1);
    assert!(sleeper.margin() > Span::from_nanos(1_200_000));
}

#[test]
fn margin_recovers_from_one_late_wake_up() {
    let clock = SimulatedClock::new(std::iter::once(5_000_000).chain(std::iter::repeat(5_000)));
    let mut deadline = clock.now();
    let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
    for _ in 0..10_000 {
        deadline += ticks(1_000_000);
        sleeper.sleep_until(deadline);
    }
    assert_eq!(sleeper.margin(), Span::from_nanos(50_000));
}

#[test]
fn quiet_machine_sleeps_most_of_the_wait() {
    let clock = SimulatedClock::new(std::iter::repeat(5_000));
    let start = clock.now();
    let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
    for k in 1..=500 {
        sleeper.sleep_until(start + ticks(20_000_000 * k));
    }
    assert_eq!(sleeper.margin(), Span::from_nanos(50_000));
    assert!(sleeper.clock().slept.get() > 500 * 19_800_000);
}

#[test]
fn slewed_kernel_clock_does_not_delay_long_sleeps() {
    for slow_ppm in [500, 0, -500] {
        let clock = SimulatedClock { slow_ppm, ..SimulatedClock::new(std::iter::repeat(5_000)) };
        let deadline = clock.now() + ticks(60_000_000_000);
        let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
        let wake = sleeper.sleep_until(deadline);
        assert!(matches!(wake, Wake::Due { overslept: false, .. }), "{slow_ppm}: {wake:?}");
        assert!(sleeper.margin() <= Span::from_nanos(200_000), "slewing is no lateness");
        assert!(sleeper.clock().sleeps.get() < 70);
    }
}

#[test]
fn sleep_only_and_spin_only_work() {
    let sleeper = |margin| Sleeper::new(SimulatedClock::new(std::iter::repeat(30_000)), margin);
    let mut sleeps = sleeper(Margin::SLEEP_ONLY);
    let deadline = sleeps.clock().now() + ticks(1_000_000);
    assert!(matches!(sleeps.sleep_until(deadline), Wake::Due { overslept: true, .. }));
    assert_eq!((sleeps.clock().sleeps.get(), sleeps.clock().reads.get()), (1, 4));

    let mut spins = sleeper(Margin::SPIN_ONLY);
    let deadline = spins.clock().now() + ticks(1_000_000);
    assert!(matches!(spins.sleep_until(deadline), Wake::Due { overslept: false, .. }));
    assert_eq!(spins.clock().sleeps.get(), 0);
}

#[test]
fn past_deadline_is_due_at_once_with_lateness() {
    let mut sleeper = Sleeper::new(SimulatedClock::new(std::iter::empty()), Margin::DEFAULT);
    let wake = sleeper.sleep_until(Tick::MIN);
    assert!(matches!(wake, Wake::Due { late, overslept: false } if late > ticks(1_000_000)));
    assert_eq!(sleeper.clock().reads.get(), 1);
}

#[test]
fn interrupt_ends_the_sleep_without_lateness() {
    let clock = SimulatedClock::new(std::iter::repeat(-9_000_000));
    let clock = SimulatedClock { interrupted_sleep: Some(0), ..clock };
    let deadline = clock.now() + ticks(10_000_000);
    let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
    let margin = sleeper.margin();
    let wake = sleeper.sleep_until(deadline);
    assert!(matches!(wake, Wake::Interrupted { ahead } if ahead > Ticks::ZERO), "{wake:?}");
    assert_eq!(sleeper.margin(), margin);
    assert!(matches!(sleeper.sleep_until(deadline), Wake::Due { .. }), "one sleep, not two");
}

#[test]
fn interrupt_ends_the_spinning() {
    let mut sleeper = Sleeper::new(SimulatedClock::new(std::iter::empty()), Margin::SPIN_ONLY);
    sleeper.clock.interrupted_read = Some((1_000, sleeper.interrupter()));
    let wake = sleeper.sleep_until(Tick::MAX);
    assert!(matches!(wake, Wake::Interrupted { ahead } if ahead > Ticks::ZERO), "{wake:?}");
    assert_eq!(sleeper.clock().reads.get(), 1_000);
}

#[test]
fn early_interrupts_end_only_the_next_sleep() {
    let mut sleeper = Sleeper::new(SimulatedClock::new(std::iter::empty()), Margin::DEFAULT);
    sleeper.interrupter().interrupt();
    sleeper.interrupter().interrupt();
    let deadline = sleeper.clock().now() + ticks(1_000_000);
    assert!(matches!(sleeper.sleep_until(deadline), Wake::Interrupted { .. }));
    assert!(matches!(sleeper.sleep_until(deadline), Wake::Due { .. }));
}

/// The machine's fallback counter, which counts nanoseconds.
fn os_clock() -> CounterSleep {
    let rate = |domain| {
        let one = NonZeroU64::MIN;
        DifferenceClock::new(domain, one, one, 1e-6, Span::from_nanos(1))
    };
    assert!(CounterSleep::new(Counter::Os, rate(Domain::Realtime)).is_err(), "another clock");
    CounterSleep::new(Counter::Os, rate(Domain::Counter)).unwrap()
}

#[test]
fn another_thread_ends_an_endless_sleep() {
    for margin in [Margin::SLEEP_ONLY, Margin::SPIN_ONLY, Margin::DEFAULT] {
        let mut sleeper = Sleeper::new(os_clock(), margin);
        for _ in 0..100 {
            let interrupter = sleeper.interrupter();
            let thread = thread::spawn(move || interrupter.interrupt());
            let wake = sleeper.sleep_until(Tick::MAX);
            assert!(matches!(wake, Wake::Interrupted { ahead } if ahead > Ticks::ZERO));
            thread.join().unwrap();
        }
    }
}

#[test]
fn real_sleep_ends_at_its_deadline() {
    for margin in [Margin::SLEEP_ONLY, Margin::SPIN_ONLY, Margin::DEFAULT] {
        let mut sleeper = Sleeper::new(os_clock(), margin);
        let deadline = sleeper.clock().now() + Ticks::from_count(1_000_000);
        assert!(matches!(sleeper.sleep_until(deadline), Wake::Due { .. }));
        assert!(sleeper.clock().now() >= deadline);
    }
}
