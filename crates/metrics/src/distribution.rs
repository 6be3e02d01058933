//! Distribution of time spans in constant memory.

use serde::{Deserialize, Serialize, Serializer};
use wirestamp_clock::Span;

use crate::moments::Moments;
use crate::numeric::{nanos_to_f64, nearest_rank};
use crate::values::Values;

/// Distribution of spans of either sign: count, min, max, mean, standard deviation and percentiles.
///
/// Count, min and max are exact. Mean and standard deviation are computed in double precision, which is exact for
/// whole nanoseconds up to 104 days. Percentiles are exact up to 64 values. For more, they come from histograms with
/// buckets at most 0.1 % wide, one per sign. Memory grows only with the powers of two between the smallest and the
/// largest magnitude, by 8 KiB each from 2048 on.
///
/// Serialised as its [`Summary`]; all keys but the count are null while the count is 0.
#[derive(Clone, Debug)]
pub struct Distribution {
    count: u64,
    min: i64,
    max: i64,
    moments: Moments,
    values: Values,
}

/// Summary of a distribution; all values but the count in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// Min value.
    pub min: i64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (with n - 1); 0 for a single value.
    pub stddev: f64,
    /// Median.
    pub p50: i64,
    /// 90th percentile.
    pub p90: i64,
    /// 99th percentile.
    pub p99: i64,
    /// 99.9th percentile.
    pub p999: i64,
    /// Max value.
    pub max: i64,
}

impl Summary {
    /// Variation of delays above the min: PDV of RFC 5481 section 4.2.
    ///
    /// Independent of a constant clock offset. Where the clocks drift apart, it should cover a time with negligible
    /// drift (section 6.3). Its max or 99.9th percentile approximates the required length of a de-jitter buffer
    /// (sections 3.2 and 7.1.2).
    #[must_use]
    pub fn above_minimum(&self) -> Self {
        let above = |value: i64| value.saturating_sub(self.min);
        Self {
            count: self.count,
            min: 0,
            mean: self.mean - nanos_to_f64(self.min),
            stddev: self.stddev,
            p50: above(self.p50),
            p90: above(self.p90),
            p99: above(self.p99),
            p999: above(self.p999),
            max: above(self.max),
        }
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            count: 0,
            min: i64::MAX,
            max: i64::MIN,
            moments: Moments::default(),
            values: Values::default(),
        }
    }
}

impl Distribution {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    pub fn record(&mut self, value: Span) {
        let nanos = value.as_nanos();
        self.count += 1;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.moments.record(nanos_to_f64(nanos));
        self.values.record(nanos);
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.moments.merge(&other.moments);
        self.values.merge(&other.values);
    }

    /// Values in ascending order, each with its count. Values that share a bucket are given as its middle.
    #[must_use]
    pub fn buckets(&self) -> Vec<(i64, u64)> {
        self.values.buckets()
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Percentile by the nearest rank: value number ⌈`quantile` · n⌉ of `n` values in order. `quantile` is clamped to
    /// 0..=1, the result to min and max. `None` without values.
    fn percentile(&self, quantile: f64) -> Option<Span> {
        if self.count == 0 {
            return None;
        }
        let rank = nearest_rank(quantile, self.count);
        let nanos = if rank == self.count { self.max } else { self.values.at_rank(rank) };
        Some(Span::from_nanos(nanos.clamp(self.min, self.max)))
    }

    /// Summary, or `None` without values.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let percentile = |quantile| self.percentile(quantile).map(Span::as_nanos);
        Some(Summary {
            count: self.count,
            min: self.min,
            mean: self.moments.mean(),
            stddev: self.moments.standard_deviation(),
            p50: percentile(0.5)?,
            p90: percentile(0.9)?,
            p99: percentile(0.99)?,
            p999: percentile(0.999)?,
            max: self.max,
        })
    }
}

/// Distribution of times of either sign, in nanoseconds. All keys but `count` are null without values.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Distribution"))]
struct Form {
    /// Number of values.
    count: u64,
    /// Min value.
    min: Option<i64>,
    /// Arithmetic mean.
    mean: Option<f64>,
    /// Standard deviation of the sample (with n - 1); 0 for a single value.
    stddev: Option<f64>,
    /// Median.
    p50: Option<i64>,
    /// 90th percentile.
    p90: Option<i64>,
    /// 99th percentile.
    p99: Option<i64>,
    /// 99.9th percentile.
    p999: Option<i64>,
    /// Max value.
    max: Option<i64>,
}

