//! Accuracy as numeric limits, with simulated clocks in and conversion errors out.

mod simulated;

use simulated::{Conditions, Random, Sample, SimulatedClocks};
use wirestamp_clock::{
    Calibrator, DifferenceClock, Domain, RawStamp, Span, Stamp, Time, Timeline, Utc,
};

const SEEDS: u64 = 200;
const SECOND: f64 = 1e9;
const SAMPLING_INTERVAL: f64 = 250e6;
const STAMPS_PER_INTERVAL: usize = 25;

/// A packet in the simulation: the truth about it, and what was said while it was fresh.
struct Packet {
    truth: Sample,
    live: Stamp,
}

/// A run of the simulated machine.
struct Run {
    packets: Vec<Packet>,
    /// The last snapshot.
    timeline: std::sync::Arc<Timeline>,
    first_truth: Sample,
}

/// Runs the calibrator as the service does, with packets that arrive in between.
fn run(seed: u64, seconds: f64, conditions: &Conditions) -> Run {
    let clocks = SimulatedClocks::new(seed, conditions.clone());
    let step = conditions.step_ticks;
    let mut calibrator = Calibrator::new(Domain::Counter, clocks.clone(), step).unwrap();
    let first_truth = clocks.now();
    let mut random = Random(seed ^ 0x5EED);
    let mut packets = Vec::new();
    let mut interval = 1e6;
    while clocks.elapsed() < seconds * SECOND {
        let timeline = calibrator.timeline();
        for _ in 0..STAMPS_PER_INTERVAL {
            clocks.advance(interval / 25.0 * (0.5 + random.unit()));
            let truth = clocks.now();
            packets.push(Packet { truth, live: timeline.convert(truth.raw) });
        }
        calibrator.sample();
        interval = (interval * 2.0).min(SAMPLING_INTERVAL);
    }
    Run { packets, timeline: calibrator.timeline(), first_truth }
}

fn offset(stamp: &Stamp, truth: &Sample) -> i64 {
    (stamp.utc - Time::<Utc>::from_nanos(truth.utc)).as_nanos()
}

fn holds(stamp: &Stamp, truth: &Sample) -> bool {
    offset(stamp, truth).abs() <= stamp.error.as_nanos()
}

#[expect(clippy::cast_precision_loss, reason = "offsets of microseconds and counts of thousands")]
fn rms(offsets: impl Iterator<Item = i64>) -> f64 {
    let (count, sum) = offsets.fold((0_u32, 0.0), |(n, sum), x| (n + 1, sum + (x as f64).powi(2)));
    (sum / f64::from(count)).sqrt()
}

fn converted(run: &Run) -> Vec<Stamp> {
    let raw: Vec<u64> = run.packets.iter().map(|packet| packet.truth.raw).collect();
    let mut stamps = Vec::new();
    run.timeline.convert_batch(&raw, &mut stamps);
    stamps
}

#[test]
fn live_stamps_hold_their_bound_and_are_off_by_tens_of_nanoseconds() {
    for seed in 0..SEEDS {
        let run = run(seed, 10.0, &Conditions::wandering(seed));
        for Packet { truth, live } in &run.packets {
            assert!(holds(live, truth), "seed {seed}: {live:?} is off by {}", offset(live, truth));
        }
        let settled = &run.packets[run.packets.len() / 2..];
        let rms = rms(settled.iter().map(|packet| offset(&packet.live, &packet.truth)));
        assert!(rms < 40.0, "seed {seed}: RMS {rms:.1} ns");
        let widest = settled.iter().map(|packet| packet.live.error.as_nanos()).max().unwrap();
        assert!(widest < 800, "seed {seed}: a bound of {widest} ns");
    }
}

#[test]
fn bracketed_stamps_hold_their_bound_and_are_better_than_live_ones() {
    for seed in 0..SEEDS {
        let run = run(seed, 10.0, &Conditions::wandering(seed));
        let stamps = converted(&run);
        for (stamp, packet) in stamps.iter().zip(&run.packets) {
            assert!(holds(stamp, &packet.truth), "seed {seed}: {stamp:?}");
        }
        let rms = rms(stamps.iter().zip(&run.packets).map(|(s, p)| offset(s, &p.truth)));
        assert!(rms < 25.0, "seed {seed}: RMS {rms:.1} ns");
    }
}

