//! Traffic and bottleneck of a run.

use std::net::SocketAddr;

use wirestamp_clock::Span;
use wirestamp_lab::{Impairments, SINK_V6};
use wirestamp_traffic::{Pattern, PatternError, Stream, StreamPlan};

/// Bytes of preamble and min gap, which a frame occupies on an Ethernet link in addition to its own (IEEE 802.3).
const BETWEEN_FRAMES: u64 = 20;
/// The check sequence, which the paper includes in frame sizes and interfaces do not show.
const CHECK_SEQUENCE: u16 = 4;
/// The paper's links.
const LINK_BITS_PER_S: u64 = 100_000_000;

/// The UDP port of the passive traffic, which stands for the tester's.
pub(super) const PASSIVE_PORT: u16 = 6000;
/// That of the active traffic, which a probe sends itself.
const ACTIVE_PORT: u16 = 6001;
/// That of the frames ahead of the test.
const AHEAD_PORT: u16 = 6002;
/// That of a mesh's active task, where its own reflector is.
pub(super) const REFLECTOR_PORT: u16 = 6003;
/// All ports that packets go to.
pub(super) const PORTS: [u16; 3] = [PASSIVE_PORT, ACTIVE_PORT, AHEAD_PORT];
/// The passive traffic's number in its payload.
pub(super) const PASSIVE: u16 = 1;

/// Frames sent before the test to warm the caches: its first packet has the shortest delay.
const WARMUP_FRAMES: u64 = 50;
/// Time between them; long enough to leave the queue empty.
const WARMUP_INTERVAL: Span = Span::from_millis(2);
/// Start of the test, just after the last warm-up frame: the token bucket then has tokens for one frame only.
const START: Span = Span::from_micros(98_500);

/// The frames of the active flow, without check sequence: 300 bytes of payload behind Ethernet, IPv6
/// and UDP headers (section 3.5).
const ACTIVE_FRAME: u16 = 14 + 40 + 8 + 300;
/// The same above IP.
pub(super) const ACTIVE_ABOVE_IP: u16 = 8 + 300;
/// 1,000 of them a second.
const ACTIVE_INTERVAL: Span = Span::from_millis(1);

/// Setting of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The length of the passive traffic's frames in bytes, with check sequence as in the paper.
    pub(super) frame: u16,
    /// Load of the paper's link, in thousandths.
    pub(super) load: u32,
    /// The measurement tasks of a probe: 1 or 4.
    pub(super) tasks: u32,
    /// How long it sends.
    pub(super) lasting: Span,
    /// The bottleneck of the path.
    pub(super) bottleneck: Bottleneck,
}

/// The link between the routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bottleneck {
    /// Its rate in bit/s, preambles and gaps included.
    pub(super) bits_per_s: u64,
    /// How many of the passive traffic's frames the queue before it holds.
    pub(super) frames: u32,
}

impl Bottleneck {
    /// The bottleneck of section 3.3: it sent 1,528 packets of 84 bytes a second (Figure 3-14, first and third
    /// test), that is 500 packets in 327.08 ms.
    pub(super) const fn of_precision(frame: u16) -> Self {
        Self { bits_per_s: 1_528 * on_the_link(frame) * 8, frames: 500 }
    }

    /// The bottleneck of sections 3.4 to 3.6: an Ethernet of 10 Mbit/s, by the packets that left it. The
    /// queue length follows from the longest delays of Figure 3-22.
    pub(crate) const fn of_ethernet(frame: u16) -> Self {
        Self { bits_per_s: 10_000_000, frames: if frame <= 900 { 519 } else { 263 } }
    }

    /// The lab's path with it, for frames of this length. The token bucket counts only the bytes that interfaces
    /// show, so its rate is that share of the link's rate.
    pub(crate) fn impairments(self, frame: u16) -> Impairments {
        let shown = frame.saturating_sub(CHECK_SEQUENCE);
        let rate = self.bits_per_s * u64::from(shown) / on_the_link(frame);
        Impairments::bottleneck(rate, self.frames * u32::from(shown))
    }
}

