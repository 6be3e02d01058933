//! The quality of a stream or flow as a table row.

use wirestamp_metrics::Quality;

use crate::output::{mean, percent, time};

/// The columns of [`row`].
pub(crate) const HEADER: [&str; 9] =
    ["", "sent", "lost", "reordered", "duplicates", "mean delay", "p99", "IPDV p99", "clock error"];

/// One row: counts, one-way delay, delay variation (IPDV), and the bound of the clock error.
pub(crate) fn row(name: String, quality: &Quality, clock_error_ns: Option<i64>) -> Vec<String> {
    let counts = quality.counts();
    let none = || "-".to_owned();
    let delay = quality.delay().summary();
    let variation = quality.variation().summary();
    vec![
        name,
        counts.sent.to_string(),
        format!("{} ({})", counts.lost, percent(counts.lost, counts.sent)),
        counts.reordered.to_string(),
        counts.duplicated.to_string(),
        delay.map_or_else(none, |delay| mean(delay.mean)),
        delay.map_or_else(none, |delay| time(delay.p99)),
        variation.map_or_else(none, |variation| time(variation.p99)),
        clock_error_ns.map_or_else(|| "unknown".into(), |error| format!("±{}", time(error))),
    ]
}
