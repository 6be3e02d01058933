//! Results of the report.

use serde::Serialize;

/// Source of the numbers.
pub(crate) const PAPER: &str =
    "6QM, \"D4.2: Final System Test Report\" (IST-2001-37611, 2007), section 3.2";

/// Its faster probe.
pub(super) const PENTIUM_4: &str = "Pentium 4";
/// Its slower one.
pub(super) const AMD_K6: &str = "AMD K6";

/// A byte at 100 Mbit/s, the rate of the report's wire, in nanoseconds.
const BYTE_NS: u32 = 80;

/// A time between the end of a packet and the beginning of the next, "Tbp".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pause {
    /// 0.96 µs, the least that Ethernet of 100 Mbit/s has: the wire is full.
    Least,
    /// Frames and preambles fill 40 % of the wire.
    FortyPercent,
    /// 500 µs.
    Half,
    /// 1000 µs.
    One,
    /// 5000 µs.
    Five,
}

impl Pause {
    /// All of the report's for its faster probe.
    pub(super) const ALL: [Self; 5] =
        [Self::Least, Self::FortyPercent, Self::Half, Self::One, Self::Five];

    /// In a word.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Least => "full",
            Self::FortyPercent => "40-percent",
            Self::Half => "500us",
            Self::One => "1000us",
            Self::Five => "5000us",
        }
    }

    /// From a packet to the next with frames of `frame_bytes`, check sequence included: "Tb+Tbp", in
    /// nanoseconds.
    pub(super) const fn period_ns(self, frame_bytes: u16) -> u32 {
        let frame = frame_bytes as u32 * BYTE_NS;
        frame
            + match self {
                Self::Least => 960,
                // At 40 % the period is 2.5 times what frame, preamble (8 bytes) and least pause
                // (12 bytes) take; the report counts the preamble to neither frame nor pause.
                Self::FortyPercent => (frame + 20 * BYTE_NS) * 5 / 2 - 8 * BYTE_NS - frame,
                Self::Half => 500_000,
                Self::One => 1_000_000,
                Self::Five => 5_000_000,
            }
    }
}

/// A row of Figures 3-5, 3-8 and 3-9. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Published {
    /// The probe.
    pub(super) probe: &'static str,
    /// "Frame size", with check sequence.
    pub(super) frame_bytes: u16,
    /// "Tb+Tbp" as the sender was set.
    pub(super) period_us: f64,
    /// "Max."
    pub(super) max_us: f64,
    /// "Min."
    pub(super) min_us: f64,
    /// "Mean"
    pub(super) mean_us: f64,
    /// "Stdvt"
    pub(super) deviation_us: f64,
    /// "Error for Mean"
    pub(super) mean_error_us: f64,
    /// "Packet Loss (%)"
    pub(super) loss_percent: f64,
}

const fn row(
    probe: &'static str,
    frame_bytes: u16,
    period_us: f64,
    [max_us, min_us, mean_us, deviation_us]: [f64; 4],
    mean_error_us: f64,
    loss_percent: f64,
) -> Published {
    Published {
        probe,
        frame_bytes,
        period_us,
        max_us,
        min_us,
        mean_us,
        deviation_us,
        mean_error_us,
        loss_percent,
    }
}

