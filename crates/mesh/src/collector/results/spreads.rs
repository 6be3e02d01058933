//! Distributions of values, and their columns in the tables of results.

use rusqlite::Row;
use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wirestamp_metrics::numeric::count_to_f64;
use wirestamp_metrics::{CompactHistogram, Summary};

use crate::database::unsigned;

/// Number of columns of a distribution.
pub(super) const COLUMNS: usize = 9;

/// Distribution of values, in nanoseconds.
///
/// Percentiles of measured windows are exact. Those of merged windows come from histograms, within
/// [`wirestamp_metrics::CompactHistogram::ERROR`] of the value (of the delay, for values above the min); they are not
/// known if clocks were unsynchronised for a part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Spread {
    /// Number of values.
    pub count: u64,
    /// Min.
    pub min: i64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (n - 1); 0 for a single value.
    pub stddev: f64,
    /// Median.
    #[schema(required)]
    pub p50: Option<i64>,
    /// 90th percentile.
    #[schema(required)]
    pub p90: Option<i64>,
    /// 99th percentile.
    #[schema(required)]
    pub p99: Option<i64>,
    /// 99.9th percentile.
    #[schema(required)]
    pub p999: Option<i64>,
    /// Max.
    pub max: i64,
}

impl Spread {
    /// Distribution of the distances from the min.
    pub(super) fn above_minimum(&self) -> Self {
        let above = |value: i64| value.saturating_sub(self.min);
        #[expect(clippy::cast_precision_loss, reason = "a mean is not more exact")]
        let mean = self.mean - self.min as f64;
        let [p50, p90, p99, p999] =
            [self.p50, self.p90, self.p99, self.p999].map(|it| it.map(above));
        Self { min: 0, mean, p50, p90, p99, p999, max: above(self.max), ..*self }
    }
}

impl From<&Summary> for Spread {
    fn from(summary: &Summary) -> Self {
        let Summary { count, min, mean, stddev, p50, p90, p99, p999, max } = *summary;
        let [p50, p90, p99, p999] = [p50, p90, p99, p999].map(Some);
        Self { count, min, mean, stddev, p50, p90, p99, p999, max }
    }
}

/// The columns of a distribution: its count is 0 without values.
pub(super) fn columns(spread: Option<&Spread>) -> [Value; COLUMNS] {
    let Some(spread) = spread else {
        let mut none = [const { Value::Null }; COLUMNS];
        none[0] = Value::Integer(0);
        return none;
    };
    let Spread { count, min, mean, p50, p90, p99, p999, max, .. } = *spread;
    [
        count.cast_signed().into(),
        min.into(),
        mean.into(),
        squares(spread).into(),
        p50.into(),
        p90.into(),
        p99.into(),
        p999.into(),
        max.into(),
    ]
}

/// The distribution whose columns begin at `first`.
pub(super) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Spread>> {
    let count = unsigned(row, first)?;
    if count == 0 {
        return Ok(None);
    }
    Ok(Some(Spread {
        count,
        min: row.get(first + 1)?,
        mean: row.get(first + 2)?,
        stddev: deviation(row.get(first + 3)?, count),
        p50: row.get(first + 4)?,
        p90: row.get(first + 5)?,
        p99: row.get(first + 6)?,
        p999: row.get(first + 7)?,
        max: row.get(first + 8)?,
    }))
}

/// Merges two distributions, without percentiles.
pub(super) fn merged(one: Option<Spread>, other: Option<Spread>) -> Option<Spread> {
    let (Some(one), Some(other)) = (one, other) else {
        let known = one.or(other)?;
        return Some(Spread { p50: None, p90: None, p99: None, p999: None, ..known });
    };
    let count = one.count.saturating_add(other.count);
    let [first, second, all] = [one.count, other.count, count].map(count_to_f64);
    let apart = other.mean - one.mean;
    let between = apart * apart * first * second / all;
    Some(Spread {
        count,
        min: one.min.min(other.min),
        mean: one.mean + apart * second / all,
        stddev: deviation(squares(&one) + squares(&other) + between, count),
        max: one.max.max(other.max),
        ..Spread::default()
    })
}

/// Adds the percentiles from a histogram with all values. The exact min and max limit them.
pub(super) fn with_percentiles(spread: Spread, histogram: &CompactHistogram) -> Spread {
    let complete = Some(histogram).filter(|it| it.count() == spread.count);
    let Some(percentiles) = complete.and_then(CompactHistogram::percentiles) else { return spread };
    let [p50, p90, p99, p999] = percentiles.map(|it| Some(it.max(spread.min).min(spread.max)));
    Spread { p50, p90, p99, p999, ..spread }
}

/// Sum of squared distances from the mean.
fn squares(spread: &Spread) -> f64 {
    spread.stddev * spread.stddev * count_to_f64(spread.count.saturating_sub(1))
}

fn deviation(squares: f64, count: u64) -> f64 {
    if count > 1 { (squares / count_to_f64(count - 1)).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;
    use wirestamp_metrics::Distribution;

    use super::*;

    fn of(nanos: &[i64]) -> (Option<Spread>, CompactHistogram) {
        let mut distribution = Distribution::new();
        nanos.iter().for_each(|it| distribution.record(Span::from_nanos(*it)));
        (distribution.summary().as_ref().map(Spread::from), (&distribution).into())
    }

    #[test]
    fn merged_distribution_equals_that_of_all_values() {
        let ((one, mut histogram), (other, more)) = (of(&[5, 9, 40]), of(&[-3, 100]));
        histogram.merge(&more);
        let all = of(&[5, 9, 40, -3, 100]).0.unwrap();
        let found = with_percentiles(merged(one, other).unwrap(), &histogram);
        let whole = |it: &Spread| (it.count, it.min, it.p50, it.p999, it.max);
        assert_eq!(whole(&found), whole(&all));
        for (found, expected) in [(found.mean, all.mean), (found.stddev, all.stddev)] {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        }
        assert_eq!(merged(None, None), None);
        let alone = merged(None, one).unwrap();
        assert_eq!((alone.count, alone.p50, alone.max), (3, None, 40));
        // A histogram without all values has no percentiles.
        assert_eq!(with_percentiles(alone, &of(&[5]).1).p50, None);
    }
}
