//! What `delay` found, as a page.

use std::path::Path;

use anyhow::Context;
use wirestamp_metrics::Quality;
use wirestamp_packet::FlowKey;
use wirestamp_report::Circumstances;
use wirestamp_report::{Call, DelayReport, Ledger, Subject, verdict};

use super::findings::Findings;
use super::{Arguments, clocks};
use crate::layers::Document;
use crate::output::time;

/// Flows in the table; those beyond are in the totals.
const ROWS: usize = 100;
/// Flows with figures of their own.
const SECTIONS: usize = 12;

/// Writes the page about what was found to `path`.
pub(super) fn write(path: &Path, findings: &Findings, arguments: &Arguments) -> anyhow::Result<()> {
    let total = findings.flows.total();
    let page = findings.page(&total, arguments).html();
    std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

impl Findings {
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
            machine: [
                ("Command", here.command),
                ("Kernel", here.kernel),
                ("Processor", here.processor),
                ("A packet counts as lost after", format!("{} ms", arguments.timeout)),
            ]
            .map(|(what, which)| (what.to_owned(), which))
            .into(),
        }
    }

    /// The flows with the most packets, below all of them together if there are several.
    fn subjects<'a>(&'a self, total: &'a Quality) -> Vec<Subject<'a>> {
        let subject = |name: String, quality: &'a Quality, flow: Option<&FlowKey>| Subject {
            name,
            quality,
            clock_error_ns: self.clocks.greatest(quality),
            call: flow.and_then(|flow| self.voice(flow)).and_then(|voice| {
                Some(Call {
                    codec: voice.to_string(),
                    rating: self.call(&voice, quality)?.rating(),
                    over_time: quality.as_call_over_time(voice.codec),
                })
            }),
            more: flow
                .and_then(|flow| self.round_trips.of(flow))
                .map(|trip| ("Round trip of TCP".to_owned(), trip.statement()))
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
                "{sampling} was measured, chosen by hash, and stands for all of them."
            ));
        }
        summary.push(match counts.sent {
            0 => "None of them was seen at A.".into(),
            _ => verdict(total, self.clocks.aligned),
        });
        summary
    }

    /// How far to believe the figures.
    fn trust(&self, total: &Quality) -> Vec<(String, String)> {
        let pair = |what: &str, text: String| (what.to_owned(), text);
        let mut trust = Vec::new();
        if let Some(error) = self.clocks.greatest(total) {
            let text = format!("A delay is wrong by {} at the most.", time(error));
            trust.push(pair("Clocks", text));
        }
        let skew = match &self.clocks.skew {
            Err(reason) => Some(format!("Not estimated: {reason}.")),
            Ok(skew) if !skew.is_certain() => {
                Some(format!("{}, which cannot be told from none.", clocks::ppm(skew)))
            }
            Ok(_) => None,
        };
        trust.extend(skew.map(|text| pair("Skew between the clocks", text)));
        let [a, b] = self.capture_dropped;
        if a + b == 0 && self.lost_beyond == 0 {
            let text =
                "The captures say that they lost nothing: what is lost here, the network lost.";
            trust.push(pair("Captures", text.into()));
        }
        let reservations = self.reservations(total);
        trust.extend(reservations.into_iter().map(|line| pair("To be known", line)));
        trust
    }
}
