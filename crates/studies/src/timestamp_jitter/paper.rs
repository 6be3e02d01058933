//! Results of the report.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Source of the numbers.
pub(crate) const PAPER: &str =
    "6QM, \"D4.2: Final System Test Report\" (IST-2001-37611, 2007), section 3.2";

/// The numbers of Figures 3-5, 3-8 and 3-9.
pub(super) const PUBLISHED: &str = include_str!("published.json");

/// A row of [`PUBLISHED`], as far as it is used here.
#[derive(Debug, Deserialize)]
struct Row {
    probe: String,
    frame_bytes: u16,
    period_us: f64,
    deviation_us: f64,
}

/// Standard deviation of the times between packets by the report's Pentium 4, in nanoseconds.
pub(super) fn deviation_of_pentium_4(frame_bytes: u16, pause: Pause) -> Option<f64> {
    static ROWS: LazyLock<Vec<Row>> =
        LazyLock::new(|| serde_json::from_str(PUBLISHED).unwrap_or_default());
    let period_ns = f64::from(pause.period_ns(frame_bytes));
    let is_this = |row: &&Row| {
        row.probe == "Pentium 4"
            && row.frame_bytes == frame_bytes
            && (row.period_us * 1e3 - period_ns).abs() < 1.0
    };
    Some(ROWS.iter().find(is_this)?.deviation_us * 1e3)
}

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

    /// Name in reports.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_periods_are_the_reports() {
        for frame_bytes in [84, 300, 600, 900, 1200, 1500] {
            for pause in Pause::ALL {
                let deviation = deviation_of_pentium_4(frame_bytes, pause);
                assert!(deviation.is_some_and(|it| it > 600.0), "{frame_bytes} {pause:?}");
            }
        }
        assert_eq!(deviation_of_pentium_4(300, Pause::Five), Some(890.0));
        assert_eq!(deviation_of_pentium_4(301, Pause::Five), None);
    }
}
