//! Stamps that are converted again with the anchors of a file, on simulated clocks.

use wirestamp_clock::{
    AnchorFile, AnchorWriter, Calibrator, Domain, Span, Stamp, Time, Timeline, Utc,
};

use super::SECOND;
use crate::machine::{Conditions, Event, Random, Sample, SimulatedClocks};

/// Fewer than elsewhere, for each run is longer than what a calibrator remembers.
const SEEDS: u64 = 30;

const SAMPLING_INTERVAL: f64 = 250e6;

/// A packet in the simulation: the truth about it, and what was said while it was fresh.
struct Packet {
    truth: Sample,
    live: Stamp,
}

/// A capture of simulated packets, and the file of its anchors.
struct Capture {
    clocks: SimulatedClocks,
    calibrator: Calibrator<SimulatedClocks>,
    writer: AnchorWriter<Vec<u8>>,
    random: Random,
    packets: Vec<Packet>,
}

impl Capture {
    fn new(seed: u64, conditions: &Conditions) -> Self {
        let clocks = SimulatedClocks::new(seed, conditions.clone());
        let step = conditions.step_ticks;
        Self {
            calibrator: Calibrator::new(Domain::Counter, clocks.clone(), step).unwrap(),
            clocks,
            writer: AnchorWriter::new(Vec::new(), "tsc", "").unwrap(),
            random: Random(seed ^ 0x5EED),
            packets: Vec::new(),
        }
    }

    /// Captures for a while with four anchors in a second, each written down at once: what a
    /// disruption makes the calibrator forget before it was written is lost.
    fn run(&mut self, seconds: f64) {
        let until = self.clocks.now().elapsed + seconds * SECOND;
        while self.clocks.now().elapsed < until {
            let timeline = self.calibrator.timeline();
            for _ in 0..10 {
                self.clocks.advance(SAMPLING_INTERVAL / 10.0 * (0.5 + self.random.unit()));
                let truth = self.clocks.now();
                self.packets.push(Packet { truth, live: timeline.convert(truth.raw) });
            }
            self.calibrator.sample();
            self.writer.update(&self.calibrator.timeline()).unwrap();
        }
    }

    /// The timeline of the file.
    fn replayed(&self, seed: u64) -> Timeline {
        assert_eq!(self.writer.gaps(), 0, "seed {seed}");
        AnchorFile::read(self.writer.get_ref().as_slice()).unwrap().timeline().clone()
    }
}

fn offset(stamp: &Stamp, truth: &Sample) -> i64 {
    (stamp.utc - Time::<Utc>::from_nanos(truth.utc)).as_nanos()
}

fn holds(stamp: &Stamp, truth: &Sample) -> bool {
    offset(stamp, truth).abs() <= stamp.error.as_nanos()
}

fn median_error(stamps: impl Iterator<Item = Stamp>) -> i64 {
    let mut errors: Vec<i64> = stamps.map(|stamp| stamp.error.as_nanos()).collect();
    errors.sort_unstable();
    errors[errors.len() / 2]
}

#[test]
fn stamps_of_two_minutes_hold_a_tighter_bound_than_live_ones() {
    for seed in 0..SEEDS {
        let mut capture = Capture::new(seed, &Conditions::usual(seed));
        capture.run(130.0);
        let timeline = capture.replayed(seed);
        assert_eq!(timeline.steps(), 0, "seed {seed}");
        assert!(timeline.anchors().len() > 500, "seed {seed}: more than a calibrator keeps");
        for Packet { truth, .. } in &capture.packets {
            let stamp = timeline.convert(truth.raw);
            assert!(holds(&stamp, truth), "seed {seed}: {stamp:?} is {}", offset(&stamp, truth));
        }
        let packets = &capture.packets;
        let live = median_error(packets.iter().map(|packet| packet.live));
        let again = median_error(packets.iter().map(|packet| timeline.convert(packet.truth.raw)));
        assert!(again < live, "seed {seed}: {again} ns are no better than {live} ns");
    }
}

#[test]
fn stamps_on_either_side_of_a_step_or_a_slew_hold_their_bound() {
    for seed in 0..SEEDS {
        let mut random = Random(!seed);
        let at = random.between(2.0, 5.0) * SECOND;
        let step = [(at, Event::Step(random.magnitude(1e6, 1e9)))];
        let until = at + random.between(1.0, 6.0) * SECOND;
        let slew = [(at, Event::Slew(random.around_zero(100e-6))), (until, Event::Slew(0.0))];
        for (events, steps) in [(step.to_vec(), 1), (slew.to_vec(), 0)] {
            let conditions = Conditions::with(seed, events);
            let mut capture = Capture::new(seed, &conditions);
            capture.run(75.0);
            let timeline = capture.replayed(seed);
            assert_eq!(timeline.steps(), steps, "seed {seed}");
            for Packet { truth, .. } in &capture.packets {
                let stamp = timeline.convert(truth.raw);
                assert!(holds(&stamp, truth), "seed {seed}: {stamp:?}");
                let near = (truth.elapsed - at).abs() < 1.3 * SAMPLING_INTERVAL;
                let wide = steps > 0 && stamp.error > Span::from_nanos(2_000);
                assert!(near || !wide, "seed {seed}: {stamp:?} far from the step");
            }
        }
    }
}

#[test]
fn stamps_before_and_after_a_disruption_hold_their_bound() {
    for seed in 0..SEEDS {
        let disrupted = 70.0 * SECOND;
        let events = [(disrupted, Event::CounterReset)];
        let mut capture = Capture::new(seed, &Conditions::with(seed, events));
        capture.run(140.0);
        let timeline = capture.replayed(seed);
        assert_eq!(timeline.steps(), 1, "seed {seed}");
        let mut unbounded = 0;
        for Packet { truth, .. } in &capture.packets {
            let stamp = timeline.convert(truth.raw);
            assert!(holds(&stamp, truth), "seed {seed}: {stamp:?}");
            unbounded += u32::from(stamp.error == Span::MAX);
            // Either neighbouring sample may have been interrupted too long to be kept.
            let near = (truth.elapsed - disrupted).abs() < 2.5 * SAMPLING_INTERVAL;
            assert!(near || stamp.error < Span::from_nanos(2_000), "seed {seed}: {stamp:?}");
        }
        assert!(unbounded > 0, "seed {seed}: nothing is known of the gap");
    }
}
