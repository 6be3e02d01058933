//! The clocks of a simulated machine, and the true time.
//!
//! One oscillator drives the counter and `CLOCK_MONOTONIC_RAW`, as in a real machine. Its rate against true time has
//! an error and wanders. The system clock follows true time, except for the simulated events. Every reading takes
//! time before and after the instant at which it happens, and some are interrupted.

use std::cell::RefCell;
use std::rc::Rc;

use wirestamp_clock::{Clocks, Domain, MonotonicRaw, Time, Utc};

use super::Random;

/// An event of the clocks at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// From now on the system clock runs faster than true time by this fraction.
    Slew(f64),
    /// The system clock jumps by this many nanoseconds; also a suspend in which the counter and `CLOCK_MONOTONIC_RAW`
    /// stop.
    Step(f64),
    /// Only the counter jumps, by its ticks in this many nanoseconds.
    CounterJump(f64),
    /// The counter restarts from a much lower value.
    CounterReset,
    /// The counter, but not `CLOCK_MONOTONIC_RAW`, runs at this multiple of its rate.
    CounterRate(f64),
}

/// Parameters of the simulated machine. Times in nanoseconds of true time since its start.
#[derive(Clone)]
pub(crate) struct Conditions {
    /// Domain of the counter.
    pub(crate) domain: Domain,
    /// Additional time of a read of the counter. The instant of the reading is anywhere in it.
    pub(crate) raw_delay: f64,
    pub(crate) hertz: f64,
    /// Step of the counter in ticks.
    pub(crate) step_ticks: u64,
    /// Error of the oscillator's rate against true time, as a fraction.
    pub(crate) rate_error: f64,
    /// Largest change of that error in a millisecond, as a fraction.
    pub(crate) wander: f64,
    /// Share of interrupted delays, and the max length of an interruption.
    pub(crate) interrupted: f64,
    pub(crate) interruption: f64,
    /// In the order of time.
    pub(crate) events: Vec<(f64, Event)>,
}

impl Conditions {
    /// A frequency error of up to 100 ppm that wanders by about 0.01 ppm in a second. One delay in fifty is
    /// interrupted, for up to 0.1 ms.
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

    /// A network card's clock of nanoseconds in place of the counter, which takes 2 us to read. Its own oscillator is
    /// up to 10 ppm off from that of `CLOCK_MONOTONIC_RAW`.
    pub(crate) fn nic(seed: u64, events: impl Into<Vec<(f64, Event)>>) -> Self {
        let hertz = 1e9 * (1.0 + Random(seed ^ 0x417).around_zero(10e-6));
        let (domain, raw_delay, step_ticks) = (Domain::Nic, 2_000.0, 8);
        Self { domain, raw_delay, hertz, step_ticks, ..Self::with(seed, events) }
    }

    /// The usual conditions with events.
    pub(crate) fn with(seed: u64, events: impl Into<Vec<(f64, Event)>>) -> Self {
        Self { events: events.into(), ..Self::usual(seed) }
    }
}

/// All clocks at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    pub(crate) elapsed: f64,
    pub(crate) raw: u64,
    pub(crate) utc: i64,
    pub(crate) monotonic_raw: i64,
}

struct Machine {
    conditions: Conditions,
    random: Random,
    /// Number of past events.
    past_events: usize,
    elapsed: f64,
    /// Nanoseconds by the oscillator and by the system clock since the start.
    oscillator: f64,
    system: f64,
    wandered: f64,
    slew: f64,
    /// Ticks of the counter since its base.
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

    /// Applies all due events; returns the time until the next one.
    fn until_next_event(&mut self) -> f64 {
        while let Some(&(at, event)) = self.conditions.events.get(self.past_events) {
            if at > self.elapsed {
                return at - self.elapsed;
            }
            self.apply(event);
            self.past_events += 1;
        }
        f64::INFINITY
    }

    #[expect(clippy::cast_possible_truncation, reason = "minutes in ticks fit")]
    fn apply(&mut self, event: Event) {
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
    fn now(&self) -> Truth {
        let raw = self.counter_base + self.counted as u64;
        Truth {
            elapsed: self.elapsed,
            raw: raw - raw % self.conditions.step_ticks,
            utc: START_UTC + self.system.floor() as i64,
            monotonic_raw: START_MONOTONIC + self.oscillator.floor() as i64,
        }
    }

    /// One reading: 10 to 30 ns before and after it, and sometimes an interruption.
    fn read(&mut self) -> Truth {
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
            past_events: 0,
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

    pub(crate) fn now(&self) -> Truth {
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