#[test]
fn a_slew_of_the_system_clock_is_followed() {
    for seed in 0..SEEDS {
        let conditions = Conditions::slewing(seed);
        let run = run(seed, 12.0, &conditions);
        let stamps = converted(&run);
        // Stamps beyond the last anchors are live, and the slew's end may lie there.
        for (stamp, packet) in stamps.iter().zip(&run.packets) {
            assert!(holds(stamp, &packet.truth), "seed {seed}: {stamp:?}");
        }
        // Live stamps hold except in the two intervals that it takes to see the new rate.
        for Packet { truth, live } in &run.packets {
            let unseen = conditions
                .rate_changes()
                .any(|change| (change..change + 2.2 * SAMPLING_INTERVAL).contains(&truth.elapsed));
            assert!(unseen || holds(live, truth), "seed {seed}: {live:?} at {}", truth.elapsed);
        }
        assert_eq!(run.timeline.steps(), 0, "seed {seed}: a slew is no step");
    }
}

#[test]
fn a_step_is_counted_and_leaves_the_stamps_before_it_alone() {
    for seed in 0..SEEDS {
        let conditions = Conditions::stepping(seed);
        let run = run(seed, 8.0, &conditions);
        assert_eq!(run.timeline.steps(), 1, "seed {seed}");
        let stamps = converted(&run);
        for (stamp, packet) in stamps.iter().zip(&run.packets) {
            assert!(holds(stamp, &packet.truth), "seed {seed}: {stamp:?}");
            let near = (packet.truth.elapsed - conditions.step_at).abs() < 1.1 * SAMPLING_INTERVAL;
            let error = stamp.error.as_nanos();
            assert!(near || error < 2_000, "seed {seed}: a bound of {error} ns far from the step");
        }
    }
}

#[test]
fn a_disrupted_counter_is_started_afresh() {
    for seed in 0..SEEDS {
        let conditions = Conditions::wandering(seed);
        let clocks = SimulatedClocks::new(seed, conditions.clone());
        let mut calibrator =
            Calibrator::new(Domain::Counter, clocks.clone(), conditions.step_ticks).unwrap();
        let sample = |calibrator: &mut Calibrator<SimulatedClocks>| {
            clocks.advance(SAMPLING_INTERVAL);
            calibrator.sample()
        };
        sample(&mut calibrator);
        let before = clocks.now();
        clocks.reset_counter();
        let timeline = sample(&mut calibrator);
        assert_eq!(timeline.steps(), 1, "seed {seed}");
        assert!(
            timeline.convert(1).error == Span::MAX,
            "before the new beginning nothing is known"
        );
        for _ in 0..3 {
            sample(&mut calibrator);
        }
        let after = clocks.now();
        assert!(after.raw < before.raw);
        let stamp = calibrator.timeline().convert(after.raw);
        assert!(holds(&stamp, &after), "seed {seed}: {stamp:?}");
        assert!(stamp.error < Span::from_nanos(1_000), "seed {seed}: {stamp:?}");
    }
}

#[test]
fn spans_between_stamps_hold_their_bound_through_slews_and_steps() {
    for seed in 0..SEEDS {
        for conditions in [Conditions::slewing(seed), Conditions::stepping(seed)] {
            let run = run(seed, 6.0, &conditions);
            let clock: DifferenceClock = run.timeline.difference();
            let stamp = |sample: &Sample| RawStamp { domain: Domain::Counter, value: sample.raw };
            assert!(clock.rate_error_ppm() < 0.2, "seed {seed}: {} ppm", clock.rate_error_ppm());
            for Packet { truth, .. } in &run.packets {
                let span = clock.span(stamp(&run.first_truth), stamp(truth)).unwrap();
                let exact = truth.monotonic_raw - run.first_truth.monotonic_raw;
                let off = (span - Span::from_nanos(exact)).abs();
                assert!(off <= clock.error(span), "seed {seed}: {span:?} is off by {off:?}");
            }
        }
    }
}
