//! The result of `wirestamp send`, as JSON and as text.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Serialize;
use wirestamp_metrics::Distribution;

use super::stamps::Stamps;
use crate::output::{mean, things, time};

#[derive(Serialize)]
pub(super) struct Document {
    #[serde(flatten)]
    pub(super) sort: Sort,
    pub(super) method: &'static str,
    /// How the kernel sends with xdp.
    pub(super) mode: Option<&'static str>,
    pub(super) sent: u64,
    pub(super) bytes: u64,
    pub(super) failed: u64,
    pub(super) first_error: Option<String>,
    /// Packets, or bursts of live frames, that were late because a sleep ended late.
    pub(super) late: u64,
    pub(super) pacing_error_ns: Distribution,
    pub(super) tx_stamps: Option<Stamps>,
    /// How far intended and actual times may be from UTC, and so from stamps.
    pub(super) clock_error_ns: i64,
}

/// What was sent.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Sort {
    Pattern {
        pattern: String,
        destination: SocketAddr,
    },
    Replay {
        replay: Replayed,
    },
    Live {
        destination: SocketAddr,
        burst: u32,
        /// By the interface, whoever sent them.
        dropped: u64,
        elapsed_ns: i64,
        packets_per_second: f64,
    },
}

/// What was odd about a file that was replayed.
#[derive(Serialize)]
pub(super) struct Replayed {
    pub(super) file: PathBuf,
    pub(super) too_long: u64,
    pub(super) not_ethernet: u64,
    pub(super) cut_short: u64,
    pub(super) time_went_back: u64,
}

impl Document {
    /// A document of nothing sent yet.
    pub(super) fn new(sort: Sort, method: &'static str) -> Self {
        Self {
            sort,
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
    let what = match &document.sort {
        Sort::Pattern { pattern, destination } => format!("{pattern} to {destination}"),
        Sort::Replay { replay } => replay.file.display().to_string(),
        Sort::Live { destination, .. } => format!("live frames to {destination}"),
    };
    let mut text = format!("{}, {} of {what}\n", things(*sent, "packet"), things(*bytes, "byte"));
    if let Some(mode) = document.mode {
        text.push_str(&format!("sent by {} in {mode} mode\n", document.method));
    }
    if let Some(error) = document.pacing_error_ns.summary() {
        text.push_str(&format!(
            "sent after their deadline by: mean {}, median {}, 99 % within {}, latest {}\n",
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
        text.push_str(&format!(
            "{} refused, the first with: {reason}\n",
            things(*failed, "packet")
        ));
    }
    text + &document.sort.text(document.late)
}

impl Sort {
    /// What there is to say of this sort alone.
    fn text(&self, late: u64) -> String {
        let (burst, dropped, elapsed_ns, packets_per_second) = match self {
            Self::Pattern { .. } => return String::new(),
            Self::Replay { replay } => return replay.text(),
            Self::Live { burst, dropped, elapsed_ns, packets_per_second, .. } => {
                (burst, dropped, elapsed_ns, packets_per_second)
            }
        };
        let elapsed = time(*elapsed_ns);
        let mut text =
            format!("{packets_per_second:.0} a second for {elapsed}, in bursts of {burst}\n");
        if *dropped > 0 {
            text.push_str(&format!(
                "the interface dropped {} meanwhile\n",
                things(*dropped, "frame")
            ));
        }
        if late > 0 {
            text.push_str(&format!("{} late because a sleep ended late\n", things(late, "burst")));
        }
        text
    }
}

impl Replayed {
    /// A line for each oddity there was.
    fn text(&self) -> String {
        let lines = [
            (self.too_long, "not sent: longer than the interface's MTU allows"),
            (self.not_ethernet, "not sent: no Ethernet frame"),
            (self.cut_short, "sent short: the file has only the beginning"),
            (self.time_went_back, "with a time before that of a packet ahead"),
        ];
        let found = lines.into_iter().filter(|(packets, _)| *packets > 0);
        found.map(|(packets, what)| format!("{} {what}\n", things(packets, "packet"))).collect()
    }
}
