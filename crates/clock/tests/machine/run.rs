//! A capture on the simulated machine: packets, and a calibrator that samples as the service does.

use std::sync::Arc;

use wirestamp_clock::{Calibrator, Stamp, Timeline};

use super::{Conditions, Random, SimulatedClocks, Truth};

const SECOND: f64 = 1e9;
const FIRST_INTERVAL: f64 = 1e6;
const MAX_INTERVAL: f64 = 250e6;
const PACKETS_PER_INTERVAL: u32 = 25;

/// A packet: its true time and its stamps.
pub(crate) struct Packet {
    pub(crate) truth: Truth,
    /// Converted at once, beyond the newest anchor.
    pub(crate) live: Stamp,
    /// Converted again after one more anchor, in the newest segment.
    pub(crate) fresh: Stamp,
}

/// A run of the simulated machine.
pub(crate) struct Run {
    pub(crate) packets: Vec<Packet>,
    /// The last timeline.
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) start: Truth,
    conditions: Conditions,
    /// Times of the anchors, in nanoseconds since the machine's start.
    sampled: Vec<f64>,
}

/// Runs the calibrator as the service does, with packets in between.
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
        interval = if stepped { FIRST_INTERVAL } else { (interval * 2.0).min(MAX_INTERVAL) };
    }
    Run { packets, timeline: calibrator.timeline(), start, conditions, sampled }
}

impl Run {
    /// Every packet with its stamp by the last timeline, between anchors on both sides.
    pub(crate) fn converted(&self) -> impl Iterator<Item = (&Packet, Stamp)> {
        let raw: Vec<u64> = self.packets.iter().map(|packet| packet.truth.raw).collect();
        let mut stamps = Vec::new();
        self.timeline.convert_batch(&raw, &mut stamps);
        self.packets.iter().zip(stamps)
    }

    /// Times of the events, in nanoseconds since the machine's start.
    pub(crate) fn events(&self) -> impl Iterator<Item = f64> {
        self.conditions.events.iter().map(|&(at, _)| at)
    }

    /// True if an event before the packet has fewer than `anchors` anchors after it.
    pub(crate) fn unseen(&self, packet: &Packet, anchors: usize) -> bool {
        let seen_until = |time| self.sampled.partition_point(|&sampled| sampled < time);
        let now = packet.truth.elapsed;
        let mut past = self.events().filter(|&at| at <= now);
        past.any(|at| seen_until(now) - seen_until(at) < anchors)
    }
}
