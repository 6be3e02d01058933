//! The findings as tables, for the page and for the terminal alike.

use super::findings::{CellFindings, JitterResult};
use super::paper::{PENTIUM_4, Published, published};
use crate::experiment::Estimate;
use crate::experiment::factors;
use wirestamp_report::Table;
use wirestamp_report::estimate::micros_with_confidence;
use wirestamp_report::format::{count, micros, optional, percent};

impl JitterResult {
    /// Times between packets by a source's stamps, beside the report's faster probe.
    pub(super) fn beside_the_report(&self, source: &str) -> Table {
        let report = |cell: &CellFindings, of: fn(&Published) -> f64| {
            // With the report's own digits.
            let row = published(PENTIUM_4, cell.frame_bytes, cell.period_ns);
            optional(row, |row| of(row).to_string())
        };
        Table::of(
            &format!("Times between packets by {source}, and by the report's {PENTIUM_4} (µs)"),
            self.of_source(source),
            &[
                ("frame (bytes), from packet to packet", &|cell| name(cell)),
                ("max here", &|cell| time(cell.stamped.max)),
                ("in the report", &|cell| report(cell, |row| row.max_us)),
                ("min here", &|cell| time(cell.stamped.min)),
                ("in the report", &|cell| report(cell, |row| row.min_us)),
                ("mean here", &|cell| time(cell.stamped.mean)),
                ("in the report", &|cell| report(cell, |row| row.mean_us)),
                ("deviation here", &|cell| time(cell.stamped.deviation)),
                ("in the report", &|cell| report(cell, |row| row.deviation_us)),
                ("not captured here", &|cell| {
                    percent(cell.sent.saturating_sub(cell.captured), cell.sent)
                }),
                ("in the report", &|cell| report(cell, |row| row.loss_percent) + " %"),
            ],
        )
    }

    /// Errors of a source's stamps against the sender.
    pub(super) fn against_the_sender(&self, source: &str) -> Table {
        let estimate = |of: Option<Estimate>| optional(of, micros_with_confidence);
        let short = |of: Option<Estimate>| time(of.map(|of| of.mean));
        Table::of(
            &format!("Errors of {source} against the sender's own times (µs)"),
            self.of_source(source),
            &[
                ("frame (bytes), from packet to packet", &|cell| name(cell)),
                ("mean sent", &|cell| time(cell.by_the_sender.mean)),
                ("deviation sent", &|cell| time(cell.by_the_sender.deviation)),
                ("error of the max", &|cell| short(cell.max_error)),
                ("error of the min", &|cell| short(cell.min_error)),
                ("error of the mean", &|cell| estimate(cell.mean_error)),
                ("error of the deviation", &|cell| short(cell.deviation_error)),
                ("jitter", &|cell| estimate(cell.jitter)),
                ("lost by the capture", &|cell| count(cell.lost)),
            ],
        )
    }

    /// Effects of source, frames and pause on the jitter.
    pub(super) fn effects(&self) -> Table {
        factors("the jitter", &self.effects_on_log_jitter)
    }

    /// Sources without stamps and the reasons, a line each.
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
    optional(ns, micros)
}
