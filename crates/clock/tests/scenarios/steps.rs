//! Steps of the system clock.

use wirestamp_clock::Span;

use super::{SECOND, Tallies, each_run};
use crate::machine::{Conditions, Event, Random, Run, Tally, run};

fn stepped(seed: u64, step: impl Fn(&mut Random) -> f64) -> Conditions {
    let mut random = Random(!seed);
    let step = step(&mut random);
    Conditions::with(seed, [(random.between(2.0, 5.0) * SECOND, Event::Step(step))])
}

/// The times of a packet before the step, live and at the end, are within the bounds of both. Far from the step the
/// bounds are those of a clock without a step.
fn assert_old_stamps_unchanged(run: &Run, seed: u64, near: f64) {
    let at = run.events().next().unwrap();
    for (packet, again) in run.converted() {
        let elapsed = packet.truth.elapsed;
        if elapsed < at {
            let moved = (again.utc - packet.live.utc).abs();
            assert!(moved <= again.error + packet.live.error, "seed {seed}: moved by {moved:?}");
        }
        let error = again.error;
        let is_near = (elapsed - at).abs() < near;
        assert!(is_near || error < Span::from_nanos(2_000), "seed {seed}: {again:?}");
    }
}

fn assert_step_is_counted(scenario: &str, step: impl Fn(&mut Random) -> f64) {
    let mut tallies = Tallies::new(scenario);
    each_run(
        8.0,
        |seed| stepped(seed, &step),
        |seed, run| {
            assert_eq!(run.timeline.steps(), 1, "seed {seed}");
            tallies.count(run, 1);
            assert_old_stamps_unchanged(run, seed, 0.3 * SECOND);
        },
    );
    tallies.check();
    tallies.live.assert_limits(20.0, 1_000);
    tallies.bracketed.assert_median(200);
}

#[test]
fn step_is_counted_and_keeps_earlier_stamps() {
    assert_step_is_counted("step of 1 ms to 1 s", |random| random.magnitude(1e6, SECOND));
}

#[test]
fn second_forward_keeps_earlier_stamps() {
    assert_step_is_counted("step of +1 s", |_| SECOND);
}

/// As the kernel inserts a leap second: UTC repeats the last second.
#[test]
fn leap_second_keeps_earlier_stamps() {
    assert_step_is_counted("leap second, step of -1 s", |_| -SECOND);
}

/// After a minute the step is discarded, and with it the time of older stamps.
#[test]
fn stamps_before_a_discarded_step_are_unbounded() {
    for seed in 0..30 {
        let stepped = Conditions::with(seed, [(2.0 * SECOND, Event::Step(1e7))]);
        for (conditions, known) in [(stepped, false), (Conditions::usual(seed), true)] {
            let run = run(seed, 80.0, conditions);
            assert_eq!(run.timeline.steps(), u32::from(!known), "seed {seed}");
            let before = |elapsed: f64| (0.9..1.1).contains(&(elapsed / SECOND));
            let early = run.converted().filter(|(packet, _)| before(packet.truth.elapsed));
            for (packet, stamp) in early {
                assert!(
                    Tally::error_of(&stamp, &packet.truth) <= stamp.error,
                    "seed {seed}: {stamp:?}"
                );
                assert_eq!(stamp.error < Span::MAX, known, "seed {seed}: {stamp:?}");
            }
        }
    }
}

/// The raw value determines which of the two passes of a repeated second is meant.
#[test]
fn repeated_leap_second_keeps_stamps_distinct() {
    let mut repeated = Tally::new("repeated second, bracketed");
    each_run(
        6.0,
        |seed| stepped(seed, |_| -SECOND),
        |_, run| {
            let leap = run.events().next().unwrap();
            let around = |packet: f64| (packet - leap).abs() < SECOND;
            for (packet, stamp) in run.converted() {
                let away = (packet.truth.elapsed - leap).abs() > 0.3 * SECOND;
                if around(packet.truth.elapsed) && away {
                    repeated.add(&stamp, &packet.truth);
                }
            }
        },
    );
    repeated.report().assert_coverage().assert_limits(20.0, 2_000);
}

/// A step that slewing can explain, so that it is not counted.
fn small_step(seed: u64, from: f64, to: f64) -> Conditions {
    let rate_error = Conditions::usual(seed).rate_error / 10.0;
    Conditions { rate_error, ..stepped(seed, |random| random.magnitude(from, to)) }
}

#[test]
fn uncounted_step_is_in_the_bound_of_bracketed_stamps() {
    let mut tallies = Tallies::new("step of 1 us to 100 us");
    each_run(
        8.0,
        |seed| small_step(seed, 1e3, 100e3),
        |seed, run| {
            assert_eq!(run.timeline.steps(), 0, "seed {seed}");
            tallies.count(run, 1);
        },
    );
    tallies.check();
}

/// Steps below the errors of four anchors need not be visible.
#[test]
fn invisible_step_seldom_violates_the_bound() {
    let mut tallies = Tallies::new("step of 50 ns to 1 us");
    each_run(8.0, |seed| small_step(seed, 50.0, 1e3), |_, run| tallies.count(run, 1));
    tallies.check();
    tallies.bracketed.assert_limits(100.0, 2_000).assert_median(200);
}
