//! Figures of a recording.

use std::path::PathBuf;

use serde::Serialize;
use wirestamp_metrics::{Distribution, InterArrival};

/// Totals of a recording.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Packets captured, and in the file if there is one.
    pub packets: u64,
    /// Bytes on the wire, without frame check sequences, of the packets captured.
    pub bytes: u64,
    /// Times between packets.
    pub interarrival_ns: InterArrival,
    /// Delay of the raw stamp after the kernel's; empty where the kernel's stamp is used.
    pub acquisition_lag_ns: Distribution,
    /// Max error of a stamp against system time, in nanoseconds; `None` without packets.
    pub error_ns: Option<i64>,
    /// Steps of the system clock during the recording.
    pub clock_steps: u32,
    /// Whether a stamp of the kernel has no counter value, and an error that includes no step of the system clock.
    #[serde(skip)]
    pub steps_unbounded: bool,
    /// Content of the anchor file, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchors: Option<AnchorCount>,
    /// Files of the packets, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

/// Anchors kept for a later conversion of stamps.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnchorCount {
    /// Anchors in the file.
    pub written: u64,
    /// Intervals of more than half a minute without anchors.
    pub gaps: u32,
}
