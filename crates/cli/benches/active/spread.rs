//! Numbers of several repetitions.

use std::fmt;

pub(crate) use wirestamp_metrics::numeric::count_to_f64 as real;

/// The median of some repetitions, with the least and the greatest of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// That of `values`; none without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self { median: median(&sorted)?, min, max })
    }
}

/// `12.3 (11.9..14.0)`, with the precision asked for.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, min, max } = self;
        let digits = f.precision().unwrap_or(2);
        write!(f, "{median:.digits$} ({min:.digits$}..{max:.digits$})")
    }
}

/// The middle of sorted numbers; of an even number of them, the mean of the two in the middle.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    let low = sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*low, *sorted.get(sorted.len() / 2)?))
}
