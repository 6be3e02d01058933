//! The result of `delay` as text.

use std::cmp::Reverse;
use std::fmt::Write as _;

use wirestamp_metrics::{Quality, SequenceMetrics};
use wirestamp_packet::FlowKey;

use super::result::DelayResult;
use super::round_trip;
use super::rtp::RatedCodec;
use crate::output::{mean, percent, time};
use crate::table::{QUALITY_HEADER, quality_row, table};
use crate::tap;

/// Flows with their own row, unless `--verbose`.
const ROWS: usize = 20;

/// Columns of the loss, and of the mean and the p99 of the delay in [`QUALITY_HEADER`].
const LOST: usize = 2;
const MEAN: usize = 5;
const P99: usize = 6;

/// The columns of the loss in [`SEQUENCE_HEADER`].
const LOSS_RUNS: std::ops::Range<usize> = 5..8;

/// The columns of [`sequence_row`].
const SEQUENCE_HEADER: [&str; 10] = [
    "",
    "PDV p99",
    "max late by",
    "extent",
    "3-reordered",
    "loss runs",
    "longest",
    "burst ratio",
    "gap at A",
    "gap at B",
];

/// A table row: one flow or several.
struct Row<'a> {
    name: String,
    /// The flow; none for several.
    flow: Option<FlowKey>,
    of: &'a Quality,
    /// The codec for rating; only for a single flow.
    voice: Option<RatedCodec>,
}

impl DelayResult {
    /// Tables of flows, packet order (with `everything`) and round trips, then the notes on the results.
    pub(super) fn text(&self, everything: bool) -> String {
        let total = self.flows.total();
        let mut flows = self.flows.flows();
        let hidden = if everything { 0 } else { flows.len().saturating_sub(ROWS) };
        if hidden > 0 {
            flows.sort_by_key(|(_, of)| Reverse(of.counts().sent));
            flows.truncate(ROWS);
        }
        let mut rows: Vec<Row<'_>> = flows
            .iter()
            .map(|(flow, of)| Row {
                name: flow.to_string(),
                flow: Some(*flow),
                of,
                voice: self.voice(flow),
            })
            .collect();
        let others = &self.flows.others;
        if others.counts().sent > 0 {
            rows.push(Row { name: "other flows".into(), flow: None, of: others, voice: None });
        }
        if rows.len() != 1 {
            rows.push(Row { name: "all".into(), flow: None, of: &total, voice: None });
        }
        let mut text = self.qualities(&rows);
        if hidden > 0 {
            let _ = writeln!(text, "{hidden} more flows with fewer packets; -v shows them");
        }
        let mut more = Vec::new();
        if everything {
            let rows = rows.iter().filter_map(|Row { name, flow, of, .. }| {
                let mut row = sequence_row(name, of, of.sequence_metrics()?);
                if self.is_loss_unknown(flow.as_ref(), of) {
                    row[LOSS_RUNS].fill("unknown".to_owned());
                }
                Some(row)
            });
            more.push(table(&SEQUENCE_HEADER, &rows.collect::<Vec<_>>()));
        }
        more.extend(self.round_trip_table());
        more.iter().for_each(|table| text.push_str(&format!("\n{table}")));
        text.push_str(if more.is_empty() { "" } else { "\n" });
        for tap in &self.taps {
            let _ = writeln!(text, "{}", tap::line(tap));
            text.push_str(&tap::problems(&tap.ledger));
        }
        self.caveats(&total).into_iter().for_each(|line| text.push_str(&(line + "\n")));
        if let Some(layers) = &self.layers {
            let _ = write!(text, "\nBehind B, inside this host:\n{}", layers.text());
        }
        text
    }

    /// A table of the round-trip times, if there are any.
    fn round_trip_table(&self) -> Option<String> {
        let flows = self.flows.flows();
        let rows: Vec<_> = flows
            .iter()
            .filter_map(|(flow, _)| Some(self.round_trips.of(flow)?.row(flow)))
            .collect();
        (!rows.is_empty()).then(|| {
            format!(
                "{}Round trips are TCP's, from a point to the receiver and back, by that point's clock. The part \
                 between A and B is the difference.\n",
                table(&round_trip::HEADER, &rows)
            )
        })
    }

    fn qualities(&self, rows: &[Row<'_>]) -> String {
        let mut header = self.quality_header();
        let any_voice = rows.iter().any(|row| row.voice.is_some());
        if any_voice {
            header.extend(["codec", "late", "R", "MOS"]);
        }
        let cells = |row: &Row<'_>| {
            let mut cells = self.quality_row(row);
            if any_voice {
                cells.extend(self.rating_cells(row));
            }
            cells
        };
        table(&header, &rows.iter().map(cells).collect::<Vec<_>>())
    }

    /// The columns of a quality.
    pub(super) fn quality_header(&self) -> Vec<&'static str> {
        let mut header = QUALITY_HEADER.to_vec();
        if self.clocks.aligned {
            (header[MEAN], header[P99]) = ("mean PDV", "PDV p99");
        }
        header
    }

    /// The row of all flows together.
    pub(super) fn total_row(&self, name: String) -> Vec<String> {
        self.quality_row(&Row { name, flow: None, of: &self.flows.total(), voice: None })
    }

    fn quality_row(&self, Row { name, flow, of: quality, .. }: &Row<'_>) -> Vec<String> {
        let mut row = quality_row(name.clone(), quality, self.clocks.max_error(quality));
        if self.is_loss_unknown(flow.as_ref(), quality) {
            "unknown".clone_into(&mut row[LOST]);
        }
        if let Some(delay) = quality.delay().summary().filter(|_| self.clocks.aligned) {
            let variation = delay.above_minimum();
            (row[MEAN], row[P99]) = (mean(variation.mean), time(variation.p99));
        }
        row
    }

    /// Codec, late packets, R-factor and MOS.
    fn rating_cells(&self, row: &Row<'_>) -> [String; 4] {
        let none = || "-".to_owned();
        let Some((flow, voice)) = row.flow.as_ref().zip(row.voice.as_ref()) else {
            return [(); 4].map(|()| none());
        };
        let rating = self.call(flow, voice, row.of);
        [
            voice.codecs.to_string(),
            row.of.sequence_metrics().map_or_else(none, |metrics| metrics.late().to_string()),
            rating.map_or_else(none, |rating| format!("{:.1}", rating.r_factor())),
            rating.map_or_else(none, |rating| format!("{:.2}", rating.mos())),
        ]
    }
}

/// A row about the order of a flow's packets: reordering, loss runs and gaps.
fn sequence_row(name: &str, quality: &Quality, sequence: &SequenceMetrics) -> Vec<String> {
    let none = || "-".to_owned();
    let losses = sequence.loss_pattern();
    let reordering = &sequence.reordering;
    let train = &sequence.train;
    let longest = losses.period_lengths().max;
    let late = reordering.late_times.summary();
    let counted = |value: u64| if value == 0 { none() } else { value.to_string() };
    vec![
        name.to_owned(),
        quality.delay().summary().map_or_else(none, |delay| time(delay.above_minimum().p99)),
        late.map_or_else(none, |late| time(late.max)),
        counted(reordering.extents.max),
        match reordering.n_reordered(3) {
            0 => none(),
            n => format!("{n} ({})", percent(n, quality.counts().matched)),
        },
        counted(losses.periods),
        counted(longest),
        losses.burst_ratio().map_or_else(none, |ratio| format!("{ratio:.2}")),
        train.at_a.summary().map_or_else(none, |gap| time(gap.p50)),
        train.at_b.summary().map_or_else(none, |gap| time(gap.p50)),
    ]
}
