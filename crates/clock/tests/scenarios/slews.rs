//! Unprecedented slews of the system clock.

use super::{SECOND, Tallies, each_run};
use crate::machine::{Conditions, Event, Random};

/// Slewed once, by `slew`, for some seconds.
fn slewed_for_seconds(seed: u64, slew: impl Fn(&mut Random, f64) -> f64) -> Conditions {
    let mut random = Random(!seed);
    let slew = slew(&mut random, Conditions::usual(seed).rate_error);
    let from = random.between(2.0, 3.0) * SECOND;
    let until = from + random.between(1.0, 6.0) * SECOND;
    Conditions::with(seed, [(from, Event::Slew(slew)), (until, Event::Slew(0.0))])
}

fn assert_slew_is_followed(
    scenario: &str,
    conditions: impl Fn(u64) -> Conditions,
    worst_unseen: f64,
) {
    let mut tallies = Tallies::new(scenario);
    each_run(12.0, conditions, |seed, run| {
        tallies.count(run, 2);
        assert_eq!(run.timeline.steps(), 0, "seed {seed}: a slew is no step");
    });
    tallies.check();
    tallies.live.assert_limits(20.0, 200_000);
    tallies.bracketed.assert_median(200);
    tallies.unseen.assert_limits(worst_unseen, i64::MAX);
}

#[test]
fn slew_up_to_100_ppm_is_followed() {
    let conditions = |seed| slewed_for_seconds(seed, |random, _| random.magnitude(0.5e-6, 100e-6));
    assert_slew_is_followed("slew of up to 100 ppm", conditions, 10_000.0);
}

/// Up to the limit of the kernel's frequency correction (adjtimex(2)), against `CLOCK_MONOTONIC_RAW`.
#[test]
fn slew_up_to_500_ppm_is_followed() {
    let conditions = |seed: u64| {
        slewed_for_seconds(seed, |random, rate_error| random.around_zero(499e-6) + rate_error)
    };
    assert_slew_is_followed("slew of up to 500 ppm", conditions, 60_000.0);
}

/// A leap second smeared over a day begins and ends: 11.6 ppm.
#[test]
fn smeared_leap_second_is_followed() {
    let conditions = |seed| slewed_for_seconds(seed, |_, _| -1.0 / 86_400.0);
    assert_slew_is_followed("smeared leap second", conditions, 2_000.0);
}

/// adjtime(3) may slew for less than a sampling interval, or for a little more. The slew begins and ends in one
/// segment, or in neighbours, and is invisible until the next segment.
#[test]
fn short_slew_is_in_the_bound_of_bracketed_stamps() {
    let mut tallies = Tallies::new("slew of up to 500 ppm for up to 0.4 s");
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let slew = random.around_zero(499e-6) + Conditions::usual(seed).rate_error;
        let from = random.between(2.0, 5.0) * SECOND;
        let until = from + random.between(0.001, 0.4) * SECOND;
        Conditions::with(seed, [(from, Event::Slew(slew)), (until, Event::Slew(0.0))])
    };
    each_run(8.0, conditions, |_, run| tallies.count(run, 2));
    tallies.unseen.report();
    tallies.live.report().assert_coverage();
    tallies.fresh.report();
    tallies.bracketed.report().assert_coverage().assert_median(200);
}

/// Up to 10 %, as `ADJ_TICK` of adjtimex(2) allows, and chrony uses for large offsets that it may not step
/// (`maxslewrate` of chrony.conf(5)).
#[test]
fn fast_slew_counts_as_two_steps() {
    let mut tallies = Tallies::new("slew of 1,000 to 100,000 ppm");
    let conditions = |seed| slewed_for_seconds(seed, |random, _| random.magnitude(1e-3, 0.1));
    each_run(12.0, conditions, |seed, run| {
        let steps = run.timeline.steps();
        assert!(steps <= 2, "seed {seed}: {steps} steps");
        tallies.count(run, 3);
    });
    tallies.check();
    tallies.live.assert_limits(40.0, 30_000_000);
    tallies.bracketed.assert_median(200);
}

#[test]
fn fast_slew_at_the_start_is_followed() {
    let mut tallies = Tallies::new("slew of 1,000 to 100,000 ppm from the start");
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let slew = Event::Slew(random.magnitude(1e-3, 0.1));
        Conditions::with(seed, [(0.0, slew), (random.between(1.0, 4.0) * SECOND, Event::Slew(0.0))])
    };
    each_run(6.0, conditions, |seed, run| {
        let steps = run.timeline.steps();
        assert!(steps <= 2, "seed {seed}: {steps} steps");
        tallies.count(run, 2);
    });
    tallies.check();
    tallies.bracketed.assert_median(200);
}
