//! The findings as tables, for the page and for the terminal alike.

use super::findings::{CellFindings, Findings, Times};
use super::paper::{PENTIUM_4, Published, published};
use crate::experiment::Estimate;
use crate::experiment::factors;
use wirestamp_report::Table;
use wirestamp_report::estimate::micros_with_confidence;
use wirestamp_report::format::{NOTHING, count, micros, percent};

impl Findings {
    /// What a source's stamps make of each flow, beside the report's faster probe.
    pub(super) fn beside_the_report(&self, source: &str) -> Table {
        let heads = [
            "frame (bytes), from packet to packet",
            "longest here",
            "in the report",
            "least here",
            "in the report",
            "mean here",
            "in the report",
            "deviation here",
            "in the report",
            "not captured here",
            "in the report",
        ];
        let rows = self.of_source(source).map(beside_the_report).collect();
        let caption =
            format!("Times between packets by {source}, and by the report's {PENTIUM_4} (µs)");
        Table::new(&caption, &heads, rows)
    }

    /// What a source's stamps are off by from the sender.
    pub(super) fn against_the_sender(&self, source: &str) -> Table {
        let heads = [
            "frame (bytes), from packet to packet",
            "mean sent",
            "deviation sent",
            "longest is off by",
            "least is off by",
            "mean is off by",
            "deviation is off by",
            "jitter",
            "lost by the capture",
        ];
        let rows = self.of_source(source).map(against_the_sender).collect();
        Table::new(&format!("Errors of {source} against the sender's own times (µs)"), &heads, rows)
    }

    /// What source, frames and pause do to the jitter.
    pub(super) fn effects(&self) -> Table {
        factors("the jitter", &self.effects_on_log_jitter)
    }

    /// Why a source stamped nothing, a line for each.
    pub(super) fn refusals(&self) -> Vec<String> {
        let line =
            |(source, reason): &(String, String)| format!("{source} was left out: {reason}.");
        self.refused.iter().map(line).collect()
    }
}

/// Frames and period.
fn name(cell: &CellFindings) -> String {
    format!("{}, {}", cell.frame_bytes, micros(f64::from(cell.period_ns)))
}

fn time(ns: Option<f64>) -> String {
    ns.map_or_else(|| NOTHING.to_owned(), micros)
}

fn beside_the_report(cell: &CellFindings) -> Vec<String> {
    let published = published(PENTIUM_4, cell.frame_bytes, cell.period_ns);
    let report = |of: fn(&Published) -> f64| {
        // With the report's own digits.
        published.map_or_else(|| NOTHING.to_owned(), |row| of(row).to_string())
    };
    let Times { min, mean, max, deviation } = cell.stamped;
    vec![
        name(cell),
        time(max),
        report(|row| row.max_us),
        time(min),
        report(|row| row.min_us),
        time(mean),
        report(|row| row.mean_us),
        time(deviation),
        report(|row| row.deviation_us),
        percent(cell.sent.saturating_sub(cell.captured), cell.sent),
        report(|row| row.loss_percent) + " %",
    ]
}

fn against_the_sender(cell: &CellFindings) -> Vec<String> {
    let estimate =
        |of: Option<Estimate>| of.map_or_else(|| NOTHING.to_owned(), micros_with_confidence);
    let short = |of: Option<Estimate>| time(of.map(|of| of.mean));
    vec![
        name(cell),
        time(cell.by_the_sender.mean),
        time(cell.by_the_sender.deviation),
        short(cell.max_error),
        short(cell.min_error),
        estimate(cell.mean_error),
        short(cell.deviation_error),
        estimate(cell.jitter),
        count(cell.lost),
    ]
}
