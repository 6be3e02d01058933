//! The findings as tables, for the page and for the terminal alike.

use super::findings::InterarrivalResult;
use super::stamps::Stamps;
use crate::experiment::factors;
use crate::overhead::paper::Traffic;
use crate::timers::Cost;
use wirestamp_report::Table;
use wirestamp_report::estimate::{coefficient, micros_with_confidence};
use wirestamp_report::format::{count, duration, micros, optional, plural};

impl InterarrivalResult {
    /// Results of stamps in user space with both patterns.
    pub(super) fn stamps_in_user_space(&self) -> Table {
        of_stamps("Times between arrivals, stamped in user space (µs)", &self.user_space)
    }

    /// Results of captures with both patterns.
    pub(super) fn stamps_of_captures(&self) -> Table {
        of_stamps("Times between arrivals, captured at the end of a cable (µs)", &self.captures)
    }

    /// How overheads go with the times between arrivals.
    pub(super) fn correlations(&self) -> Table {
        Table::of(
            "Correlation of a stamp's overhead with the time since the stamp before",
            self.correlation.iter(),
            &[
                ("", &|it| format!("{}, {}", it.pattern.name(), it.method.name())),
                ("of ranks (Spearman)", &|it| optional(it.spearman, coefficient)),
                ("linear (Pearson)", &|it| optional(it.pearson, coefficient)),
                ("of ranks, with the error of that time", &|it| {
                    optional(it.spearman_of_error, coefficient)
                }),
            ],
        )
    }

    /// Effects of source and pattern on the deviation of the errors.
    pub(super) fn effects(&self) -> Table {
        factors("the deviation of the errors", &self.effects_on_log_deviation)
    }

    /// Captures by their error, a sentence for each pattern.
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
                "Times between arrivals of the {} differ from the sender's; standard deviation, smallest first: {}.",
                pattern.name(),
                words.join(", ")
            )
        })
    }

    /// Sources without stamps and the reasons, a line each.
    pub(super) fn refusals(&self) -> Vec<String> {
        let line =
            |(source, reason): &(String, String)| format!("{source} was left out: {reason}.");
        self.refused.iter().map(line).collect()
    }
}

fn of_stamps(caption: &str, stamps: &[Stamps]) -> Table {
    let gap = |it: &Stamps, of: fn(Cost) -> f64| optional(it.gap_ns, |gap| micros(of(gap)));
    let error = |it: &Stamps, of: fn(Cost) -> f64| optional(it.error_ns, |error| micros(of(error)));
    Table::of(
        caption,
        stamps,
        &[
            ("", &|it| format!("{}, {}", it.pattern.name(), it.source)),
            ("mean", &|it| gap(it, |gap| gap.mean)),
            ("least", &|it| gap(it, |gap| gap.min)),
            ("most", &|it| gap(it, |gap| gap.max)),
            ("deviation", &|it| optional(it.gap_deviation_ns, micros_with_confidence)),
            ("standard deviation from the sender’s", &|it| {
                optional(it.error_deviation_ns, micros_with_confidence)
            }),
            ("min error", &|it| error(it, |error| error.min)),
            ("max error", &|it| error(it, |error| error.max)),
            ("times", &|it| stamped(it)),
        ],
    )
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
