//! Distribution of integers in constant memory.

use serde::Serialize;

use crate::histogram::Histogram;
use crate::numeric::{count_to_f64, nearest_rank_per_mille};

/// Distribution of integers, such as lengths in packets or bytes.
///
/// Count, mean, min and max are exact (the sum saturates at 2^64 - 1). Percentiles are nearest ranks, exact below 2048
/// and within 0.1 % above. Memory grows only with the powers of two between min and max, by 8 KiB each from 2048 on.
#[derive(Clone, Debug, Default)]
pub struct CountDistribution {
    /// Number of values.
    pub count: u64,
    sum: u64,
    min: u64,
    /// Max value; 0 without values.
    pub max: u64,
    histogram: Histogram,
}

/// Summary of a [`CountDistribution`]; all values but the count in the recorded unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountSummary {
    /// Number of values.
    pub count: u64,
    /// Min value.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Max value.
    pub max: u64,
}

impl CountDistribution {
    /// Adds a value.
    pub fn record(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.histogram.record(value);
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.histogram.merge(&other.histogram);
    }

    /// Arithmetic mean, or `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| count_to_f64(self.sum) / count_to_f64(self.count))
    }

    /// Summary, or `None` without values.
    #[must_use]
    pub fn summary(&self) -> Option<CountSummary> {
        let percentile = |per_mille| {
            let value = self.histogram.at_rank(nearest_rank_per_mille(per_mille, self.count));
            value.clamp(self.min, self.max)
        };
        Some(CountSummary {
            mean: self.mean()?,
            count: self.count,
            min: self.min,
            p50: percentile(500),
            p99: percentile(990),
            max: self.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(values: impl IntoIterator<Item = u64>) -> CountDistribution {
        let mut distribution = CountDistribution::default();
        values.into_iter().for_each(|value| distribution.record(value));
        distribution
    }

    #[test]
    fn empty_distribution_has_no_summary() {
        let empty = distribution([]);
        assert_eq!((empty.count, empty.max, empty.mean(), empty.summary()), (0, 0, None, None));
    }

    #[test]
    fn percentiles_of_a_hundred_values_are_their_ranks() {
        let summary = distribution(1..=100).summary().expect("numbers");
        let CountSummary { count, min, mean, p50, p99, max } = summary;
        assert_eq!((count, min, p50, p99, max), (100, 1, 50, 99, 100));
        assert!((mean - 50.5).abs() < 1e-12);
    }

    #[test]
    fn merged_distributions_have_the_values_of_both() {
        let mut merged = CountDistribution::default();
        for part in [distribution([]), distribution([5, 9]), distribution([]), distribution([2])] {
            merged.merge(&part);
        }
        assert_eq!(merged.summary(), distribution([5, 9, 2]).summary());
    }

    #[test]
    fn range_limits_are_accepted() {
        let summary = distribution([u64::MAX, u64::MAX]).summary().expect("numbers");
        assert_eq!((summary.min, summary.p99, summary.max), (u64::MAX, u64::MAX, u64::MAX));
    }
}
