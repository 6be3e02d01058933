//! Options, progress and result of the demo.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use wirestamp_clock::ClockStatus;
use wirestamp_metrics::Quality;
use wirestamp_metrics::numeric::nanos_to_f64;
use wirestamp_report::Check;
use wirestamp_session::TapReport;

/// What to do.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// How long packets are sent.
    pub(super) duration: Duration,
    /// Where the report and the captures go. Made if it does not exist.
    pub(super) folder: PathBuf,
    /// Whether the packets are IPv6 rather than IPv4.
    pub(super) ipv6: bool,
}

/// How far the run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Progress {
    /// Another step has begun.
    Step(&'static str),
    /// This share of the packets is sent, 0 to 1.
    Sending(f64),
}

/// What came of it. Serialises as the document of `wirestamp demo --json`.
#[derive(Debug, Serialize)]
pub(super) struct DemoResult {
    /// Whether it was stopped before everything was sent.
    pub(super) interrupted: bool,
    /// The clock behind the stamps.
    pub(super) clock: ClockStatus,
    /// The bottleneck's rate in bit/s.
    pub(super) rate_bits_per_s: u64,
    /// The bottleneck's queue in bytes.
    pub(super) queue_bytes: u32,
    /// Each stream, and what the path did to it.
    pub(super) streams: Vec<StreamResult>,
    /// All streams together.
    pub(super) total: Quality,
    /// What was compared with the truth.
    pub(super) checks: Vec<Check>,
    /// The two taps, A and B.
    pub(super) taps: Vec<TapReport>,
    /// Where less was granted than asked for, or a part of the truth is missing, in words.
    pub(super) notes: Vec<String>,
    /// The report.
    pub(super) report: PathBuf,
    /// The captures at tap A and B.
    pub(super) captures: [PathBuf; 2],
}

/// What was found of one stream.
#[derive(Debug, Serialize)]
pub(super) struct StreamResult {
    /// What it stands for.
    pub(super) name: &'static str,
    /// Its rhythm, in words.
    pub(super) pattern: String,
    /// Its UDP destination port.
    pub(super) port: u16,
    /// What the path did to it.
    #[serde(flatten)]
    pub(super) quality: Quality,
}

impl DemoResult {
    /// Whether everything that was compared with the truth agrees with it.
    #[must_use]
    pub(super) fn is_true(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

/// Nanoseconds in milliseconds, for people.
pub(super) fn millis(nanos: i64) -> f64 {
    nanos_to_f64(nanos) / 1e6
}
