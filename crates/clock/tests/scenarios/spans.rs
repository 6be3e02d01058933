//! Spans between raw stamps, which are independent of slews and steps of the system clock.

use std::f64::consts::TAU;

use wirestamp_clock::{DifferenceClock, Domain, RawStamp, Span};

use super::{SECOND, each_run};
use crate::machine::{Conditions, Event, Random, Run, Truth};

fn assert_bound(clock: &DifferenceClock, from: &Truth, to: &Truth, seed: u64) {
    let stamp = |sample: &Truth| RawStamp { domain: Domain::Counter, value: sample.raw };
    let span = clock.span(stamp(from), stamp(to)).unwrap();
    let off = (span - Span::from_nanos(to.monotonic_raw - from.monotonic_raw)).abs();
    assert!(off <= clock.error(span), "seed {seed}: {span:?} at {to:?} is off by {off:?}");
}

/// Checks the spans to each packet from the start, from the previous packet and from a random earlier packet.
fn assert_spans_hold_their_bound(run: &Run, seed: u64) {
    let clock = run.timeline.difference();
    let mut random = Random(!seed);
    let truths: Vec<&Truth> = run.packets.iter().map(|packet| &packet.truth).collect();
    for (index, to) in truths.iter().enumerate() {
        assert_bound(&clock, &run.start, to, seed);
        assert_bound(&clock, truths[index.saturating_sub(1)], to, seed);
        let any = usize::try_from(random.next() % (index as u64 + 1)).unwrap();
        assert_bound(&clock, truths[any], to, seed);
    }
}

#[test]
fn bounds_of_spans_hold_through_slews_and_steps() {
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let slew = Event::Slew(random.around_zero(100e-6));
        let step = Event::Step(random.magnitude(1e3, SECOND));
        Conditions::with(seed, [(2.0 * SECOND, slew), (4.0 * SECOND, step)])
    };
    let mut widest = 0.0_f64;
    each_run(6.0, conditions, |seed, run| {
        assert_spans_hold_their_bound(run, seed);
        widest = widest.max(run.timeline.difference().rate_error_ppm());
    });
    println!("spans: bound of the rate's error after 6 s at most {widest:.3} ppm");
    assert!(widest < 0.2, "{widest} ppm");
}

#[test]
fn rate_is_within_0_1_ppm_after_a_minute() {
    let (mut worst, mut widest) = (0.0_f64, 0.0_f64);
    each_run(62.0, Conditions::usual, |seed, run| {
        let difference = run.timeline.difference();
        let hertz = Conditions::usual(seed).hertz;
        let (off, error) =
            ((difference.frequency_hz() / hertz - 1.0).abs() * 1e6, difference.rate_error_ppm());
        assert!(off <= error, "seed {seed}: {off} ppm off, by {error} at most");
        (worst, widest) = (worst.max(off), widest.max(error));
        assert_spans_hold_their_bound(run, seed);
    });
    println!("rate after 62 s: worst error {worst:.4} ppm, bound at most {widest:.4} ppm");
    assert!(widest < 0.1);
}

/// The change is too small for a disruption. It is visible with the anchors of two seconds.
#[test]
fn bounds_of_spans_hold_after_a_rate_change() {
    let mut widest = 0.0_f64;
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let change = Event::CounterRate(1.0 + random.magnitude(1e-6, 9e-6));
        Conditions::with(seed, [(random.between(2.0, 8.0) * SECOND, change)])
    };
    each_run(10.0, conditions, |seed, run| {
        assert_eq!(run.timeline.steps(), 0, "seed {seed}");
        assert_spans_hold_their_bound(run, seed);
        widest = widest.max(run.timeline.difference().rate_error_ppm());
    });
    println!("rate of the counter changed by 1 to 9 ppm: bound at most {widest:.3} ppm");
    // The deviation from the mean, and up to as much again for the errors of the reads.
    assert!(widest < 18.0, "{widest} ppm");
}

/// For example, the HPET drives `CLOCK_MONOTONIC_RAW`, and the counter is the TSC.
#[test]
fn bounds_of_spans_hold_with_two_oscillators() {
    let mut widest = 0.0_f64;
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let (amplitude, period) = (random.magnitude(0.1e-6, 1e-6), random.between(20.0, 120.0));
        let rate = |second: f64| 1.0 + amplitude * (TAU * second / period).sin();
        let changes = (1..300).map(|change| {
            let second = f64::from(change) / 10.0;
            (second * SECOND, Event::CounterRate(rate(second) / rate(second - 0.1)))
        });
        Conditions::with(seed, changes.collect::<Vec<_>>())
    };
    each_run(30.0, conditions, |seed, run| {
        assert_eq!(run.timeline.steps(), 0, "seed {seed}");
        assert_spans_hold_their_bound(run, seed);
        widest = widest.max(run.timeline.difference().rate_error_ppm());
    });
    println!("two oscillators, up to 1 ppm: bound at most {widest:.3} ppm");
    assert!(widest < 4.0, "{widest} ppm");
}
