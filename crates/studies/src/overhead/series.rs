//! Statistics of a series of overheads.

use std::collections::BTreeMap;

use crate::experiment::{deviation, mean};
use crate::timers::Cost;
use wirestamp_metrics::numeric::nearest_rank_per_mille;
use wirestamp_report::format::{length, real};

/// The distribution of a series; none of no values.
pub(crate) fn cost(series: &[f64]) -> Option<Cost> {
    let mut sorted = series.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = length(&sorted);
    // The smallest value that `per_mille` thousandths do not exceed.
    let share = |per_mille| {
        let rank = nearest_rank_per_mille(per_mille, count).max(1) - 1;
        usize::try_from(rank).ok().and_then(|rank| sorted.get(rank).copied())
    };
    Some(Cost {
        count,
        min: *sorted.first()?,
        mean: mean(series)?,
        stddev: deviation(series).unwrap_or(0.0),
        p50: share(500)?,
        p90: share(900)?,
        p99: share(990)?,
        p999: share(999)?,
        max: *sorted.last()?,
    })
}

/// The standard deviation of a run without its longest thousandth.
pub(super) fn deviation_of_999(run: &[f64]) -> Option<f64> {
    let mut sorted = run.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let kept = usize::try_from(nearest_rank_per_mille(999, length(&sorted))).ok()?;
    deviation(sorted.get(..kept)?)
}

/// The auto-correlation of a series at the lags from 1 to `lags`: how much a value determines the one
/// `lag` packets later, 1 for fully and 0 for not at all (Box and Jenkins, "Time Series Analysis",
/// section 2.1.5). `None` if the series does not vary, or is no longer than the lags.
pub(super) fn autocorrelation(series: &[f64], lags: usize) -> Option<Vec<f64>> {
    let mean = mean(series)?;
    let away: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let product = |lag: usize| -> f64 { away.iter().zip(&away[lag..]).map(|(a, b)| a * b).sum() };
    let variance = product(0);
    (series.len() > lags && variance > 0.0)
        .then(|| (1..=lags).map(|lag| product(lag) / variance).collect())
}

/// The share of the values that are one of the two most frequent ones, in whole steps of the clock; none without values.
/// Where it is large, the series shows the phase of the clock's steps rather than the overhead.
pub(crate) fn share_of_two_values(series: &[f64], step: f64) -> Option<f64> {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for value in series {
        #[expect(clippy::cast_possible_truncation, reason = "saturates; overheads are small")]
        let steps = (value / step).round() as i64;
        *counts.entry(steps).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let two: u64 = counts.iter().take(2).sum();
    (!series.is_empty()).then(|| real(two) / real(length(series)))
}

/// The 95 % bound of the auto-correlation of `values` uncorrelated values (Bartlett: the standard deviation
/// is one over the root of their number).
pub(super) fn stray(values: u64) -> f64 {
    1.96 / real(values.max(1)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_that_of_the_sorted_values() {
        let series: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        let cost = cost(&series).unwrap();
        assert_eq!((cost.count, cost.min, cost.max, cost.mean), (1000, 1.0, 1000.0, 500.5));
        assert_eq!([cost.p50, cost.p90, cost.p99, cost.p999], [500.0, 900.0, 990.0, 999.0]);
        assert!((cost.stddev - 288.82).abs() < 0.01);
        assert_eq!(super::cost(&[]), None);
    }

    #[test]
    fn alternating_series_correlates_and_noise_does_not() {
        let waves: Vec<f64> = (0..1000).map(|n| f64::from(n % 2)).collect();
        let found = autocorrelation(&waves, 2).unwrap();
        assert!((found[0] + 1.0).abs() < 0.01 && (found[1] - 1.0).abs() < 0.01, "{found:?}");
        let mut random = fastrand::Rng::with_seed(1);
        let noise: Vec<f64> = (0..10_000).map(|_| random.f64()).collect();
        let found = autocorrelation(&noise, 20).unwrap();
        let beyond = found.iter().filter(|value| value.abs() > stray(10_000)).count();
        assert!(beyond <= 4, "{found:?}");
    }

    #[test]
    fn two_values_a_step_apart_are_found_among_others() {
        let series = [[20.0, 10.1].repeat(49), vec![900.0, 5_000.0]].concat();
        assert_eq!(share_of_two_values(&series, 10.0), Some(0.98));
        assert_eq!(share_of_two_values(&[], 10.0), None);
    }

    #[test]
    fn what_does_not_vary_or_is_short_has_no_auto_correlation() {
        assert_eq!(autocorrelation(&[5.0; 100], 3), None);
        assert_eq!(autocorrelation(&[1.0, 2.0], 2), None);
        assert_eq!(autocorrelation(&[], 2), None);
    }
}
