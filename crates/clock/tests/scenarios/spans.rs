//! Spans between raw stamps, which slews and steps of the system clock do not touch.

use wirestamp_clock::{Domain, RawStamp, Span};

use super::{SECOND, each_run};
use crate::machine::{Conditions, Event, Random, Run, Sample};

fn spans_hold_their_bound(run: &Run, seed: u64) {
    let clock = run.timeline.difference();
    let stamp = |sample: &Sample| RawStamp { domain: Domain::Counter, value: sample.raw };
    for packet in &run.packets {
        let span = clock.span(stamp(&run.start), stamp(&packet.truth)).unwrap();
        let exact = packet.truth.monotonic_raw - run.start.monotonic_raw;
        let off = (span - Span::from_nanos(exact)).abs();
        assert!(off <= clock.error(span), "seed {seed}: {span:?} is off by {off:?}");
    }
}

#[test]
fn spans_between_stamps_hold_their_bound_through_slews_and_steps() {
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let slew = Event::Slew(random.around_zero(100e-6));
        let step = Event::Step(random.magnitude(1e3, SECOND));
        Conditions::with(seed, [(2.0 * SECOND, slew), (4.0 * SECOND, step)])
    };
    let mut widest = 0.0_f64;
    each_run(6.0, conditions, |seed, run| {
        spans_hold_their_bound(run, seed);
        widest = widest.max(run.timeline.difference().rate_error_ppm());
    });
    println!("spans: bound of the rate's error after 6 s at most {widest:.3} ppm");
    assert!(widest < 0.2, "{widest} ppm");
}

#[test]
fn after_a_minute_the_rate_is_known_to_a_tenth_of_a_ppm() {
    let (mut worst, mut widest) = (0.0_f64, 0.0_f64);
    each_run(62.0, Conditions::usual, |seed, run| {
        let difference = run.timeline.difference();
        let hertz = Conditions::usual(seed).hertz;
        worst = worst.max((difference.frequency_hz() / hertz - 1.0).abs() * 1e6);
        widest = widest.max(difference.rate_error_ppm());
        spans_hold_their_bound(run, seed);
    });
    println!("rate after 62 s: worst error {worst:.4} ppm, bound at most {widest:.4} ppm");
    assert!(worst < widest && widest < 0.1);
}
