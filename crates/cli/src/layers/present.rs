//! The result of `wirestamp layers`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_capture::layers::{Direction, End, Facts, LayersLedger, Point};
use wirestamp_report::Circumstances;
use wirestamp_report::layers::{Layer, LayersResult};

use super::statistics::{LayerStatistics, PacketOutcome, Segment};
use crate::output::{count, plural, time};
use crate::table::table;

/// Time of packets in the layers of this host.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Layers")]
pub(crate) struct Document {
    #[serde(flatten)]
    facts: Facts,
    /// Packets that passed the first point and the filter.
    packets: u64,
    /// Between each point and the next, then from the first to the last.
    layers: Vec<Segment>,
    /// Ends of the packets' paths through the host, most frequent first.
    ends: Vec<OutcomeCount>,
    /// Whether the network card is a point.
    card: Card,
    /// Outcome of each packet of the measurement.
    ledger: LayersLedger,
    /// Whether each packet has exactly one outcome in the ledger.
    balanced: bool,
}

/// The number of packets with one outcome.
#[derive(Serialize, JsonSchema)]
struct OutcomeCount {
    #[serde(flatten)]
    outcome: PacketOutcome,
    /// Packets with this end.
    packets: u64,
}

/// Whether the network card is a point.
#[derive(Serialize, JsonSchema)]
struct Card {
    /// Whether it is a point.
    available: bool,
    /// Why it is not available.
    reason: &'static str,
    /// Packets stamped by it.
    packets: u64,
}

impl Document {
    pub(super) fn new(facts: Facts, statistics: &LayerStatistics, ledger: LayersLedger) -> Self {
        let direction = facts.direction;
        let ended = |(outcome, packets): (&PacketOutcome, u64)| OutcomeCount {
            outcome: outcome.clone(),
            packets,
        };
        Self {
            facts,
            packets: ledger.delivered,
            layers: statistics.segments(),
            ends: statistics.outcomes().into_iter().map(ended).collect(),
            card: Card::of(direction, statistics.stamped_by_card),
            ledger,
            balanced: ledger.balances(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let Self { facts, packets, ledger, .. } = self;
        let rows: Vec<_> = self.layers.iter().map(row).collect();
        let mut text = table(&HEADER, &rows);
        let colon = if self.ends.is_empty() { "" } else { ":" };
        let packets = plural(*packets, "packet", "packets");
        let _ = writeln!(text, "\n{packets} of {}{colon}", facts.interface);
        for OutcomeCount { outcome, packets } in &self.ends {
            let _ = writeln!(text, "  {:>9} {}", count(*packets), words(outcome));
        }
        for remark in self.remarks() {
            let _ = writeln!(text, "{remark}");
        }
        if !self.balanced {
            let _ = writeln!(text, "the packet ledger does not balance: {ledger:?}");
        }
        text
    }
}

impl Document {
    /// Whether the packet ledger balances.
    pub(super) fn is_balanced(&self) -> bool {
        self.balanced
    }

    /// Data of the HTML report.
    pub(crate) fn findings(&self) -> LayersResult {
        let whole = self.layers.len().saturating_sub(1);
        let layer = |(number, segment): (usize, &Segment)| Layer {
            name: segment.name(),
            short: if number == whole { "all" } else { segment.from.name() }.to_owned(),
            delay: segment.delay.summary(),
            share: segment.share,
        };
        LayersResult {
            interface: self.facts.interface.clone(),
            direction: self.facts.direction,
            filter: self.facts.filter.clone(),
            layers: self.layers.iter().enumerate().map(layer).collect(),
            ends: self
                .ends
                .iter()
                .map(|OutcomeCount { outcome, packets }| (words(outcome), *packets))
                .collect(),
            remarks: self.facts.notes.iter().cloned().chain(self.remarks()).collect(),
            circumstances: Circumstances::here(),
        }
    }

    /// Notes on the clock, the network card, and packets that were not measured.
    fn remarks(&self) -> Vec<String> {
        let Facts { clock, granularity_ns, .. } = &self.facts;
        let step = time(*granularity_ns);
        let mut remarks = vec![
            format!(
                "All points read {clock}, in steps of {step}: no error between clocks. The time to read it is \
                 subtracted."
            ),
            format!("The network card is not a point: {}.", self.card.reason),
        ];
        if self.ledger.lost() > 0 {
            let lost = count(self.ledger.lost());
            remarks.push(format!(
                "{lost} packets were not measured, because too many were in progress or ended at once."
            ));
        }
        if self.ledger.skipped > 0 {
            let skipped = count(self.ledger.skipped);
            remarks.push(format!(
                "{skipped} times an eBPF program could not run: a point or an end may be missing for some \
                 packet."
            ));
        }
        remarks
    }
}

impl Card {
    fn of(direction: Direction, packets: u64) -> Self {
        let (reason, packets) = match (direction, packets) {
            (Direction::Out, _) => {
                ("it follows the driver; `wirestamp send --tx-stamps` reports its time", 0)
            }
            (Direction::In, 0) => ("it stamped no packet", 0),
            (Direction::In, packets) => (
                "it uses its own clock, which is not related to the kernel's here; `wirestamp capture \
                 --stamp hardware` does that",
                packets,
            ),
        };
        Self { available: false, reason, packets }
    }
}

const HEADER: [&str; 8] = ["", "packets", "min", "median", "p90", "p99", "max", "share"];

/// The times of a segment.
fn row(segment: &Segment) -> Vec<String> {
    let times = segment
        .delay
        .summary()
        .map(|delay| [delay.min, delay.p50, delay.p90, delay.p99, delay.max].map(time));
    let times = times.unwrap_or_else(|| [(); 5].map(|()| "-".to_owned()));
    let share = segment.share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    [vec![segment.name(), count(segment.count)], times.into(), vec![share]].concat()
}

/// An outcome, as text after the number of packets.
fn words(outcome: &PacketOutcome) -> String {
    let last = outcome.point.map_or("an unknown point", Point::name);
    match (outcome.end, &outcome.reason) {
        (End::Read, _) => "were read by an application".to_owned(),
        (End::Dropped, reason) => {
            let reason = reason.as_deref().unwrap_or("no reason given");
            format!("were dropped after {last}: {reason}")
        }
        (End::Consumed, _) => format!("were consumed by the kernel, after {last}"),
        (End::Joined, _) => format!("were merged with another, after {last}"),
        (End::Forwarded, _) => format!("were forwarded to another interface, after {last}"),
        (End::Open, _) => format!("were still in progress, after {last}"),
        (End::Sent, _) => "were sent".to_owned(),
        (End::Split, _) => format!("were segmented, after {last}"),
        (End::Unknown, _) => format!("ended unobserved, after {last}"),
    }
}
