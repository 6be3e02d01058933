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
struct Simulated {
    nanos: Cell<i64>,
    /// How late the coming sleeps end, in turn, in nanoseconds; negative is early.
    late: RefCell<Box<dyn Iterator<Item = i64>>>,
    /// Nanoseconds by which the kernel's clock is slow, in a million.
    slow_ppm: i64,
    sleeps: Cell<u32>,
    slept: Cell<i64>,
    reads: Cell<u32>,
    /// The sleep or the read during which somebody interrupts.
    interrupted_sleep: Option<u32>,
    interrupted_read: Option<(u32, Interrupter)>,
}

impl Simulated {
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

impl SleepClock for Simulated {
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
        assert!(asked > Span::ZERO && asked <= LONGEST, "{asked:?}");
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
        (span(), span()).prop_map(|(least, most)| Margin::Adaptive { least, most }),
    ]
}

proptest! {
    #[test]
    fn no_sleep_ends_before_its_deadline_whatever_the_kernel_does(
        margin in any_margin(),
        late in prop::collection::vec(-1_000_000_i64..1_000_000, 1..50),
        intervals in prop::collection::vec(-1_000_000_i64..3_000_000, 1..20),
    ) {
        let mut sleeper = Sleeper::new(Simulated::new(late.into_iter().cycle()), margin);
        for interval in intervals {
            let deadline = sleeper.clock().now() + ticks(interval);
            let Wake::Due { late, .. } = sleeper.sleep_until(deadline) else {
                panic!("nobody interrupts");
            };
            prop_assert!(late >= Ticks::ZERO);
            prop_assert!(sleeper.clock().now() >= deadline + late);
        }
    }

    #[test]
    fn a_deadline_is_never_overslept_while_lateness_varies_by_a_factor_of_two(
        late in prop::collection::vec(50_000_i64..100_000, 1..200), interval in 60_i64..30_000_000,
    ) {
        let clock = Simulated::new(late.into_iter().cycle());
        let mut deadline = clock.now();
        let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
        for _ in 0..100 {
            deadline += ticks(interval);
            let Wake::Due { late, overslept } = sleeper.sleep_until(deadline) else {
                panic!("nobody interrupts");
            };
            prop_assert!(!overslept);
            prop_assert!(late <= ticks(40) || interval < 100, "{late:?}");
        }
    }

    #[test]
    fn the_margin_stays_in_its_bounds_for_any_lateness(lateness in any::<i64>(), margin in any_margin()) {
        let found = margin.after(Span::from_nanos(lateness));
        prop_assert!(found >= Span::ZERO);
        if let Margin::Adaptive { least, most } = margin {
            prop_assert!(found >= least && found <= most.max(least).max(Span::ZERO));
        }
    }
}

#[test]
fn one_late_wake_up_is_reported_and_the_margin_follows_it() {
    let clock = Simulated::new([0, 700_000].into_iter().chain(std::iter::repeat(600_000)));
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
fn one_late_wake_up_does_not_have_short_waits_spun_for_good() {
    let clock = Simulated::new(std::iter::once(5_000_000).chain(std::iter::repeat(5_000)));
    let mut deadline = clock.now();
    let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
    for _ in 0..10_000 {
        deadline += ticks(1_000_000);
        sleeper.sleep_until(deadline);
    }
    assert_eq!(sleeper.margin(), Span::from_nanos(50_000));
}

#[test]
fn on_a_quiet_machine_most_of_the_wait_is_slept() {
    let clock = Simulated::new(std::iter::repeat(5_000));
    let start = clock.now();
    let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
    for k in 1..=500 {
        sleeper.sleep_until(start + ticks(20_000_000 * k));
    }
    assert_eq!(sleeper.margin(), Span::from_nanos(50_000));
    assert!(sleeper.clock().slept.get() > 500 * 19_800_000);
}

#[test]
fn a_minute_is_not_overslept_by_a_kernel_clock_that_is_slewed() {
    for slow_ppm in [500, 0, -500] {
        let clock = Simulated { slow_ppm, ..Simulated::new(std::iter::repeat(5_000)) };
        let deadline = clock.now() + ticks(60_000_000_000);
        let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
        let wake = sleeper.sleep_until(deadline);
        assert!(matches!(wake, Wake::Due { overslept: false, .. }), "{slow_ppm}: {wake:?}");
        assert!(sleeper.margin() <= Span::from_nanos(200_000), "slewing is no lateness");
        assert!(sleeper.clock().sleeps.get() < 70);
    }
}

#[test]
fn each_share_can_be_all_of_it() {
    let sleeper = |margin| Sleeper::new(Simulated::new(std::iter::repeat(30_000)), margin);
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
fn a_deadline_in_the_past_is_due_at_once_and_its_lateness_told() {
    let mut sleeper = Sleeper::new(Simulated::new(std::iter::empty()), Margin::DEFAULT);
    let wake = sleeper.sleep_until(Tick::MIN);
    assert!(matches!(wake, Wake::Due { late, overslept: false } if late > ticks(1_000_000)));
    assert_eq!(sleeper.clock().reads.get(), 1);
}

#[test]
fn an_interrupt_ends_the_sleep_and_teaches_no_lateness() {
    let clock = Simulated::new(std::iter::repeat(-9_000_000));
    let clock = Simulated { interrupted_sleep: Some(0), ..clock };
    let deadline = clock.now() + ticks(10_000_000);
    let mut sleeper = Sleeper::new(clock, Margin::DEFAULT);
    let margin = sleeper.margin();
    let wake = sleeper.sleep_until(deadline);
    assert!(matches!(wake, Wake::Interrupted { ahead } if ahead > Ticks::ZERO), "{wake:?}");
    assert_eq!(sleeper.margin(), margin);
    assert!(matches!(sleeper.sleep_until(deadline), Wake::Due { .. }), "one sleep, not two");
}

#[test]
fn an_interrupt_ends_the_spinning() {
    let mut sleeper = Sleeper::new(Simulated::new(std::iter::empty()), Margin::SPIN_ONLY);
    sleeper.clock.interrupted_read = Some((1_000, sleeper.interrupter()));
    let wake = sleeper.sleep_until(Tick::MAX);
    assert!(matches!(wake, Wake::Interrupted { ahead } if ahead > Ticks::ZERO), "{wake:?}");
    assert_eq!(sleeper.clock().reads.get(), 1_000);
}

#[test]
fn interrupts_before_a_sleep_end_the_next_one_only() {
    let mut sleeper = Sleeper::new(Simulated::new(std::iter::empty()), Margin::DEFAULT);
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
fn another_thread_ends_a_sleep_that_would_never_end() {
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
fn a_real_sleep_ends_at_its_deadline_and_not_before() {
    for margin in [Margin::SLEEP_ONLY, Margin::SPIN_ONLY, Margin::DEFAULT] {
        let mut sleeper = Sleeper::new(os_clock(), margin);
        let deadline = sleeper.clock().now() + Ticks::from_count(1_000_000);
        assert!(matches!(sleeper.sleep_until(deadline), Wake::Due { .. }));
        assert!(sleeper.clock().now() >= deadline);
    }
}
