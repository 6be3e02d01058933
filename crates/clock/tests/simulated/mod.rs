//! A machine whose clocks are simulated, so that the truth about them is known.
//!
//! One oscillator drives the counter and `CLOCK_MONOTONIC_RAW`, as in a real machine; its rate
//! against true time is off and wanders. The system clock is kept to true time from outside, up to
//! a slew and a step. Every reading takes time before and after the instant at which it happens,
//! and some are interrupted.

use std::cell::RefCell;
use std::rc::Rc;

use wirestamp_clock::{Clocks, MonotonicRaw, Time, Utc};

/// The splitmix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014): small, and the same on every machine.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform from `-limit` to `limit`.
    pub(crate) fn around_zero(&mut self, limit: f64) -> f64 {
        (self.unit() * 2.0 - 1.0) * limit
    }
}

/// What the simulated machine is like. Times in nanoseconds of true time since its start.
#[derive(Clone)]
pub(crate) struct Conditions {
    pub(crate) hertz: f64,
    /// The counter moves in steps of so many ticks.
    pub(crate) step_ticks: u64,
    /// The oscillator's error against true time, as a fraction.
    pub(crate) rate_error: f64,
    /// The largest change of that error in a millisecond, as a fraction.
    pub(crate) wander: f64,
    /// The system clock is slewed by this fraction between these times.
    pub(crate) slew: f64,
    pub(crate) slew_from: f64,
    pub(crate) slew_until: f64,
    /// The system clock is stepped by so much at this time.
    pub(crate) step: f64,
    pub(crate) step_at: f64,
}

impl Conditions {
    /// A frequency error of up to 100 ppm that wanders by some 0.01 ppm in a second.
    pub(crate) fn wandering(seed: u64) -> Self {
        let mut random = Random(seed);
        let hertz = 1e9 * [0.024, 1.0, 2.6, 3.7][usize::from((random.next() % 4) as u8)];
        let step_ticks = if hertz > 1e9 { 1 + random.next() % 30 } else { 1 };
        Self {
            hertz,
            step_ticks,
            rate_error: random.around_zero(100e-6),
            wander: 0.5e-9,
            slew: 0.0,
            slew_from: f64::INFINITY,
            slew_until: f64::INFINITY,
            step: 0.0,
            step_at: f64::INFINITY,
        }
    }

    /// Slewed, as a time daemon does it, by up to 100 ppm for some seconds.
    pub(crate) fn slewing(seed: u64) -> Self {
        let mut random = Random(!seed);
        let slew_from = 2e9 + random.unit() * 1e9;
        let slew = random.around_zero(100e-6);
        let slew_until = slew_from + 1e9 + random.unit() * 5e9;
        Self { slew, slew_from, slew_until, ..Self::wandering(seed) }
    }

    /// Stepped by 1 ms to 1 s in either direction.
    pub(crate) fn stepping(seed: u64) -> Self {
        let mut random = Random(!seed);
        let size = 10_f64.powf(6.0 + 3.0 * random.unit());
        let step = if random.next().is_multiple_of(2) { size } else { -size };
        Self { step, step_at: 2e9 + random.unit() * 3e9, ..Self::wandering(seed) }
    }

    /// When the rate of UTC changes at once.
    pub(crate) fn rate_changes(&self) -> impl Iterator<Item = f64> {
        [self.slew_from, self.slew_until].into_iter()
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
    elapsed: f64,
    /// Nanoseconds by the oscillator and by the system clock since the start.
    oscillator: f64,
    system: f64,
    wandered: f64,
    counter_offset: u64,
}

const WANDER_INTERVAL: f64 = 1e6;
const START_RAW: u64 = 1 << 50;
const START_UTC: i64 = 1_790_000_000_000_000_000;
const START_MONOTONIC: i64 = 5_000_000_000_000;

impl Machine {
    fn advance(&mut self, mut nanos: f64) {
        while nanos > 0.0 {
            let part = nanos.min(WANDER_INTERVAL).min(self.until_change());
            self.oscillator += part * (1.0 + self.conditions.rate_error + self.wandered);
            let slewing =
                (self.conditions.slew_from..self.conditions.slew_until).contains(&self.elapsed);
            self.system += part * if slewing { 1.0 + self.conditions.slew } else { 1.0 };
            let wander = self.conditions.wander * (part / WANDER_INTERVAL).sqrt();
            self.wandered += self.random.around_zero(wander);
            let before = self.elapsed;
            self.elapsed += part;
            if (before..self.elapsed).contains(&self.conditions.step_at) {
                self.system += self.conditions.step;
            }
            nanos -= part;
        }
    }

    /// Time until the slew begins or ends, so that no advance straddles that.
    fn until_change(&self) -> f64 {
        let ahead = self.conditions.rate_changes().map(|change| change - self.elapsed);
        ahead.filter(|&ahead| ahead > 1e-3).fold(f64::INFINITY, f64::min)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clocks floor; a minute of nanoseconds or ticks fits"
    )]
    fn now(&self) -> Sample {
        let ticks = (self.oscillator * self.conditions.hertz / 1e9) as u64;
        let raw = START_RAW + ticks - self.counter_offset;
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
        let interrupted = self.random.unit() < 0.02;
        let extra = if interrupted { 1_000.0 + self.random.unit() * 100_000.0 } else { 0.0 };
        let usual = 10.0 + self.random.unit() * 20.0;
        self.advance(usual + extra);
    }
}

/// Handles to one simulated machine.
#[derive(Clone)]
pub(crate) struct SimulatedClocks(Rc<RefCell<Machine>>);

impl SimulatedClocks {
    pub(crate) fn new(seed: u64, conditions: Conditions) -> Self {
        Self(Rc::new(RefCell::new(Machine {
            conditions,
            random: Random(seed.wrapping_mul(0xA076_1D64_78BD_642F)),
            elapsed: 0.0,
            oscillator: 0.0,
            system: 0.0,
            wandered: 0.0,
            counter_offset: 0,
        })))
    }

    pub(crate) fn advance(&self, nanos: f64) {
        self.0.borrow_mut().advance(nanos);
    }

    pub(crate) fn now(&self) -> Sample {
        self.0.borrow().now()
    }

    pub(crate) fn elapsed(&self) -> f64 {
        self.0.borrow().elapsed
    }

    /// The counter starts again from a much lower value, as after a suspend.
    pub(crate) fn reset_counter(&self) {
        self.0.borrow_mut().counter_offset = START_RAW / 2;
    }
}

impl Clocks for SimulatedClocks {
    fn raw(&mut self) -> u64 {
        self.0.borrow_mut().read().raw
    }

    fn utc(&mut self) -> Time<Utc> {
        Time::from_nanos(self.0.borrow_mut().read().utc)
    }

    fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
        Time::from_nanos(self.0.borrow_mut().read().monotonic_raw)
    }
}