/// The bytes that a frame takes of a link.
const fn on_the_link(frame: u16) -> u64 {
    frame as u64 + BETWEEN_FRAMES
}

impl Setting {
    /// The passive traffic's frames as interfaces show them, in bytes.
    const fn shown(&self) -> u16 {
        self.frame.saturating_sub(CHECK_SEQUENCE)
    }

    /// From one passive frame to the next.
    pub(super) fn interval(&self) -> Span {
        let bits = u128::from(on_the_link(self.frame)) * 8;
        let share = u128::from(LINK_BITS_PER_S) * u128::from(self.load.max(1)) / 1000;
        Span::from_nanos(i64::try_from(bits * 1_000_000_000 / share.max(1)).unwrap_or(i64::MAX))
    }

    /// The lab's path.
    pub(super) fn impairments(&self) -> Impairments {
        self.bottleneck.impairments(self.frame)
    }

    /// Traffic: passive, with several tasks also active, and warm-up packets.
    pub(super) fn streams(&self) -> Result<Vec<Stream>, PatternError> {
        let passive = Pattern::new("passive", self.shown(), self.interval())?;
        let active = Pattern::new("active", ACTIVE_FRAME, ACTIVE_INTERVAL)?;
        let ahead = Pattern::new("ahead", self.shown(), WARMUP_INTERVAL)?;
        let plan = |pattern: Pattern| {
            let packets = pattern.packets_in(self.lasting);
            StreamPlan { pattern, start: START, packets }
        };
        let active = (self.tasks > 1).then(|| plan(active));
        let ahead = StreamPlan { pattern: ahead, start: Span::ZERO, packets: WARMUP_FRAMES };
        let plans = [Some(plan(passive)), active, Some(ahead)];
        let streams = (PASSIVE..).zip(PORTS).zip(plans);
        let stream = |((id, port), plan)| Some(Stream::new(id, plan?, at_the_sink(port)));
        Ok(streams.filter_map(stream).collect())
    }
}

/// A port of the far end.
pub(super) fn at_the_sink(port: u16) -> SocketAddr {
    (SINK_V6, port).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(frame: u16, load: u32) -> Setting {
        let bottleneck = Bottleneck::of_ethernet(frame);
        Setting { frame, load, tasks: 1, lasting: Span::from_secs(1), bottleneck }
    }

    #[test]
    fn the_rates_are_those_of_the_papers_tables() {
        // Figure 3-22: packets a second at 40 % and 100 % load.
        for (frame, at_40, at_100) in [
            (300, 15_625, 39_063),
            (600, 8_065, 20_161),
            (900, 5_435, 13_587),
            (1200, 4_098, 10_246),
            (1500, 3_289, 8_224),
        ] {
            for (load, rate) in [(400, at_40), (1000, at_100)] {
                let interval = setting(frame, load).interval().as_nanos();
                let here = (1_000_000_000 + interval / 2) / interval;
                assert_eq!(here, rate, "{frame} bytes at {load}");
            }
        }
    }

    #[test]
    fn the_full_queue_holds_a_frame_as_long_as_in_the_paper() {
        // Figure 3-22: the longest delays in milliseconds.
        for (frame, longest) in
            [(300, 133.0), (600, 257.5), (900, 382.0), (1200, 257.0), (1500, 320.0)]
        {
            let path = setting(frame, 400).impairments();
            let ms = f64::from(path.queue_bytes) * 8e3
                / f64::from(u32::try_from(path.rate_bits_per_s).unwrap());
            assert!((ms / longest - 1.0).abs() < 0.01, "{frame} bytes: {ms} ms");
        }
    }

    #[test]
    fn several_tasks_send_a_flow_of_their_own() {
        let setting = Setting { tasks: 4, ..setting(300, 400) };
        let packets: Vec<_> =
            setting.streams().unwrap().iter().map(|stream| stream.plan.packets).collect();
        assert_eq!(packets, [15_625, 1_000, 50]);
    }
}
