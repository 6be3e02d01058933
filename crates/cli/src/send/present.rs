//! The result of `wirestamp send`, as JSON and as text.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_metrics::Distribution;

use super::stamps::TransmitStamps;
use crate::output::{mean, things, time};

/// Result of sending paced traffic.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Document {
    #[serde(flatten)]
    pub(super) traffic: Traffic,
    /// Transmit method; `live` for live frames.
    pub(super) method: &'static str,
    /// XDP mode of the kernel. Null for other methods.
    pub(super) mode: Option<&'static str>,
    /// Packets sent.
    pub(super) sent: u64,
    /// Bytes of the frames of these packets, without check sequences.
    pub(super) bytes: u64,
    /// Packets that the kernel refused.
    pub(super) failed: u64,
    /// The first error of the kernel. Null without errors.
    pub(super) first_error: Option<String>,
    /// Packets, or bursts of live frames, delayed by scheduling latency.
    pub(super) late: u64,
    /// Actual time minus intended time of sending, in nanoseconds.
    pub(super) pacing_error_ns: Distribution,
    /// Transmit stamps. Null without `--tx-stamps`.
    pub(super) tx_stamps: Option<TransmitStamps>,
    /// Error bound of intended and actual times against UTC, in nanoseconds.
    pub(super) clock_error_ns: i64,
}

/// Kind of the traffic.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Traffic {
    /// A traffic pattern.
    Pattern {
        /// The pattern.
        pattern: String,
        /// Destination address and port.
        destination: SocketAddr,
    },
    /// A replayed file.
    Replay {
        /// The file, and frames that were not sent, or not unchanged.
        replay: ReplaySummary,
    },
    /// Live frames.
    Live {
        /// Destination address and port.
        destination: SocketAddr,
        /// Frames of a burst.
        burst: u32,
        /// Frames dropped by the interface, of all senders.
        dropped: u64,
        /// Time of sending, in nanoseconds.
        elapsed_ns: i64,
        /// Mean rate, in frames per second.
        packets_per_second: f64,
        /// Longest delay of a burst after its intended time, in nanoseconds; the bursts after it follow at once. Null with
        /// `--rate max`.
        latest_ns: Option<i64>,
    },
}

/// Frames of a replayed file that were not sent, or not unchanged.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ReplaySummary {
    /// The file.
    pub(super) file: PathBuf,
    /// Frames not sent: longer than the interface's MTU.
    pub(super) too_long: u64,
    /// Frames not sent: not Ethernet.
    pub(super) not_ethernet: u64,
    /// Frames sent truncated: the file contains only the beginning.
    pub(super) cut_short: u64,
    /// Frames with an earlier time than the packet before.
    pub(super) time_went_back: u64,
}

impl Document {
    /// A document without packets.
    pub(super) fn new(traffic: Traffic, method: &'static str) -> Self {
        Self {
            traffic,
            method,
            mode: None,
            sent: 0,
            bytes: 0,
            failed: 0,
            first_error: None,
            late: 0,
            pacing_error_ns: Distribution::new(),
            tx_stamps: None,
            clock_error_ns: 0,
        }
    }
}

pub(super) fn text(document: &Document) -> String {
    let Document { sent, bytes, failed, .. } = document;
    let what = match &document.traffic {
        Traffic::Pattern { pattern, destination } => format!("{pattern} to {destination}"),
        Traffic::Replay { replay } => replay.file.display().to_string(),
        Traffic::Live { destination, .. } => format!("live frames to {destination}"),
    };
    let mut text = format!("{}, {} of {what}\n", things(*sent, "packet"), things(*bytes, "byte"));
    if let Some(mode) = document.mode {
        text.push_str(&format!("sent by {} in {mode} mode\n", document.method));
    }
    if let Some(error) = document.pacing_error_ns.summary() {
        text.push_str(&format!(
            "sent after the intended time by: mean {}, median {}, p99 {}, max {}\n",
            mean(error.mean),
            time(error.p50),
            time(error.p99),
            time(error.max)
        ));
    }
    if let Some(stamps) = &document.tx_stamps {
        text += &stamps.text();
    }
    if let Some(reason) = &document.first_error {
        text.push_str(&format!("{} failed, the first with: {reason}\n", things(*failed, "packet")));
    }
    text + &document.traffic.text(document.sent, document.late)
}

impl Traffic {
    /// Lines about this kind of traffic.
    fn text(&self, sent: u64, late: u64) -> String {
        let (burst, dropped, elapsed_ns, packets_per_second, latest_ns) = match self {
            Self::Pattern { .. } => return String::new(),
            Self::Replay { replay } => return replay.text(),
            Self::Live { burst, dropped, elapsed_ns, packets_per_second, latest_ns, .. } => {
                (burst, dropped, elapsed_ns, packets_per_second, latest_ns)
            }
        };
        let elapsed = time(*elapsed_ns);
        let mut text =
            format!("{packets_per_second:.0} per second for {elapsed}, in bursts of {burst}\n");
        if *dropped > 0 {
            text.push_str(&format!("the interface dropped {}\n", things(*dropped, "frame")));
        }
        if late > 0 {
            text.push_str(&format!("{} late because of wake-up latency\n", things(late, "burst")));
        }
        // Later than the mean time between bursts: those after it followed at once.
        let is_behind = |latest: &i64| {
            i128::from(*latest) * i128::from(sent) > i128::from(*elapsed_ns) * i128::from(*burst)
        };
        if let Some(latest) = latest_ns.filter(is_behind) {
            text.push_str(&format!("the latest burst: {} after its time\n", time(latest)));
        }
        text
    }
}

impl ReplaySummary {
    /// A line for each kind of affected frame.
    fn text(&self) -> String {
        let lines = [
            (self.too_long, "not sent: longer than the interface's MTU"),
            (self.not_ethernet, "not sent: not an Ethernet frame"),
            (self.cut_short, "sent truncated: the file contains only the beginning"),
            (self.time_went_back, "with an earlier time than the packet before"),
        ];
        let found = lines.into_iter().filter(|(packets, _)| *packets > 0);
        found.map(|(packets, what)| format!("{} {what}\n", things(packets, "packet"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_burst_is_shown_if_later_than_time_between_bursts() {
        // A hundred bursts, one each 200 us.
        let text = |latest_ns| {
            let traffic = Traffic::Live {
                destination: ([192, 0, 2, 7], 5004).into(),
                burst: 10,
                dropped: 0,
                elapsed_ns: 20_000_000,
                packets_per_second: 50_000.0,
                latest_ns,
            };
            text(&Document { sent: 1_000, ..Document::new(traffic, "live") })
        };
        assert!(text(Some(4_200_000)).ends_with("the latest burst: 4.20 ms after its time\n"));
        assert!(text(Some(200_000)).ends_with("in bursts of 10\n"));
        assert!(text(None).ends_with("in bursts of 10\n"));
    }
}
