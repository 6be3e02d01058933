//! The findings as tables, for the page and for the terminal alike.

use super::correlation::Correlation;
use super::findings::Findings;
use super::stamps::Stamps;
use crate::experiment::Estimate;
use crate::experiment::factors;
use crate::overhead::paper::Traffic;
use wirestamp_report::Table;
use wirestamp_report::estimate::{coefficient, micros_with_confidence};
use wirestamp_report::format::{NOTHING, count, duration, micros, plural};

impl Findings {
    /// What stamps in user space make of both patterns.
    pub(super) fn stamps_in_user_space(&self) -> Table {
        of_stamps("Times between arrivals, stamped in user space (µs)", &self.user_space)
    }

    /// What captures make of both patterns.
    pub(super) fn stamps_of_captures(&self) -> Table {
        of_stamps("Times between arrivals, captured at the end of a cable (µs)", &self.captures)
    }

    /// How overheads go with the times between arrivals.
    pub(super) fn correlations(&self) -> Table {
        let row = |found: &Correlation| {
            let of = |value: Option<Estimate>| value.map_or_else(nothing, coefficient);
            vec![
                format!("{}, {}", found.pattern.name(), found.method.name()),
                of(found.spearman),
                of(found.pearson),
                of(found.spearman_of_error),
            ]
        };
        Table::new(
            "Correlation of a stamp's overhead with the time since the stamp before",
            &[
                "",
                "of ranks (Spearman)",
                "linear (Pearson)",
                "of ranks, with the error of that time",
            ],
            self.correlation.iter().map(row).collect(),
        )
    }

    /// What source and pattern do to the deviation of the errors.
    pub(super) fn effects(&self) -> Table {
        factors("the deviation of the errors", &self.effects_on_log_deviation)
    }

    /// Which capture is nearest to the sender, in a sentence for each pattern.
    pub(super) fn nearest(&self) -> Vec<String> {
        Traffic::ALL.into_iter().filter_map(|pattern| self.nearest_of(pattern)).collect()
    }

    fn nearest_of(&self, pattern: Traffic) -> Option<String> {
        let deviation = |stamps: &&Stamps| Some(stamps.error_deviation_ns?.mean);
        let mut captures = self.captures_of(pattern);
        captures.retain(|stamps| deviation(stamps).is_some());
        captures
            .sort_by(|a, b| deviation(a).unwrap_or(0.0).total_cmp(&deviation(b).unwrap_or(0.0)));
        let words = |stamps: &&Stamps| {
            Some(format!("{} by {}", stamps.source, duration(deviation(stamps)?)))
        };
        let words: Vec<_> = captures.iter().filter_map(words).collect();
        (!words.is_empty()).then(|| {
            format!(
                "Times between arrivals of the {} deviate from the sender's own, least first: {}.",
                pattern.name(),
                words.join(", ")
            )
        })
    }

    /// Why a source stamped nothing, a line for each.
    pub(super) fn refusals(&self) -> Vec<String> {
        let line =
            |(source, reason): &(String, String)| format!("{source} was left out: {reason}.");
        self.refused.iter().map(line).collect()
    }
}

fn of_stamps(caption: &str, stamps: &[Stamps]) -> Table {
    let row = |stamps: &Stamps| {
        let gap = stamps.gap_ns.map_or_else(
            || vec![nothing(); 3],
            |gap| [gap.mean, gap.min, gap.max].map(micros).to_vec(),
        );
        let error = stamps.error_ns.map_or_else(
            || vec![nothing(); 2],
            |error| [error.min, error.max].map(micros).to_vec(),
        );
        let name = vec![format!("{}, {}", stamps.pattern.name(), stamps.source)];
        let deviation =
            |of: Option<Estimate>| vec![of.map_or_else(nothing, micros_with_confidence)];
        let packets = vec![stamped(stamps)];
        let [of_gap, of_error] =
            [stamps.gap_deviation_ns, stamps.error_deviation_ns].map(deviation);
        [name, gap, of_gap, of_error, error, packets].concat()
    };
    let heads = [
        "",
        "mean",
        "least",
        "most",
        "deviation",
        "off the sender’s by (deviation)",
        "least error",
        "greatest error",
        "times",
    ];
    Table::new(caption, &heads, stamps.iter().map(row).collect())
}

/// How many times there are, and how many packets were missed if any were.
fn stamped(stamps: &Stamps) -> String {
    match stamps.missed {
        0 => count(stamps.count()),
        missed => {
            format!("{}, {} missed", count(stamps.count()), plural(missed, "packet", "packets"))
        }
    }
}

fn nothing() -> String {
    NOTHING.to_owned()
}
