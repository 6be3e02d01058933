//! Stamps converted again with the anchors of a file, on simulated clocks.

use wirestamp_clock::{
    AnchorFile, AnchorWriter, Calibrator, Domain, Span, Stamp, Time, Timeline, Utc,
};

use super::SECOND;
use crate::machine::{Conditions, Event, Random, SimulatedClocks, Truth};

/// Number of runs; fewer than elsewhere, because each run is longer than a calibrator's history.
const SEEDS: u64 = 30;

const SAMPLING_INTERVAL: f64 = 250e6;

/// A packet in the simulation: its true time and its live stamp.
struct Packet {
    truth: Truth,
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

    /// Captures with four anchors per second, each written at once. Anchors that a disruption discards before they
    /// are written are lost.
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

fn offset(stamp: &Stamp, truth: &Truth) -> i64 {
    (stamp.utc - Time::<Utc>::from_nanos(truth.utc)).as_nanos()
}

fn holds(stamp: &Stamp, truth: &Truth) -> bool {
    offset(stamp, truth).abs() <= stamp.error.as_nanos()
}

fn median_error(stamps: impl Iterator<Item = Stamp>) -> i64 {
    let mut errors: Vec<i64> = stamps.map(|stamp| stamp.error.as_nanos()).collect();
    errors.sort_unstable();
    errors[errors.len() / 2]
}

#[test]
fn converted_stamps_have_tighter_bounds_than_live_ones() {
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
fn bounds_hold_around_steps_and_slews() {
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
fn bounds_hold_around_a_disruption() {
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
            // Either neighbouring sample may be discarded because of a long interruption.
            let near = (truth.elapsed - disrupted).abs() < 2.5 * SAMPLING_INTERVAL;
            assert!(near || stamp.error < Span::from_nanos(2_000), "seed {seed}: {stamp:?}");
        }
        assert!(unbounded > 0, "seed {seed}: nothing is known of the gap");
    }
}
