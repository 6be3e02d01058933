//! Factors of the experiment.

use serde::Serialize;

use super::QUEUE_FRAMES;
use super::contender::CONTENDERS;
use crate::experiment::{Cell, Design, Factor};
use crate::loss::paper::PACKETS;

/// Time from frame to frame of 64 bytes at 1 Gbit/s, the paper's link.
const LINE_RATE_NS: u64 = 672;

/// Factors and repetitions.
#[derive(Clone, Copy, Debug)]
pub(in crate::loss) struct SoftirqScale {
    pub(in crate::loss) repetitions: u32,
    /// Bytes of a frame, check sequence included.
    pub(in crate::loss) frame_bytes: &'static [u16],
    /// From the beginning of a frame to that of the next, on average, in nanoseconds; 0 for as fast as it goes.
    pub(in crate::loss) gaps_ns: &'static [u64],
    /// Max attempts to send a round at the requested load. The sender may lose its core for some milliseconds, and in some
    /// rounds sending itself is slow: it takes up to 250 ms instead of 13.
    pub(in crate::loss) attempts: u32,
}

impl SoftirqScale {
    /// As many rounds as fit in 15 minutes.
    pub(in crate::loss) const FULL: Self = Self {
        repetitions: 20,
        frame_bytes: &[64, 256, 1518],
        gaps_ns: &[0, LINE_RATE_NS, 1_000, 2_000, 4_000],
        attempts: 10,
    };
    /// As many rounds as fit in 30 seconds.
    pub(in crate::loss) const QUICK: Self =
        Self { repetitions: 3, frame_bytes: &[64, 1518], gaps_ns: &[0, 2_000], attempts: 2 };

    /// Contender and condition of a cell.
    pub(super) fn condition(self, cell: &Cell) -> Condition {
        let level = |factor: usize| cell.0.get(factor).copied().unwrap_or(0);
        Condition {
            contender: level(0),
            frame_bytes: self.frame_bytes.get(level(1)).copied().unwrap_or(64),
            gap_ns: self.gaps_ns.get(level(2)).copied().unwrap_or(0),
        }
    }

    /// The design, with these names of contenders.
    pub(in crate::loss) fn design(self, contenders: [&str; CONTENDERS]) -> Design {
        let sizes: Vec<_> = self.frame_bytes.iter().map(u16::to_string).collect();
        let gaps: Vec<_> = self.gaps_ns.iter().map(|gap| format!("{gap}ns")).collect();
        Design {
            name: "loss-softirq".to_owned(),
            factors: vec![
                Factor::new("per packet", contenders),
                Factor::new("frame bytes", sizes.iter().map(String::as_str)),
                Factor::new("gap", gaps.iter().map(String::as_str)),
            ],
            repetitions: self.repetitions,
            constants: vec![
                ("packets".to_owned(), PACKETS.to_string()),
                ("queue frames".to_owned(), QUEUE_FRAMES.to_string()),
                ("queue".to_owned(), "veth".to_owned()),
            ],
        }
    }
}

/// A combination of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Condition {
    /// Index of the contender.
    #[serde(skip)]
    pub(super) contender: usize,
    /// Bytes of a frame, check sequence included.
    pub(super) frame_bytes: u16,
    /// From the beginning of a frame to that of the next, on average.
    pub(super) gap_ns: u64,
}
