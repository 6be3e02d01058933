//! The result of `delay` as an HTML report.

use std::path::Path;

use anyhow::Context;
use wirestamp_metrics::Quality;
use wirestamp_packet::FlowKey;
use wirestamp_report::Circumstances;
use wirestamp_report::{Call, DelayReport, Ledger, Subject, verdict};

use super::arguments::Arguments;
use super::clocks;
use super::result::DelayResult;
use super::unknown_loss::UnknownLoss;
use crate::layers::Document;
use crate::output::time;

/// Flows in the table; further flows are in the totals only.
const ROWS: usize = 100;
/// Flows with their own figures.
const SECTIONS: usize = 12;

/// Writes the report to `path`.
pub(super) fn write(
    path: &Path,
    findings: &DelayResult,
    arguments: &Arguments,
) -> anyhow::Result<()> {
    let total = findings.flows.total();
    save(path, &findings.page(&total, arguments))
}

/// Writes a report to `path`.
pub(super) fn save(path: &Path, report: &DelayReport<'_>) -> anyhow::Result<()> {
    std::fs::write(path, report.html()).with_context(|| format!("cannot write {}", path.display()))
}

/// What measured, and how.
pub(super) fn machine(here: Circumstances, arguments: &Arguments) -> Vec<(String, String)> {
    [
        ("Command", here.command),
        ("Kernel", here.kernel),
        ("Processor", here.processor),
        ("A packet counts as lost after", format!("{} ms", arguments.timeout)),
    ]
    .map(|(what, which)| (what.to_owned(), which))
    .into()
}

impl DelayResult {
    fn page<'a>(&'a self, total: &'a Quality, arguments: &Arguments) -> DelayReport<'a> {
        let here = Circumstances::here();
        let subjects = self.subjects(total);
        DelayReport {
            title: format!("From {} to {}", arguments.a, arguments.b),
            generated_at: format!("{} UTC", here.date),
            summary: self.summary(total),
            sections: subjects.len().min(SECTIONS),
            subjects,
            relative: self.clocks.aligned,
            sampled: self.sampling.is_some(),
            layers: self.layers.as_ref().map(Document::findings),
            trust: self.trust(total),
            ledgers: self
                .taps
                .iter()
                .map(|tap| Ledger::of(&tap.facts.interface, &tap.ledger))
                .collect(),
            machine: machine(here, arguments),
        }
    }

    /// All flows together, if there are several, then the flows with the most packets.
    fn subjects<'a>(&'a self, total: &'a Quality) -> Vec<Subject<'a>> {
        let subject = |name: String, quality: &'a Quality, flow: Option<&FlowKey>| Subject {
            name,
            quality,
            is_loss_unknown: self.is_loss_unknown(flow, quality),
            clock_error_ns: self.clocks.max_error(quality),
            call: flow.and_then(|flow| Some((flow, self.voice(flow)?))).and_then(
                |(flow, voice)| {
                    Some(Call {
                        codec: voice.to_string(),
                        buffer: self.flows.jitter_buffer(),
                        rating: self.call(flow, &voice, quality)?,
                        over_time: quality.as_call_over_time(&voice.codecs),
                    })
                },
            ),
            more: flow
                .and_then(|flow| self.round_trips.of(flow))
                .map(|trip| ("TCP round-trip time".to_owned(), trip.sentence()))
                .into_iter()
                .collect(),
        };
        let mut flows = self.flows.flows();
        flows.sort_by_key(|(_, quality)| {
            std::cmp::Reverse(quality.counts().sent.max(quality.counts().received))
        });
        let all = (flows.len() > 1).then(|| subject("All flows".into(), total, None));
        let each =
            flows.iter().map(|(flow, quality)| subject(flow.to_string(), quality, Some(flow)));
        all.into_iter().chain(each.take(ROWS)).collect()
    }

    fn summary(&self, total: &Quality) -> Vec<String> {
        let counts = total.counts();
        let flows = self.flows.flows().len();
        let mut summary = vec![format!(
            "Packets of {} were observed at A and at B.",
            if flows == 1 { "one flow".into() } else { format!("{flows} flows") }
        )];
        if let Some(sampling) = &self.sampling {
            summary.push(format!(
                "{sampling} was measured, selected by hash; the sample represents all packets."
            ));
        }
        summary.push(match (counts.sent, self.unknown_loss) {
            (0, None) => "None of them was observed at A.".into(),
            (_, Some(UnknownLoss::OtherSegments | UnknownLoss::CutSegments)) => {
                "Loss of TCP is unknown: see Accuracy.".into()
            }
            (_, Some(UnknownLoss::OtherDatagrams | UnknownLoss::OfSomeFlows(_))) => {
                "Loss of some flows is unknown: see Accuracy.".into()
            }
            (_, Some(UnknownLoss::NothingAtB(_))) => {
                "Loss is unknown, because B captured no packet: see Accuracy.".into()
            }
            (_, Some(UnknownLoss::TwiceAtA(_))) => {
                "Loss is unknown, because A captured packets twice: see Accuracy.".into()
            }
            (_, Some(_)) => {
                "Loss is unknown, because hardly any packet was matched: see Accuracy.".into()
            }
            (_, None) => verdict(total, self.clocks.aligned),
        });
        summary
    }

    /// The error bounds and caveats of the results.
    pub(super) fn trust(&self, total: &Quality) -> Vec<(String, String)> {
        let pair = |what: &str, text: String| (what.to_owned(), text);
        let mut trust = Vec::new();
        if let Some(error) = self.clocks.max_error(total) {
            let text = format!("The error of a delay is at most {}.", time(error));
            trust.push(pair("Clocks", text));
        }
        let skew = match &self.clocks.skew {
            Err(reason) => Some(format!("Not estimated: {reason}.")),
            Ok(skew) if !skew.is_certain() => {
                Some(format!("{}, not distinguishable from zero.", clocks::ppm(skew)))
            }
            Ok(_) => None,
        };
        trust.extend(skew.map(|text| pair("Skew between the clocks", text)));
        let captures_lost_nothing = self.capture_dropped == [Some(0); 2];
        if captures_lost_nothing && self.lost_outside_capture == 0 && self.unknown_loss.is_none() {
            let text = "The captures lost no packets: all losses here are network losses.";
            trust.push(pair("Captures", text.into()));
        }
        let caveats = self.caveats(total);
        trust.extend(caveats.into_iter().map(|line| pair("Note", line)));
        trust
    }
}
