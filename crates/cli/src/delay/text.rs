//! What `delay` found, as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use wirestamp_metrics::{Course, Quality};
use wirestamp_study::Sight;

use super::codec;
use super::findings::Findings;
use super::media::Voice;
use crate::output::{mean, percent, time};
use crate::quality;
use crate::table::table;
use crate::tap;

/// Where mean and 99th percentile of the delay are among [`quality::HEADER`].
const MEAN: usize = 5;
const P99: usize = 6;

/// The columns of [`course_row`].
const COURSE: [&str; 10] = [
    "",
    "PDV 99 %",
    "late by most",
    "extent",
    "3-reordered",
    "loss runs",
    "longest",
    "burst ratio",
    "gap at A",
    "gap at B",
];

/// A row of the table: a flow, or several.
struct Row<'a> {
    name: String,
    of: &'a Quality,
    /// What it is rated as, which only a flow can be.
    voice: Option<Voice>,
}

impl Findings {
    /// A table with a row for each flow, a second one if everything is wanted, and what has to be known
    /// before the figures are believed.
    pub(super) fn text(&self, everything: bool) -> String {
        let total = self.flows.total();
        let flows = self.flows.flows();
        let mut rows: Vec<Row<'_>> = flows
            .iter()
            .map(|(flow, of)| Row { name: flow.to_string(), of, voice: self.voice(flow) })
            .collect();
        let others = self.flows.others();
        if others.counts().sent > 0 {
            rows.push(Row { name: "other flows".into(), of: others, voice: None });
        }
        if rows.len() != 1 {
            rows.push(Row { name: "all".into(), of: &total, voice: None });
        }
        let mut text = self.qualities(&rows);
        let mut more = Vec::new();
        if everything {
            let rows = rows
                .iter()
                .filter_map(|Row { name, of, .. }| Some(course_row(name, of, of.course()?)));
            more.push(table(&COURSE, &rows.collect::<Vec<_>>()));
        }
        more.extend(self.round_trips());
        more.iter().for_each(|table| text.push_str(&format!("\n{table}")));
        text.push_str(if more.is_empty() { "" } else { "\n" });
        for tap in &self.taps {
            let _ = writeln!(text, "{}", tap::line(tap));
            text.push_str(&tap::complaints(&tap.ledger));
        }
        self.reservations(&total).into_iter().for_each(|line| text.push_str(&(line + "\n")));
        if let Some(layers) = &self.layers {
            let _ = write!(text, "\nBehind B, inside this host:\n{}", layers.text());
        }
        text
    }

    fn qualities(&self, rows: &[Row<'_>]) -> String {
        let mut header = quality::HEADER.to_vec();
        if self.clocks.aligned {
            (header[MEAN], header[P99]) = ("mean PDV", "PDV 99 %");
        }
        let any_voice = rows.iter().any(|row| row.voice.is_some());
        if any_voice {
            header.extend(["codec", "R", "MOS"]);
        }
        let cells = |row: &Row<'_>| {
            let mut cells = self.quality_row(&row.name, row.of);
            if any_voice {
                cells.extend(self.rating_cells(row));
            }
            cells
        };
        table(&header, &rows.iter().map(cells).collect::<Vec<_>>())
    }

    fn quality_row(&self, name: &str, quality: &Quality) -> Vec<String> {
        let mut row = quality::row(name.to_owned(), quality, self.clocks.greatest(quality));
        if let Some(delay) = quality.delay().summary().filter(|_| self.clocks.aligned) {
            let variation = delay.above_minimum();
            (row[MEAN], row[P99]) = (mean(variation.mean), time(variation.p99));
        }
        row
    }

    /// Codec, R-factor and mean opinion score.
    fn rating_cells(&self, row: &Row<'_>) -> [String; 3] {
        let none = || "-".to_owned();
        let Some(voice) = &row.voice else { return [none(), none(), none()] };
        let rating = self.call(voice, row.of).map(|call| call.rating());
        [
            codec::name(voice.codec).to_owned(),
            rating.map_or_else(none, |rating| format!("{:.1}", rating.r_factor())),
            rating.map_or_else(none, |rating| format!("{:.2}", rating.mos())),
        ]
    }

