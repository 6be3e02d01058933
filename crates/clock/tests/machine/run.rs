//! A capture on the simulated machine: packets, and a calibrator that samples as the service does.

use std::sync::Arc;

use wirestamp_clock::{Calibrator, Stamp, Timeline};

use super::{Conditions, Random, Sample, SimulatedClocks};

const SECOND: f64 = 1e9;
const FIRST_INTERVAL: f64 = 1e6;
const LONGEST_INTERVAL: f64 = 250e6;
const PACKETS_PER_INTERVAL: u32 = 25;

/// A packet: the truth about it, and what was said of it.
pub(crate) struct Packet {
    pub(crate) truth: Sample,
    /// Converted at once, beyond the newest anchor.
    pub(crate) live: Stamp,
    /// Converted again when one more anchor was there, in the newest segment.
    pub(crate) fresh: Stamp,
}

/// A run of the simulated machine.
pub(crate) struct Run {
    pub(crate) packets: Vec<Packet>,
    /// The last snapshot.
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) start: Sample,
    conditions: Conditions,
    /// When the anchors were taken, in nanoseconds since the machine's start.
    sampled: Vec<f64>,
}

/// Runs the calibrator as the service does, with packets that arrive in between.
pub(crate) fn run(seed: u64, seconds: f64, conditions: Conditions) -> Run {
    let clocks = SimulatedClocks::new(seed, conditions.clone());
    let step = conditions.step_ticks;
    let mut calibrator = Calibrator::new(conditions.domain, clocks.clone(), step).unwrap();
    let start = clocks.now();
    let mut random = Random(seed ^ 0x5EED);
    let (mut packets, mut sampled) = (Vec::new(), Vec::new());
    let mut interval = FIRST_INTERVAL;
    while clocks.now().elapsed < seconds * SECOND {
        let timeline = calibrator.timeline();
        let first = packets.len();
        let jittered = interval * random.between(0.875, 1.0);
        for _ in 0..PACKETS_PER_INTERVAL {
            clocks.advance(jittered / f64::from(PACKETS_PER_INTERVAL) * random.between(0.5, 1.5));
            let truth = clocks.now();
            let live = timeline.convert(truth.raw);
            packets.push(Packet { truth, live, fresh: live });
        }
        sampled.push(clocks.now().elapsed);
        let newest = calibrator.sample();
        for packet in &mut packets[first..] {
            packet.fresh = newest.convert(packet.truth.raw);
        }
        let stepped = newest.steps() != timeline.steps();
        interval = if stepped { FIRST_INTERVAL } else { (interval * 2.0).min(LONGEST_INTERVAL) };
    }
    Run { packets, timeline: calibrator.timeline(), start, conditions, sampled }
}

impl Run {
    /// Every packet with its stamp as the last snapshot has it, between anchors on either side.
    pub(crate) fn converted(&self) -> impl Iterator<Item = (&Packet, Stamp)> {
        let raw: Vec<u64> = self.packets.iter().map(|packet| packet.truth.raw).collect();
        let mut stamps = Vec::new();
        self.timeline.convert_batch(&raw, &mut stamps);
        self.packets.iter().zip(stamps)
    }

    /// When something happens, in nanoseconds since the machine's start.
    pub(crate) fn events(&self) -> impl Iterator<Item = f64> {
        self.conditions.events.iter().map(|&(at, _)| at)
    }

    /// Whether something had happened before the packet that fewer than so many anchors had shown.
    pub(crate) fn unseen(&self, packet: &Packet, anchors: usize) -> bool {
        let seen_until = |time| self.sampled.partition_point(|&sampled| sampled < time);
        let now = packet.truth.elapsed;
        let mut past = self.events().filter(|&at| at <= now);
        past.any(|at| seen_until(now) - seen_until(at) < anchors)
    }
}
