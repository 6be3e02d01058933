//! Results of the report.

use serde::Serialize;

/// Source of the numbers.
pub(crate) const PAPER: &str =
    "6QM, \"D4.2: Final System Test Report\" (IST-2001-37611, 2007), section 3.2";

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
        let published: serde_json::Value =
            serde_json::from_str(include_str!("published.json")).unwrap();
        let has = |probe: &str, frame_bytes: u16, period_ns: u32| {
            published.as_array().unwrap().iter().any(|row| {
                let period_us = row["period_us"].as_f64().unwrap();
                row["probe"] == probe
                    && row["frame_bytes"] == frame_bytes
                    && (period_us * 1e3 - f64::from(period_ns)).abs() < 1.0
            })
        };
        for frame_bytes in [84, 300, 600, 900, 1200, 1500] {
            for pause in Pause::ALL {
                let period = pause.period_ns(frame_bytes);
                assert!(has("Pentium 4", frame_bytes, period), "{frame_bytes} {pause:?}: {period}");
            }
        }
        assert!(has("AMD K6", 300, 24_960) && !has("AMD K6", 84, 7_680));
    }
}