    /// What has to be known before the figures are believed, a line each.
    pub(super) fn reservations(&self, total: &Quality) -> Vec<String> {
        let mut lines = self.sample(total);
        lines.extend(self.voices());
        lines.extend(self.clocks.statements());
        let [a, b] = self.capture_dropped;
        if a + b > 0 {
            lines.push(format!(
                "The captures lost {a} packets at A and {b} at B: what only the other point saw at \
                 that time counts neither as lost nor as unexpected."
            ));
        }
        let [a, b] = self.undated;
        if a + b > 0 {
            lines.push(format!(
                "Of {a} of them at A and {b} at B it is not known when: so many of the packets \
                 counted as lost, or as seen at B only, may be theirs."
            ));
        }
        if self.lost_beyond > 0 {
            lines.push(format!(
                "{} of the lost packets left A before the first or after the last packet that was seen \
                 at B: if B's capture did not run then, the network did not lose them.",
                self.lost_beyond
            ));
        }
        lines.extend(self.below_zero(total));
        lines.extend(coarse(total));
        if self.layers.is_some() {
            lines.push(
                "Looking at packets behind B begins before they are stamped there: delays are longer by \
                 what that takes."
                    .into(),
            );
        }
        let unexpected = total.counts().unexpected;
        if unexpected > 0 {
            lines.push(format!("{unexpected} packets were seen at B only."));
        }
        let given_up: u64 = self.sights.iter().map(Sight::given_up).sum();
        if given_up > 0 {
            lines.push(format!(
                "For want of room, {given_up} flows that were idle for longest were forgotten: if they \
                 carried RTP, or had round trips of TCP, these are not shown."
            ));
        }
        let unidentified = self.unidentified();
        if unidentified > 0 {
            lines.push(format!(
                "{unidentified} packets took no part: not IP, or cut too short to be recognised."
            ));
        }
        lines
    }
}

impl Findings {
    /// How the codecs are known that flows are rated with, and what RTP is not rated.
    fn voices(&self) -> Vec<String> {
        if self.codec.is_some() {
            return Vec::new();
        }
        let flows = self.flows.flows();
        let voices: BTreeSet<_> =
            flows.iter().filter_map(|(flow, _)| Some(self.voice(flow)?.to_string())).collect();
        let mut lines: Vec<_> = voices.iter().map(|voice| format!("Codec: {voice}.")).collect();
        let unrated: Vec<_> = self.media.unrated().into_iter().collect();
        if !unrated.is_empty() {
            lines.push(format!(
                "RTP without R and MOS, of which ITU-T G.113 has no values: {}.",
                unrated.join(", ")
            ));
        }
        lines
    }
}

/// Says so, where clocks are so far apart that percentiles of the delay tell little of its variation.
fn coarse(total: &Quality) -> Option<String> {
    let delay = total.delay().summary()?;
    let largest = delay.min.unsigned_abs().max(delay.max.unsigned_abs());
    // Percentiles are within a 2048th of themselves.
    let within = i64::try_from(largest / 2048).unwrap_or(i64::MAX);
    (delay.above_minimum().p99 < within.saturating_mul(20)).then(|| {
        format!(
            "Percentiles are within {}, which is much beside so little variation: mean, least and most \
             are exact, and between files --align makes all of them so.",
            time(within)
        )
    })
}

/// What the order of a flow's packets tells.
fn course_row(name: &str, quality: &Quality, course: &Course) -> Vec<String> {
    let none = || "-".to_owned();
    let losses = course.loss_pattern();
    let reordering = course.reordering();
    let train = course.train();
    let longest = losses.period_lengths().max();
    let late = reordering.late_times().summary();
    let counted = |value: u64| if value == 0 { none() } else { value.to_string() };
    vec![
        name.to_owned(),
        quality.delay().summary().map_or_else(none, |delay| time(delay.above_minimum().p99)),
        late.map_or_else(none, |late| time(late.max)),
        counted(reordering.extents().max()),
        match reordering.n_reordered(3) {
            0 => none(),
            n => format!("{n} ({})", percent(n, quality.counts().matched)),
        },
        counted(losses.periods()),
        counted(longest),
        losses.burst_ratio().map_or_else(none, |ratio| format!("{ratio:.2}")),
        train.at_a().summary().map_or_else(none, |gap| time(gap.p50)),
        train.at_b().summary().map_or_else(none, |gap| time(gap.p50)),
    ]
}
