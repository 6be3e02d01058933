//! Options, progress and result of the demo.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_clock::ClockStatus;
use wirestamp_metrics::Quality;
use wirestamp_metrics::numeric::nanos_to_f64;
use wirestamp_report::Check;
use wirestamp_session::TapReport;

/// Options of the demo.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Duration of sending.
    pub(super) duration: Duration,
    /// Folder of the report and the captures; created if missing.
    pub(super) folder: PathBuf,
    /// Whether the packets are IPv6 rather than IPv4.
    pub(super) ipv6: bool,
}

/// Progress of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Progress {
    /// Another step has begun.
    Step(&'static str),
    /// This share of the packets is sent, 0 to 1.
    Sending(f64),
}

/// Result of the demo: traffic across a bottleneck, measured and compared with known values.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DemoResult {
    /// Whether the run was interrupted.
    pub(super) interrupted: bool,
    /// Clock of the stamps.
    pub(super) clock: ClockStatus,
    /// The bottleneck's rate in bit/s.
    pub(super) rate_bits_per_s: u64,
    /// The bottleneck's queue in bytes.
    pub(super) queue_bytes: u32,
    /// Result of each stream.
    pub(super) streams: Vec<StreamResult>,
    /// All streams together.
    pub(super) total: Quality,
    /// Comparisons with the truth.
    pub(super) checks: Vec<Check>,
    /// The two taps, A and B.
    pub(super) taps: Vec<TapReport>,
    /// Notes: permissions that were not granted, and missing parts of the truth.
    pub(super) notes: Vec<String>,
    /// The report.
    pub(super) report: PathBuf,
    /// The captures at tap A and B.
    pub(super) captures: [PathBuf; 2],
}

/// Result of one stream.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StreamResult {
    /// Name of the stream.
    pub(super) name: &'static str,
    /// Description of its pattern.
    pub(super) pattern: String,
    /// Its UDP destination port.
    pub(super) port: u16,
    /// Loss, delay and order of its packets.
    #[serde(flatten)]
    pub(super) quality: Quality,
}

impl DemoResult {
    /// Whether all checks hold.
    #[must_use]
    pub(super) fn agrees(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

/// Nanoseconds in milliseconds, for people.
pub(super) fn millis(nanos: i64) -> f64 {
    nanos_to_f64(nanos) / 1e6
}
