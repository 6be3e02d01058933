//! The distribution of whole numbers in constant memory.

use serde::Serialize;

use crate::histogram::Histogram;
use crate::numeric::count_to_f64;

/// Records whole numbers, such as lengths in packets or bytes, and tells how they are distributed.
///
/// Count, mean and extremes are exact (the sum saturates at 2^64 - 1); percentiles are nearest
/// ranks, exact below 2048 and within 0.1 % above. Memory grows with the powers of two from the
/// smallest number to the largest only, at 8 KiB each from 2048 on, and below.
#[derive(Clone, Debug, Default)]
pub struct CountDistribution {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    histogram: Histogram,
}

/// A [`CountDistribution`] in six numbers; all but the count in the unit of what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CountSummary {
    /// How many numbers there are.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
}

impl CountDistribution {
    /// Adds a number.
    pub fn record(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.histogram.record(value);
    }

    /// Adds the numbers of `other`.
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

    /// How many numbers there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The greatest number; 0 without any.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The arithmetic mean, or `None` without numbers.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| count_to_f64(self.sum) / count_to_f64(self.count))
    }

    /// The tally in six numbers, or `None` without any.
    #[must_use]
    pub fn summary(&self) -> Option<CountSummary> {
        let percentile = |percent: u128| {
            let rank = (u128::from(self.count) * percent).div_ceil(100);
            let value = self.histogram.at_rank(u64::try_from(rank).unwrap_or(self.count));
            value.clamp(self.min, self.max)
        };
        Some(CountSummary {
            mean: self.mean()?,
            count: self.count,
            min: self.min,
            p50: percentile(50),
            p99: percentile(99),
            max: self.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(values: impl IntoIterator<Item = u64>) -> CountDistribution {
        let mut tally = CountDistribution::default();
        values.into_iter().for_each(|value| tally.record(value));
        tally
    }

    #[test]
    fn without_numbers_there_is_nothing_to_tell() {
        let empty = tally([]);
        assert_eq!((empty.count(), empty.max(), empty.mean(), empty.summary()), (0, 0, None, None));
    }

    #[test]
    fn a_hundred_numbers_have_their_ranks_as_percentiles() {
        let summary = tally(1..=100).summary().expect("numbers");
        let CountSummary { count, min, mean, p50, p99, max } = summary;
        assert_eq!((count, min, p50, p99, max), (100, 1, 50, 99, 100));
        assert!((mean - 50.5).abs() < 1e-12);
    }

    #[test]
    fn merged_tallies_have_the_numbers_of_both() {
        let mut merged = CountDistribution::default();
        for part in [tally([]), tally([5, 9]), tally([]), tally([2])] {
            merged.merge(&part);
        }
        assert_eq!(merged.summary(), tally([5, 9, 2]).summary());
    }

    #[test]
    fn the_ends_of_the_range_are_taken() {
        let summary = tally([u64::MAX, u64::MAX]).summary().expect("numbers");
        assert_eq!((summary.min, summary.p99, summary.max), (u64::MAX, u64::MAX, u64::MAX));
    }
}
