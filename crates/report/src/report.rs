//! Content of the page about a run.

use serde::Serialize;
use wirestamp_metrics::Summary;

/// Contents of the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The headline, and the title of the browser's window.
    pub title: String,
    /// Time of the run, as text for readers.
    pub generated_at: String,
    /// Result in whole sentences: the opening paragraph.
    pub summary: Vec<String>,
    /// Environment of the run: pairs of name and value (kernel, processor, clock).
    pub machine: Vec<(String, String)>,
    /// The streams of packets, in the order of their sections.
    pub streams: Vec<Stream>,
    /// Comparisons of what was measured with what is known.
    pub checks: Vec<Check>,
    /// Where each packet went, one ledger for each observation point.
    pub ledgers: Vec<Ledger>,
    /// Files written by the run: pairs of name and description.
    pub files: Vec<(String, String)>,
    /// Command lines to inspect the files.
    pub commands: Vec<String>,
}

/// A stream of packets between two observation points.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stream {
    /// Name of the stream, for example "Phone call (G.729)".
    pub name: String,
    /// Its pattern, for example "140-byte frames every 20 ms".
    pub description: String,
    /// Verdict in a sentence.
    pub verdict: String,
    /// Packets seen at the first point.
    pub sent: u64,
    /// Of those, packets seen at the second point.
    pub received: u64,
    /// Of those sent, packets never seen at the second point (RFC 7680).
    pub lost: u64,
    /// Duplicates seen at the second point (RFC 5560).
    pub duplicated: u64,
    /// Packets that arrived after one that was sent later (RFC 4737).
    pub reordered: u64,
    /// One-way delay (RFC 7679); none if nothing was received.
    pub delay: Option<Summary>,
    /// Delay of a packet minus that of the one before it (RFC 3393); none if there is no pair.
    pub variation: Option<Summary>,
    /// Half-width in nanoseconds of the interval that holds the true delay; none if unknown.
    pub clock_error_ns: Option<i64>,
    /// For each packet received: when it was sent, in seconds since the start of the stream, and
    /// its one-way delay in nanoseconds.
    pub delays: Vec<(f64, i64)>,
    /// When each lost packet was sent, in seconds since the start of the stream.
    pub lost_at: Vec<f64>,
    /// Times between one arrival and the next in nanoseconds, with the name of the point
    /// ("at tap A"). All of them are drawn on the same axes.
    pub interarrival: Vec<(String, Vec<i64>)>,
}

/// Comparison of a measured value with one that is known or measured independently.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Compared quantity, for example "lost packets".
    pub what: String,
    /// The value known or measured independently.
    pub truth: String,
    /// The value this report gives.
    pub measured: String,
    /// Max difference of the two in percent; none if they must be equal.
    pub within_percent: Option<f64>,
    /// Whether the two values agree within this limit.
    pub holds: bool,
    /// Source of the independent value.
    pub how: String,
}

impl Check {
    /// A check that holds if both values are equal.
    #[must_use]
    pub fn exact(what: impl Into<String>, truth: String, measured: String, how: String) -> Self {
        let holds = truth == measured;
        Self { what: what.into(), truth, measured, within_percent: None, holds, how }
    }
}

/// Packet ledger of one observation point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ledger {
    /// The name of the point.
    pub point: String,
    /// Pairs of outcome and number of packets.
    pub rows: Vec<(String, u64)>,
    /// Whether every packet is accounted for.
    pub balanced: bool,
}

impl Ledger {
    /// Ledger of a capture at `point`.
    #[must_use]
    pub fn of(point: &str, ledger: &wirestamp_capture::Ledger) -> Self {
        let rows = [
            ("reached the receiver", ledger.seen),
            ("dropped by the kernel, ring full", ledger.kernel_dropped),
            ("left in the ring at the end", ledger.left_behind),
            ("dropped because the consumer failed", ledger.consumer_dropped),
            ("delivered", ledger.delivered),
            ("dropped by the interface itself, before", ledger.interface_dropped),
        ];
        Self {
            point: point.into(),
            rows: rows.map(|(what, count)| (what.to_owned(), count)).into(),
            balanced: ledger.balances(),
        }
    }
}
