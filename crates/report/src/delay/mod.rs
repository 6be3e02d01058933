//! The report of a measurement between two points.

mod subject;
mod words;

use maud::{Markup, html};
use wirestamp_metrics::emodel::Rating;
use wirestamp_metrics::{CallOverTime, JitterBuffer, Quality};

use super::format::{NOTHING, approximate, count, duration, nanos, plural};
use super::page::{ledgers, lost};
use super::report::Ledger;
use super::sheet::{Heading, absent, document, pairs, section, table, terms};
use crate::layers;

pub use words::verdict;

#[cfg(test)]
mod tests;

/// Contents of the page of a measurement.
#[derive(Clone, Debug, Default)]
pub struct DelayReport<'a> {
    /// The headline.
    pub title: String,
    /// End of the measurement, as text for readers.
    pub generated_at: String,
    /// Result in whole sentences: the opening paragraph.
    pub summary: Vec<String>,
    /// Rows of the table. The first `sections` of them also have a section.
    pub subjects: Vec<Subject<'a>>,
    /// Number of subjects with a section, from the first one on.
    pub sections: usize,
    /// Whether delays are known only relative to the min.
    pub relative: bool,
    /// Whether the packets are a sample of those that passed.
    pub sampled: bool,
    /// Times in the layers of B's host, behind B.
    pub layers: Option<layers::LayersResult>,
    /// Accuracy of the figures: pairs of subject and statement.
    pub trust: Vec<(String, String)>,
    /// Capture ledgers of the points of this measurement.
    pub ledgers: Vec<Ledger>,
    /// Environment of the measurement: pairs of name and value.
    pub machine: Vec<(String, String)>,
}

/// A flow, or all flows combined.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Name.
    pub name: String,
    /// Delay, loss and other metrics.
    pub quality: &'a Quality,
    /// Whether the loss is unknown: hardly any packet was matched, for another reason than loss.
    pub is_loss_unknown: bool,
    /// Max error of the clocks in nanoseconds; none if it is not known.
    pub clock_error_ns: Option<i64>,
    /// Rating as a phone call.
    pub call: Option<Call>,
    /// Further statements: pairs of subject and text.
    pub more: Vec<(String, String)>,
}

/// How a flow would be rated as a phone call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The codec, and how it is known.
    pub codec: String,
    /// De-jitter buffer of the receiver.
    pub buffer: JitterBuffer,
    /// Rating of the whole call.
    pub rating: Rating,
    /// Quality of each interval of the call.
    pub over_time: Option<CallOverTime>,
}

/// Terms and their meaning, with where they are defined.
const DEFINITIONS: [(&str, &str, &str); 10] = [
    ("One-way delay", "RFC 7679", "The time from a packet's passing A to its passing B."),
    (
        "Delay variation (IPDV)",
        "RFC 3393",
        "The one-way delay of a packet less that of the packet of its flow sent before it.",
    ),
    (
        "Delay above the least (PDV)",
        "RFC 5481",
        "The one-way delay of a packet less the least one: what it waited in queues, and what a buffer \
         at the receiver has to hold back. It does not depend on how far apart the clocks are.",
    ),
    ("Loss", "RFC 7680", "A packet that passed A and did not come to B within the time-out."),
    (
        "Loss runs, burst ratio",
        "RFC 3357, ITU-T G.107",
        "Packets lost one after the other are a run. The burst ratio is 1 where losses fall by \
         chance, and more where they come in runs.",
    ),
    (
        "Reordering",
        "RFC 4737",
        "A packet that came after one of its flow that was sent later; how late, in time and in \
         packets, counts from the first such packet.",
    ),
    ("Duplication", "RFC 5560", "A further copy at B of a packet that passed A once."),
    (
        "R and MOS",
        "ITU-T G.107",
        "Estimated quality of a phone call over this path: rating R from 0 to 93 (wideband, ITU-T \
         G.107.1: to 129; fullband, G.107.2: to 148), and MOS from 1 (bad) to 4.5. A de-jitter buffer adds to the delay, and packets too late for it count as lost. All else that \
         telephones add is not included.",
    ),
    (
        "Round trip of TCP",
        "RFC 6298",
        "From a segment's passing a point to the passing, there, of the acknowledgment that covers it. \
         What was sent again gives none. It takes the clock of that point alone.",
    ),
    (
        "Clock error",
        "this report",
        "The true delay is no farther from the measured one than this. It covers reading the clocks \
         and converting their counters to time.",
    ),
];

impl DelayReport<'_> {
    /// The report as a complete HTML document. Any text in it may be hostile; it is escaped.
    #[must_use]
    pub fn html(&self) -> String {
        let main = html! {
            (self.glance())
            @for (index, subject) in (1..).zip(self.subjects.iter().take(self.sections)) {
                (subject::section(subject, index, self))
            }
            @if let Some(layers) = &self.layers {
                (layers::section(layers, "Layers of this host, behind B"))
            }
            (pairs("trust", "Accuracy", &self.trust))
            (ledgers(&self.ledgers))
            (pairs("machine", "Machine and command", &self.machine))
            (terms("definitions", "Definitions", &DEFINITIONS))
        };
        let Self { title, generated_at, summary, .. } = self;
        document(&Heading { title, generated_at, summary }, Markup::default(), main)
    }

    /// Table with a row for each subject.
    fn glance(&self) -> Markup {
        let mut heads = vec!["Flow", "Sent", "Lost", "Reordered", "Duplicated"];
        heads.extend(if self.relative { ["Mean PDV", "99\u{202f}% PDV"] } else { DELAYS });
        heads.extend(["99\u{202f}% IPDV", "Clock error"]);
        if self.subjects.iter().any(|subject| subject.call.is_some()) {
            heads.push("MOS");
        }
        let rows = (1..).zip(&self.subjects).map(|(index, subject)| self.row(subject, index));
        let rows: Vec<_> = rows.collect();
        let more = u64::try_from(self.subjects.len().saturating_sub(self.sections)).unwrap_or(0);
        let body = html! {
            @if rows.is_empty() { (absent("No packet was seen.")) }
            @else { (table("glance", "Each flow", &heads, &rows)) }
            @if more > 0 {
                p.pattern { (plural(more, "flow has", "flows have")) " no section below." }
            }
        };
        section("glance", "Overview", body)
    }

    fn row(&self, subject: &Subject<'_>, index: usize) -> Vec<Markup> {
        let Subject { name, quality, clock_error_ns, call, .. } = subject;
        let counts = quality.counts();
        let delay = quality.delay().summary();
        let delay = if self.relative { delay.map(|it| it.above_minimum()) } else { delay };
        let none = || NOTHING.to_owned();
        let name = html! {
            @if index <= self.sections { a href={ "#subject-" (index) } { (name) } }
            @else { (name) }
        };
        let cells = [
            count(counts.sent),
            if subject.is_loss_unknown { "unknown".into() } else { lost(counts.lost, counts.sent) },
            count(counts.reordered),
            count(counts.duplicated),
            delay.map_or_else(none, |delay| duration(delay.mean)),
            delay.map_or_else(none, |delay| duration(approximate(delay.p99))),
            quality.variation().summary().map_or_else(none, |it| duration(approximate(it.p99))),
            clock_error_ns.map_or_else(|| "unknown".into(), |ns| format!("± {}", nanos(ns))),
            call.as_ref().map_or_else(none, |call| format!("{:.2}", call.rating.mos())),
        ];
        std::iter::once(name).chain(cells.map(|cell| html! { (cell) })).collect()
    }
}

/// The columns of the one-way delay.
const DELAYS: [&str; 2] = ["Mean delay", "99\u{202f}% delay"];
