//! Figures of a recording.

use std::path::PathBuf;

use serde::Serialize;
use wirestamp_metrics::{Distribution, InterArrival};

/// What was recorded.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Packets captured, and in the file if there is one.
    pub packets: u64,
    /// Bytes on the wire, without check sequences, of the packets captured.
    pub bytes: u64,
    /// Times between packets.
    pub interarrival_ns: InterArrival,
    /// How much later than the kernel's own stamp the raw one was taken; empty where the stamp is
    /// the kernel's.
    pub acquisition_lag_ns: Distribution,
    /// The largest error of a stamp against system time; none without packets.
    pub error_ns: Option<i64>,
    /// How often the system clock was stepped meanwhile.
    pub clock_steps: u32,
    /// What is in the file of anchors, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchors: Option<AnchorCount>,
    /// The files that have the packets, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

/// What was kept so that stamps can be converted again.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AnchorCount {
    /// Anchors in the file.
    pub written: u64,
    /// Intervals of more than half a minute without anchors.
    pub gaps: u32,
}
