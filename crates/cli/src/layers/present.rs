//! The result of `wirestamp layers`.

use std::fmt::Write as _;

use serde::Serialize;
use wirestamp_capture::layers::{Direction, End, Facts, LayersLedger, Point};
use wirestamp_report::Circumstances;
use wirestamp_report::layers::{Findings, Layer};

use super::tally::{Fate, Segment, Tally};
use crate::output::{count, plural, time};
use crate::table::table;

/// The document of `layers --json`.
#[derive(Serialize)]
pub(crate) struct Document {
    #[serde(flatten)]
    facts: Facts,
    packets: u64,
    /// Between each point and the next, then from the first to the last.
    layers: Vec<Segment>,
    ends: Vec<Ended>,
    card: Card,
    ledger: LayersLedger,
    balanced: bool,
}

/// What became of so many packets.
#[derive(Serialize)]
struct Ended {
    #[serde(flatten)]
    fate: Fate,
    packets: u64,
}

/// Whether the network card is a point.
#[derive(Serialize)]
struct Card {
    available: bool,
    /// Why not.
    reason: &'static str,
    /// Packets that it has stamped.
    packets: u64,
}

impl Document {
    pub(super) fn new(facts: Facts, tally: &Tally, ledger: LayersLedger) -> Self {
        let direction = facts.direction;
        let ended = |(fate, packets): (&Fate, u64)| Ended { fate: fate.clone(), packets };
        Self {
            facts,
            packets: ledger.delivered,
            layers: tally.segments(),
            ends: tally.fates().into_iter().map(ended).collect(),
            card: Card::of(direction, tally.stamped_by_card),
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
        for Ended { fate, packets } in &self.ends {
            let _ = writeln!(text, "  {:>9} {}", count(*packets), words(fate));
        }
        for remark in self.remarks() {
            let _ = writeln!(text, "{remark}");
        }
        if !self.balanced {
            let _ = writeln!(text, "the account of packets does not balance: {ledger:?}");
        }
        text
    }
}

impl Document {
    /// Whether every packet has been accounted for.
    pub(super) fn is_balanced(&self) -> bool {
        self.balanced
    }

    /// What the page is made of.
    pub(crate) fn findings(&self) -> Findings {
        let whole = self.layers.len().saturating_sub(1);
        let layer = |(number, segment): (usize, &Segment)| Layer {
            name: segment.name(),
            short: if number == whole { "all" } else { segment.from.name() }.to_owned(),
            delay: segment.delay.summary(),
            share: segment.share,
        };
        Findings {
            interface: self.facts.interface.clone(),
            direction: self.facts.direction,
            filter: self.facts.filter.clone(),
            layers: self.layers.iter().enumerate().map(layer).collect(),
            ends: self.ends.iter().map(|Ended { fate, packets }| (words(fate), *packets)).collect(),
            remarks: self.facts.notes.iter().cloned().chain(self.remarks()).collect(),
            circumstances: Circumstances::here(),
        }
    }

    /// What is to be known about the clock, the network card, and packets that were not followed.
    fn remarks(&self) -> Vec<String> {
        let Facts { clock, granularity_ns, .. } = &self.facts;
        let step = time(*granularity_ns);
        let mut remarks = vec![
            format!(
                "All points read {clock}, in steps of {step}: no error between clocks. What reading \
                 it there takes is subtracted."
            ),
            format!("The network card is no point: {}.", self.card.reason),
        ];
        if self.ledger.lost() > 0 {
            let lost = count(self.ledger.lost());
            remarks.push(format!(
                "{lost} packets were not followed, because too many were under way or ended at once."
            ));
        }
        if self.ledger.skipped > 0 {
            let skipped = count(self.ledger.skipped);
            remarks.push(format!(
                "{skipped} times one of our programs could not run, of whatever packet: a point or an \
                 end may be missing."
            ));
        }
        remarks
    }
}

impl Card {
    fn of(direction: Direction, packets: u64) -> Self {
        let (reason, packets) = match (direction, packets) {
            (Direction::Out, _) => {
                ("what it does comes after the driver; `wirestamp send --tx-stamps` tells when", 0)
            }
            (Direction::In, 0) => ("it stamped no packet", 0),
            (Direction::In, packets) => (
                "it stamps by its own clock, which is not compared with the kernel's here; `wirestamp \
                 capture --stamp hardware` does",
                packets,
            ),
        };
        Self { available: false, reason, packets }
    }
}

const HEADER: [&str; 8] = ["", "packets", "shortest", "median", "90 %", "99 %", "longest", "share"];

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

/// What became of packets, after their number.
fn words(fate: &Fate) -> String {
    let last = fate.point.map_or("an unknown point", Point::name);
    match (fate.end, &fate.reason) {
        (End::Read, _) => "were read by an application".to_owned(),
        (End::Dropped, reason) => {
            let reason = reason.as_deref().unwrap_or("no reason given");
            format!("were dropped after {last}: {reason}")
        }
        (End::Consumed, _) => format!("were for the kernel itself, after {last}"),
        (End::Joined, _) => format!("were joined to another, after {last}"),
        (End::Forwarded, _) => format!("were sent on to another interface, after {last}"),
        (End::Open, _) => format!("had not ended, after {last}"),
        (End::Sent, _) => "were sent".to_owned(),
        (End::Split, _) => format!("were cut into smaller ones, after {last}"),
        (End::Unknown, _) => format!("ended unseen, after {last}"),
    }
}
