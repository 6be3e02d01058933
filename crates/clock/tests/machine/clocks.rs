//! The clocks of a machine, and the truth about them.
//!
//! One oscillator drives the counter and `CLOCK_MONOTONIC_RAW`, as in a real machine; its rate
//! against true time is off and wanders. The system clock is kept to true time from outside, up to
//! what happens to it. Every reading takes time before and after the instant at which it happens,
//! and some are interrupted.

use std::cell::RefCell;
use std::rc::Rc;

use wirestamp_clock::{Clocks, Domain, MonotonicRaw, Time, Utc};

use super::Random;

/// What happens to the clocks at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// From now on the system clock runs faster than true time by this fraction.
    Slew(f64),
    /// The system clock jumps by so many nanoseconds. So it does in a suspend, in which the counter
    /// and `CLOCK_MONOTONIC_RAW` stand still.
    Step(f64),
    /// The counter alone jumps by what it counts in so many nanoseconds.
    CounterJump(f64),
    /// The counter starts again from a much lower value.
    CounterReset,
    /// The counter, but not `CLOCK_MONOTONIC_RAW`, runs at this multiple of its rate.
    CounterRate(f64),
}

/// What the simulated machine is like. Times in nanoseconds of true time since its start.
#[derive(Clone)]
pub(crate) struct Conditions {
    /// What the counter is.
    pub(crate) domain: Domain,
    /// How much longer the counter takes to read than the other clocks. The instant of the reading is
    /// anywhere in it.
    pub(crate) raw_delay: f64,
    pub(crate) hertz: f64,
    /// The counter moves in steps of so many ticks.
    pub(crate) step_ticks: u64,
    /// The oscillator's error against true time, as a fraction.
    pub(crate) rate_error: f64,
    /// The largest change of that error in a millisecond, as a fraction.
    pub(crate) wander: f64,
    /// The share of delays that are interrupted, and for how long at most.
    pub(crate) interrupted: f64,
    pub(crate) interruption: f64,
    /// In the order in which they happen.
    pub(crate) events: Vec<(f64, Event)>,
}

impl Conditions {
    /// A frequency error of up to 100 ppm that wanders by some 0.01 ppm in a second. One delay in
    /// fifty is interrupted, for up to 0.1 ms.
    pub(crate) fn usual(seed: u64) -> Self {
        let mut random = Random(seed);
        let hertz = 1e9 * [0.024, 1.0, 2.6, 3.7][usize::from((random.next() % 4) as u8)];
        let step_ticks = if hertz > 1e9 { 1 + random.next() % 30 } else { 1 };
        let rate_error = random.around_zero(100e-6);
        let (interrupted, interruption) = (0.02, 100e3);
        let (wander, events) = (0.5e-9, Vec::new());
        let (domain, raw_delay) = (Domain::Counter, 0.0);
        Self {
            domain,
            raw_delay,
            hertz,
            step_ticks,
            rate_error,
            wander,
            interrupted,
            interruption,
            events,
        }
    }

    /// A network card's clock of nanoseconds in the counter's place, which takes 2 us to read. It has
    /// an oscillator of its own, up to 10 ppm off from that of `CLOCK_MONOTONIC_RAW`.
    pub(crate) fn of_nic(seed: u64, events: impl Into<Vec<(f64, Event)>>) -> Self {
        let hertz = 1e9 * (1.0 + Random(seed ^ 0x417).around_zero(10e-6));
        let (domain, raw_delay, step_ticks) = (Domain::Nic, 2_000.0, 8);
        Self { domain, raw_delay, hertz, step_ticks, ..Self::with(seed, events) }
    }

    /// The usual ones, and something happens.
    pub(crate) fn with(seed: u64, events: impl Into<Vec<(f64, Event)>>) -> Self {
        Self { events: events.into(), ..Self::usual(seed) }
    }
}

/// The truth at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) elapsed: f64,
    pub(crate) raw: u64,
    pub(crate) utc: i64,
    pub(crate) monotonic_raw: i64,
}

struct Machine {
    conditions: Conditions,
    random: Random,
    /// How many of the events have happened.
    happened: usize,
    elapsed: f64,
    /// Nanoseconds by the oscillator and by the system clock since the start.
    oscillator: f64,
    system: f64,
    wandered: f64,
    slew: f64,
    /// The counter: ticks since it had its base.
    counter_base: u64,
    counted: f64,
    ticks_per_nano: f64,
}

