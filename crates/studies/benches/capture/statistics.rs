//! Numbers of several repetitions.

use std::fmt;

pub(crate) use wirestamp_metrics::numeric::count_to_f64 as real;
use wirestamp_metrics::numeric::nanos_to_f64;

/// Median, min and max of some repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// That of `values`; none without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        // Of an even number, the mean of the two in the middle.
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), min, max })
    }
}

/// `12.3 (11.9..14.0)`, or `12.3` of a single value, with the precision asked for.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, min, max } = self;
        let digits = f.precision().unwrap_or(2);
        write!(f, "{median:.digits$}")?;
        if min < max { write!(f, " ({min:.digits$}..{max:.digits$})") } else { Ok(()) }
    }
}

/// A time in nanoseconds as microseconds.
pub(crate) fn micros(ns: i64) -> f64 {
    nanos_to_f64(ns) / 1e3
}