impl From<Summary> for Form {
    fn from(summary: Summary) -> Self {
        let Summary { count, min, mean, stddev, p50, p90, p99, p999, max } = summary;
        Self {
            count,
            min: Some(min),
            mean: Some(mean),
            stddev: Some(stddev),
            p50: Some(p50),
            p90: Some(p90),
            p99: Some(p99),
            p999: Some(p999),
            max: Some(max),
        }
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.summary().map(Form::from).unwrap_or_default().serialize(serializer)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Distribution {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Form::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Form::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::numeric::count_to_f64;

    fn distribution(values: &[i64]) -> Distribution {
        let mut distribution = Distribution::new();
        for value in values {
            distribution.record(Span::from_nanos(*value));
        }
        distribution
    }

    #[test]
    fn single_value_fills_the_summary() {
        let summary = distribution(&[-7]).summary().expect("a value");
        assert_eq!((summary.min, summary.p50, summary.p999, summary.max), (-7, -7, -7, -7));
        assert_eq!((summary.count, summary.mean, summary.stddev), (1, -7.0, 0.0));
    }

    #[test]
    fn merged_distributions_have_the_values_of_both() {
        let mut merged = distribution(&[-7, 3]);
        merged.merge(&distribution(&[-900, 3]));
        assert_eq!(merged.summary(), distribution(&[-7, 3, -900, 3]).summary());
        assert_eq!(merged.buckets(), [(-900, 1), (-7, 1), (3, 2)]);
        merged.merge(&distribution(&[]));
        assert_eq!((merged.count(), merged.summary().expect("values").min), (4, -900));
        let many: Vec<i64> = (-100..100).collect();
        let all = [&many[..], &[-7, 3, -900, 3]].concat();
        for (mut first, second) in [
            (merged.clone(), distribution(&many)),
            (distribution(&many), merged.clone()),
            (distribution(&all), distribution(&[])),
        ] {
            first.merge(&second);
            assert_eq!(first.buckets(), distribution(&all).buckets());
            let percentiles = first.summary().map(|all| (all.p50, all.p99, all.max));
            assert_eq!(percentiles, Some((-1, 97, 99)));
        }
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let values: Vec<i64> = (-500..500).collect();
        let distribution = distribution(&values);
        let at = |quantile| distribution.percentile(quantile).map(Span::as_nanos);
        assert_eq!(at(0.0), Some(-500));
        assert_eq!(at(0.001), Some(-500));
        assert_eq!(at(0.0011), Some(-499));
        assert_eq!(at(0.5), Some(-1));
        assert_eq!(at(0.501), Some(0));
        assert_eq!(at(0.999), Some(498));
        assert_eq!(at(1.0), Some(499));
        assert_eq!(at(f64::NAN), Some(-500));
    }

    #[test]
    fn range_limits_are_accepted() {
        let summary = distribution(&[i64::MIN, i64::MAX, 0]).summary().expect("values");
        assert_eq!((summary.min, summary.p50, summary.max), (i64::MIN, 0, i64::MAX));
    }

    /// Figure 1 of RFC 5481 section 4.4, in ms: its PDV is 10, 0, 10, 15, 10.
    #[test]
    fn variation_matches_the_example() {
        let delays = [20, 10, 20, 25, 20];
        let summary = distribution(&delays).summary().expect("values").above_minimum();
        assert_eq!((summary.count, summary.min, summary.p50, summary.max), (5, 0, 10, 15));
        assert!((summary.mean - 9.0).abs() < 1e-12);
    }

    /// The same delays with clocks that differ by a day have the same variation.
    #[test]
    fn variation_is_independent_of_the_clock_offset() {
        const DAY: i64 = 86_400_000_000_000;
        let delays = [1_000_000, 1_500_000, 1_200_000, 9_000_000];
        let variation = |offset| {
            let delays = delays.map(|delay| delay + offset);
            distribution(&delays).summary().expect("values").above_minimum()
        };
        let Summary { min, mean, p999, max, .. } = variation(0);
        assert_eq!((min, p999, max), (0, 8_000_000, 8_000_000));
        assert!((mean - 2_175_000.0).abs() < 1e-3);
        assert_eq!((variation(DAY).max, variation(-DAY).max), (max, max));
        let widest = distribution(&[i64::MIN, i64::MAX]).summary().expect("values");
        assert_eq!(widest.above_minimum().max, i64::MAX);
    }

    #[test]
    fn empty_distribution_has_null_keys() {
        let json = |distribution: &Distribution| {
            serde_json::to_string(distribution).expect("a distribution can be serialised")
        };
        assert_eq!(
            json(&distribution(&[1, 3])),
            r#"{"count":2,"min":1,"mean":2.0,"stddev":1.4142135623730951,"p50":1,"p90":3,"p99":3,"p999":3,"max":3}"#
        );
        assert_eq!(
            json(&distribution(&[])),
            r#"{"count":0,"min":null,"mean":null,"stddev":null,"p50":null,"p90":null,"p99":null,"p999":null,"max":null}"#
        );
    }

    /// Relative difference of numbers that are equal except for rounding.
    fn differ(one: f64, other: f64) -> f64 {
        (one - other).abs() / one.abs().max(other.abs()).max(1.0)
    }

    proptest! {
        #[test]
        fn distribution_matches_the_sorted_values(
            mut values in prop::collection::vec(
                prop_oneof![-3000i64..3000, -10_000_000_000i64..10_000_000_000], 1..400),
            quantile in 0.0..=1.0f64,
        ) {
            let distribution = distribution(&values);
            values.sort_unstable();
            let count = values.len() as u64;
            let exact = values[usize::try_from(nearest_rank(quantile, count))? - 1];
            let found = distribution.percentile(quantile).expect("values").as_nanos();
            prop_assert!(found.abs_diff(exact) <= exact.unsigned_abs() / 1000, "{found} {exact}");

            let summary = distribution.summary().expect("values");
            prop_assert_eq!(summary.count, count);
            prop_assert_eq!((summary.min, summary.max), (values[0], values[values.len() - 1]));
            let mean = values.iter().copied().map(nanos_to_f64).sum::<f64>() / count_to_f64(count);
            prop_assert!((summary.mean - mean).abs() < 1e-3, "{} {mean}", summary.mean);
            let squares: f64 =
                values.iter().map(|value| (nanos_to_f64(*value) - mean).powi(2)).sum();
            let stddev = (squares / count_to_f64(count.max(2) - 1)).sqrt();
            prop_assert!(differ(summary.stddev, stddev) < 1e-9, "{} {stddev}", summary.stddev);
        }
    }
}