const WANDER_INTERVAL: f64 = 1e6;
const START_RAW: u64 = 1 << 50;
const START_UTC: i64 = 1_790_000_000_000_000_000;
const START_MONOTONIC: i64 = 5_000_000_000_000;

impl Machine {
    fn advance(&mut self, mut nanos: f64) {
        while nanos > 0.0 {
            let part = nanos.min(WANDER_INTERVAL).min(self.until_next_event());
            let oscillated = part * (1.0 + self.conditions.rate_error + self.wandered);
            self.oscillator += oscillated;
            self.counted += oscillated * self.ticks_per_nano;
            self.system += part * (1.0 + self.slew);
            let wander = self.conditions.wander * (part / WANDER_INTERVAL).sqrt();
            self.wandered += self.random.around_zero(wander);
            self.elapsed += part;
            nanos -= part;
        }
    }

    /// Lets happen what is due, and tells for how long nothing is.
    fn until_next_event(&mut self) -> f64 {
        while let Some(&(at, event)) = self.conditions.events.get(self.happened) {
            if at > self.elapsed {
                return at - self.elapsed;
            }
            self.happen(event);
            self.happened += 1;
        }
        f64::INFINITY
    }

    #[expect(clippy::cast_possible_truncation, reason = "minutes in ticks fit")]
    fn happen(&mut self, event: Event) {
        match event {
            Event::Slew(slew) => self.slew = slew,
            Event::Step(nanos) => self.system += nanos,
            Event::CounterJump(nanos) => {
                let ticks = (nanos * self.ticks_per_nano) as i64;
                self.counter_base = self.counter_base.wrapping_add_signed(ticks);
            }
            Event::CounterReset => (self.counter_base, self.counted) = (START_RAW >> 20, 0.0),
            Event::CounterRate(factor) => self.ticks_per_nano *= factor,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clocks floor; minutes in nanoseconds or ticks fit"
    )]
    fn now(&self) -> Sample {
        let raw = self.counter_base + self.counted as u64;
        Sample {
            elapsed: self.elapsed,
            raw: raw - raw % self.conditions.step_ticks,
            utc: START_UTC + self.system.floor() as i64,
            monotonic_raw: START_MONOTONIC + self.oscillator.floor() as i64,
        }
    }

    /// One reading: 10 to 30 ns before and after it, and an interruption on some occasions.
    fn read(&mut self) -> Sample {
        self.delay();
        let sample = self.now();
        self.delay();
        sample
    }

    fn delay(&mut self) {
        let interrupted = self.random.unit() < self.conditions.interrupted;
        let longest = self.conditions.interruption;
        let extra = if interrupted { self.random.between(1_000.0, longest) } else { 0.0 };
        let usual = self.random.between(10.0, 30.0);
        self.advance(usual + extra);
    }
}

/// Handles to one simulated machine.
#[derive(Clone)]
pub(crate) struct SimulatedClocks(Rc<RefCell<Machine>>);

impl SimulatedClocks {
    pub(crate) fn new(seed: u64, conditions: Conditions) -> Self {
        Self(Rc::new(RefCell::new(Machine {
            ticks_per_nano: conditions.hertz / 1e9,
            conditions,
            random: Random(seed.wrapping_mul(0xA076_1D64_78BD_642F)),
            happened: 0,
            elapsed: 0.0,
            oscillator: 0.0,
            system: 0.0,
            wandered: 0.0,
            slew: 0.0,
            counter_base: START_RAW,
            counted: 0.0,
        })))
    }

    pub(crate) fn advance(&self, nanos: f64) {
        self.0.borrow_mut().advance(nanos);
    }

    pub(crate) fn now(&self) -> Sample {
        self.0.borrow().now()
    }
}

impl Clocks for SimulatedClocks {
    fn raw(&mut self) -> u64 {
        let mut machine = self.0.borrow_mut();
        let delay = machine.conditions.raw_delay;
        let before = if delay > 0.0 { machine.random.between(0.0, delay) } else { 0.0 };
        machine.advance(before);
        let raw = machine.read().raw;
        machine.advance(delay - before);
        raw
    }

    fn utc(&mut self) -> Time<Utc> {
        Time::from_nanos(self.0.borrow_mut().read().utc)
    }

    fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
        Time::from_nanos(self.0.borrow_mut().read().monotonic_raw)
    }
}
