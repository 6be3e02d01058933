//! The wall clock on the simulated machine: its bound, its error and its monotony.

#[path = "../../tests/machine/mod.rs"]
#[expect(dead_code, unused_imports, reason = "what only the timelines' scenarios use")]
mod machine;

use machine::{Conditions, Event, Random, SimulatedClocks, Tally};

use super::*;
use crate::{Calibrator, Clocks, Domain};

const SEEDS: u64 = 1_000;
const SECOND: f64 = 1e9;
const FIRST_INTERVAL: f64 = 1e6;
const MAX_INTERVAL: f64 = 250e6;
const READINGS_PER_INTERVAL: u32 = 25;

/// Time after which the limits apply.
const SETTLING_TIME: f64 = 2.0 * SECOND;

/// Reads the clock for some seconds, with a calibrator that samples as the service does.
fn run(seed: u64, seconds: f64, conditions: Conditions, tally: &mut Tally) {
    let clocks = SimulatedClocks::new(seed, conditions.clone());
    let counter = || clocks.clone().raw();
    let step = conditions.step_ticks;
    let mut calibrator = Calibrator::new(Domain::Counter, clocks.clone(), step).unwrap();
    let mut steering = Steering::new(&calibrator.timeline(), counter());
    let mut random = Random(seed ^ 0x5EED);
    let (mut interval, mut before) = (FIRST_INTERVAL, Time::from_nanos(i64::MIN));
    while clocks.now().elapsed < seconds * SECOND {
        for _ in 0..READINGS_PER_INTERVAL {
            let part = interval / f64::from(READINGS_PER_INTERVAL);
            clocks.advance(part * random.between(0.5, 1.2));
            let truth = clocks.now();
            let (utc, error) = steering.lines.read(|| truth.raw, lines::Slot::utc_and_error);
            assert!(utc >= before, "seed {seed}: {utc:?} after {before:?}");
            before = utc;
            if truth.elapsed > SETTLING_TIME {
                let raw = RawStamp { domain: Domain::Counter, value: truth.raw };
                tally.add(&Stamp { raw, utc, error }, &truth);
            }
        }
        let timeline = calibrator.sample();
        interval = (interval * 2.0).min(MAX_INTERVAL);
        #[expect(clippy::cast_possible_truncation, reason = "a quarter of a second at most")]
        let expected = Span::from_nanos(interval as i64);
        steering.follow(&timeline, expected, counter);
    }
}

#[test]
fn bound_holds_on_a_wandering_oscillator() {
    let mut tally = Tally::new("wall clock, wandering");
    for seed in 0..SEEDS {
        run(seed, 10.0, Conditions::usual(seed), &mut tally);
    }
    tally.report().assert_coverage().assert_limits(30.0, 1_000);
}

#[test]
fn bound_holds_through_ordinary_corrections() {
    let mut tally = Tally::new("wall clock, corrected by up to 1 ppm");
    for seed in 0..SEEDS {
        let mut random = Random(!seed);
        let times = (1..8).map(|n| f64::from(n) * SECOND * random.between(1.0, 1.1));
        let times: Vec<f64> = times.collect();
        let events = times.into_iter().map(|at| (at, Event::Slew(random.around_zero(0.5e-6))));
        let conditions = Conditions::with(seed, events.collect::<Vec<_>>());
        run(seed, 10.0, conditions, &mut tally);
    }
    tally.report().assert_coverage().assert_limits(60.0, 1_000);
}
