//! The device: a token bucket, what an ideal one does, and how bursts are measured.

use crate::experiment::{Cell, Design};
use crate::reception::paper::{LINK_SPEEDS, Speed, bytes_on_the_link};
use crate::tester::CHECK_SEQUENCE;
use wirestamp_report::format::real;

/// Bytes of a frame, check sequence included: the largest of Table I.
pub(super) const FRAME_BYTES: u16 = 1518;
/// Frames of a train.
pub(super) const FRAMES: u32 = 32;
/// What the link adds to a frame of a veth, which has no check sequence.
const OVERHEAD_BYTES: u64 = bytes_on_the_link(FRAME_BYTES) - VETH_FRAME_BYTES;
const VETH_FRAME_BYTES: u64 = (FRAME_BYTES - CHECK_SEQUENCE) as u64;

/// A token bucket (tc-tbf(8)) that limits frames to a link speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) speed: Speed,
    /// Frames that it forwards at once after an idle time: 1 for a link, more for a policy that allows bursts.
    pub(super) depth_frames: u32,
}

impl Device {
    /// The device of a cell; none if the design has other factors.
    pub(super) fn of(design: &Design, cell: &Cell) -> Option<Self> {
        let [speed, depth] = design.levels(cell).try_into().ok()?;
        let speed = LINK_SPEEDS.into_iter().find(|it| it.name == speed)?;
        Some(Self { speed, depth_frames: depth.parse().ok()? })
    }

    /// Serialisation time of a frame in nanoseconds, with preamble and the gap between packets.
    pub(super) fn frame_ns(self) -> f64 {
        real(bytes_on_the_link(FRAME_BYTES) * 8) * 1e9 / real(self.speed.bits_per_second)
    }

    /// The command line that sets it up at an interface. The queue has room for a train.
    pub(super) fn command(self, interface: &str) -> String {
        // The kernel adds the overhead to the burst once (`tbf_change` of net/sched/sch_tbf.c).
        let burst = u64::from(self.depth_frames) * bytes_on_the_link(FRAME_BYTES) - OVERHEAD_BYTES;
        format!(
            "tc qdisc replace dev {interface} root handle 1: tbf rate {}bit burst {burst} limit {} overhead \
             {OVERHEAD_BYTES}",
            self.speed.bits_per_second,
            u64::from(2 * FRAMES) * VETH_FRAME_BYTES,
        )
    }

    /// When frames that arrive at these times, in nanoseconds, leave an ideal bucket that is full at the first: without a
    /// forwarding delay, and with a timer that is never late.
    pub(super) fn departures(self, arrivals: &[f64]) -> Vec<f64> {
        let frame = self.frame_ns();
        let depth = f64::from(self.depth_frames) * frame;
        // Tokens in nanoseconds, as in the kernel.
        let (mut tokens, mut last) = (depth, arrivals.first().copied().unwrap_or(0.0));
        let departure = |arrival: &f64| {
            let ready = arrival.max(last);
            let available = (tokens + ready - last).min(depth);
            let departs = ready + (frame - available).max(0.0);
            (tokens, last) = ((available - frame).max(0.0), departs);
            departs
        };
        arrivals.iter().map(departure).collect()
    }

    /// Burstiness of frames at these times: the min depth of a token bucket, in frames, that is filled at the link speed and
    /// forwards them without delay (arrival curve: Le Boudec and Thiran, "Network Calculus", 2001, section 1.2). At least 1;
    /// none without frames.
    pub(super) fn burstiness(self, times: &[f64]) -> Option<f64> {
        let gaps = gaps(times).map(|gap| gap / self.frame_ns());
        let used = |above: &mut f64, gap: f64| {
            *above = (*above - gap).max(0.0) + 1.0;
            Some(*above)
        };
        let depths = gaps.scan(1.0, used);
        times.first().map(|_| depths.fold(1.0, f64::max))
    }

    /// Frames of the longest burst: frames in a row with gaps shorter than half the serialisation time, which no link of this
    /// speed has.
    pub(super) fn longest_burst(self, times: &[f64]) -> Option<f64> {
        let is_burst = |gap: f64| gap < self.frame_ns() / 2.0;
        let length = |length: &mut f64, gap: f64| {
            *length = if is_burst(gap) { *length + 1.0 } else { 1.0 };
            Some(*length)
        };
        times.first().map(|_| gaps(times).scan(1.0, length).fold(1.0, f64::max))
    }
}

/// Times between frames that follow each other.
pub(super) fn gaps(times: &[f64]) -> impl Iterator<Item = f64> {
    times.windows(2).map(|pair| pair[1] - pair[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 Mbit/s.
    const fn device(depth_frames: u32) -> Device {
        Device { speed: LINK_SPEEDS[0], depth_frames }
    }

    fn is_near(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6)
    }

    #[test]
    fn serialisation_time_is_that_of_ethernet() {
        let times = LINK_SPEEDS.map(|speed| Device { speed, depth_frames: 1 }.frame_ns());
        assert!(is_near(&times, &[123_040.0, 12_304.0, 1_230.4]), "{times:?}");
    }

    #[test]
    fn bucket_holds_whole_frames_with_their_overhead() {
        let command = device(1).command("out");
        assert!(
            command.contains("rate 100000000bit burst 1514 limit 96896 overhead 24"),
            "{command}"
        );
        assert!(device(8).command("out").contains("burst 12280 "));
    }

    #[test]
    fn train_leaves_a_bucket_of_one_frame_at_the_link_speed() {
        let device = device(1);
        let frame = device.frame_ns();
        let left = device.departures(&[0.0; 4]);
        assert!(is_near(&left, &[0.0, frame, 2.0 * frame, 3.0 * frame]), "{left:?}");
        assert_eq!(device.longest_burst(&left), Some(1.0));
        assert!((device.burstiness(&left).unwrap() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn bucket_forwards_a_burst_of_its_depth() {
        let device = device(3);
        let frame = device.frame_ns();
        let arrivals = [0.0; 6];
        assert_eq!(device.burstiness(&arrivals), Some(6.0));
        assert_eq!(device.longest_burst(&arrivals), Some(6.0));
        let left = device.departures(&arrivals);
        assert!(is_near(&left, &[0.0, 0.0, 0.0, frame, 2.0 * frame, 3.0 * frame]), "{left:?}");
        assert!((device.burstiness(&left).unwrap() - 3.0).abs() < 1e-6);
        assert_eq!(device.longest_burst(&left), Some(3.0));
    }

    #[test]
    fn frames_slower_than_the_link_are_not_delayed() {
        let arrivals = [5.0, 200_000.0, 400_000.0];
        let device = device(1);
        assert!(is_near(&device.departures(&arrivals), &arrivals));
        assert_eq!(device.burstiness(&arrivals), Some(1.0));
        assert_eq!((device.burstiness(&[]), device.longest_burst(&[])), (None, None));
    }

    #[test]
    fn idle_time_fills_the_bucket_up_to_its_depth() {
        let device = device(2);
        let frame = device.frame_ns();
        // After the first two the bucket is empty; half a serialisation time fills half a frame.
        let left = device.departures(&[0.0, 0.0, frame / 2.0, 100.0 * frame, 100.0 * frame]);
        assert!(is_near(&left, &[0.0, 0.0, frame, 100.0 * frame, 100.0 * frame]), "{left:?}");
    }
}
