//! Factors and results of the paper.

/// Source of the numbers.
pub(crate) const PAPER: &str = "Grigorjew et al., \"Understanding the Performance of Different Packet Reception and \
                         Timestamping Methods in Linux\" (2023)";

/// Table I: frame sizes in bytes.
pub(super) const FRAME_BYTES: [u16; 3] = [64, 256, 1518];

/// Table I: link speeds, without the 10 Gbit/s whose results the paper calls inconclusive.
pub(super) const SPEEDS: [Speed; 2] = [
    Speed { name: "100M", bits_per_second: 100_000_000 },
    Speed { name: "1G", bits_per_second: 1_000_000_000 },
];

/// Link speeds at which the share of measured packets is compared.
pub(super) const LINE_RATES: [Speed; 2] =
    [SPEEDS[1], Speed { name: "10G", bits_per_second: 10_000_000_000 }];

/// Table I: all link speeds.
pub(super) const LINK_SPEEDS: [Speed; 3] = [SPEEDS[0], LINE_RATES[0], LINE_RATES[1]];

/// A link speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speed {
    pub(super) name: &'static str,
    pub(super) bits_per_second: u64,
}

/// Bytes on a link in addition to a frame: preamble, start of frame and the gap between packets (IEEE 802.3).
const AROUND_A_FRAME: u64 = 7 + 1 + 12;

/// Bytes of a frame on a link; `frame_bytes` includes the check sequence.
pub(super) const fn bytes_on_the_link(frame_bytes: u16) -> u64 {
    frame_bytes as u64 + AROUND_A_FRAME
}

impl Speed {
    /// The time from one frame to the next at full line rate, in nanoseconds.
    pub(super) fn interval_ns(self, frame_bytes: u16) -> u64 {
        let bits = bytes_on_the_link(frame_bytes) * 8;
        bits * 1_000_000_000 / self.bits_per_second
    }

    /// Frames a second at full line rate.
    pub(super) fn frames_per_second(self, frame_bytes: u16) -> u64 {
        1_000_000_000 / self.interval_ns(frame_bytes)
    }
}

/// Table I: load of the measuring CPU.
pub(super) const LOADS: [&str; 2] = ["idle", "stress"];

/// The frame size and the speed of Figure 2, and those of Figures 5 and 6.
pub(super) const FIGURE_2: (u16, &str) = (256, "1G");
pub(super) const FIGURES_5_AND_6: (u16, &str) = (64, "1G");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rate_is_that_of_ethernet() {
        // 1 488 095 and 148 809 frames a second of 64 bytes, 81 274 of 1518.
        assert_eq!(SPEEDS[1].interval_ns(64), 672);
        assert_eq!(SPEEDS[0].interval_ns(64), 6_720);
        assert_eq!(SPEEDS[1].interval_ns(1518), 12_304);
        assert_eq!(LINE_RATES[1].interval_ns(64), 67);
    }
}