/// All rows of both probes.
#[rustfmt::skip]
pub(super) const PUBLISHED: [Published; 37] = [
    row(PENTIUM_4, 84, 7.68, [61934.0, 1.0, 26.0, 62.72], 18.32, 68.91),
    row(PENTIUM_4, 84, 20.16, [9441.0, 2.0, 20.0, 6.67], 0.16, 0.05),
    row(PENTIUM_4, 84, 506.72, [520.0, 496.0, 507.0, 0.71], 0.28, 0.0),
    row(PENTIUM_4, 84, 1006.72, [1017.0, 998.0, 1007.0, 0.68], 0.28, 0.0),
    row(PENTIUM_4, 84, 5006.72, [5021.0, 5004.0, 5012.0, 0.87], 5.28, 0.0),
    row(PENTIUM_4, 300, 24.96, [21276.0, 2.0, 25.0, 17.46], 0.04, 0.14),
    row(PENTIUM_4, 300, 63.36, [2944.0, 39.0, 64.0, 3.03], 0.64, 0.0),
    row(PENTIUM_4, 300, 524.0, [542.0, 507.0, 524.0, 0.87], 0.0, 0.0),
    row(PENTIUM_4, 300, 1024.0, [1036.0, 1015.0, 1024.0, 1.02], 0.0, 0.0),
    row(PENTIUM_4, 300, 5024.0, [5039.0, 5024.0, 5029.0, 0.89], 5.0, 0.0),
    row(PENTIUM_4, 600, 48.96, [6051.0, 20.0, 49.0, 13.41], 0.04, 0.09),
    row(PENTIUM_4, 600, 123.36, [150.0, 98.0, 124.0, 0.74], 0.64, 0.0),
    row(PENTIUM_4, 600, 548.0, [557.0, 540.0, 548.0, 0.89], 0.0, 0.0),
    row(PENTIUM_4, 600, 1048.0, [1058.0, 1039.0, 1048.0, 0.93], 0.0, 0.0),
    row(PENTIUM_4, 600, 5048.0, [5060.0, 5043.0, 5050.0, 1.26], 2.0, 0.0),
    row(PENTIUM_4, 900, 72.96, [24952.0, 50.0, 73.0, 33.85], 0.04, 0.1),
    row(PENTIUM_4, 900, 183.36, [203.0, 165.0, 183.0, 1.23], 0.36, 0.0),
    row(PENTIUM_4, 900, 572.0, [590.0, 555.0, 572.0, 0.94], 0.0, 0.0),
    row(PENTIUM_4, 900, 1072.0, [2145.0, 1063.0, 1072.0, 4.63], 0.0, 0.0),
    row(PENTIUM_4, 900, 5072.0, [5085.0, 5064.0, 5072.0, 1.02], 0.0, 0.0),
    row(PENTIUM_4, 1200, 96.96, [21278.0, 74.0, 97.0, 28.63], 0.04, 0.05),
    row(PENTIUM_4, 1200, 243.36, [259.0, 230.0, 243.0, 1.24], 0.36, 0.0),
    row(PENTIUM_4, 1200, 596.0, [611.0, 584.0, 596.0, 1.0], 0.0, 0.0),
    row(PENTIUM_4, 1200, 1096.0, [48250.0, 1088.0, 1097.0, 201.67], 1.0, 0.08),
    row(PENTIUM_4, 1200, 5096.0, [5110.0, 5088.0, 5096.0, 1.07], 0.0, 0.0),
    row(PENTIUM_4, 1500, 120.96, [20794.0, 96.0, 121.0, 30.39], 0.04, 0.04),
    row(PENTIUM_4, 1500, 303.36, [319.0, 289.0, 303.0, 1.21], 0.36, 0.0),
    row(PENTIUM_4, 1500, 620.0, [633.0, 609.0, 620.0, 0.95], 0.0, 0.0),
    row(PENTIUM_4, 1500, 1120.0, [40343.0, 1112.0, 1121.0, 169.56], 1.0, 0.07),
    row(PENTIUM_4, 1500, 5120.0, [5132.0, 5112.0, 5119.0, 1.36], 1.0, 0.0),
    row(AMD_K6, 300, 24.96, [385281.0, 10.0, 266.0, 881.83], 241.04, 90.39),
    row(AMD_K6, 300, 37.44, [95202.0, 12.0, 129.0, 207.94], 91.56, 70.66),
    row(AMD_K6, 300, 63.36, [218747.0, 36.0, 85.0, 297.95], 21.64, 25.13),
    row(AMD_K6, 300, 207.36, [3347.0, 10.0, 207.0, 9.04], 0.36, 0.01),
    row(AMD_K6, 300, 524.0, [739.0, 356.0, 524.0, 5.81], 0.0, 0.0),
    row(AMD_K6, 300, 1024.0, [1257.0, 860.0, 1024.0, 5.94], 0.0, 0.0),
    row(AMD_K6, 300, 5024.0, [5279.0, 4785.0, 5029.0, 8.45], 5.0, 0.02),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_periods_are_the_reports() {
        let has = |probe: &str, frame_bytes: u16, period_ns: u32| {
            PUBLISHED.iter().any(|row| {
                (row.probe, row.frame_bytes) == (probe, frame_bytes)
                    && (row.period_us * 1e3 - f64::from(period_ns)).abs() < 1.0
            })
        };
        for frame_bytes in [84, 300, 600, 900, 1200, 1500] {
            for pause in Pause::ALL {
                let period = pause.period_ns(frame_bytes);
                assert!(has(PENTIUM_4, frame_bytes, period), "{frame_bytes} {pause:?}: {period}");
            }
        }
        assert!(has(AMD_K6, 300, 24_960) && !has(AMD_K6, 84, 7_680));
    }
}
