//! Test for a step in a series: the mean of one third minus the mean of the rest, compared with the random
//! differences in series without a step.
//!
//! The values are medians of consecutive packets, so that an interrupted packet does not hide the others.
//! Neighbouring values are correlated, so formulas for independent values do not give the distribution of such
//! differences. It is measured in series without a step: the difference is computed at every position, which
//! keeps the order of neighbours, as in the moving-block bootstrap (Künsch, "The jackknife and the bootstrap
//! for general stationary observations", 1989).

use crate::experiment::mean;
use wirestamp_metrics::numeric::nearest_rank;
use wirestamp_report::format::length;

/// Probability of a false detection without a step, and of missing a step of the smallest size.
const FOUND_IN_NOTHING: f64 = 0.01;
const MISSED: f64 = 0.01;

/// Mean of the values `within`, minus mean of the values `around`.
pub(super) fn difference(around: &[f64], within: &[f64]) -> Option<f64> {
    Some(mean(within)? - mean(around)?)
}

/// The random differences without a step, in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Chance(Vec<f64>);

impl Chance {
    /// The differences of series without a step, each used as a ring.
    pub(super) fn of<'a>(series: impl IntoIterator<Item = &'a [f64]>) -> Self {
        let mut all: Vec<f64> = series.into_iter().flat_map(everywhere).collect();
        all.sort_unstable_by(f64::total_cmp);
        Self(all)
    }

    /// Threshold: a larger difference is a step. One in a hundred random differences is larger. None without
    /// random differences.
    pub(super) fn critical(&self) -> Option<f64> {
        self.quantile(1.0 - FOUND_IN_NOTHING)
    }

    /// The smallest step that is detected 99 times in 100: with a random difference added, it still exceeds the
    /// threshold.
    pub(super) fn smallest(&self) -> Option<f64> {
        Some(self.critical()? - self.quantile(MISSED)?)
    }

    /// Number of positions at which a step of this size would be detected, with this threshold.
    pub(super) fn found(&self, step: f64, critical: f64) -> DetectionCount {
        let found = self.0.iter().filter(|chance| *chance + step > critical).count();
        DetectionCount { found: u64::try_from(found).unwrap_or(u64::MAX), of: length(&self.0) }
    }

    /// The least difference that this share does not exceed.
    fn quantile(&self, share: f64) -> Option<f64> {
        let count = length(&self.0);
        let rank = if count > 0 { nearest_rank(share, count) } else { 1 };
        self.0.get(usize::try_from(rank).ok()? - 1).copied()
    }
}

/// The difference between one third and the rest, for every position of the third.
fn everywhere(series: &[f64]) -> Vec<f64> {
    let third = series.len() / 3;
    let mut turned = series.to_vec();
    let at_a_place = |_: &f64| {
        turned.rotate_left(1);
        let (within, around) = turned.split_at(third);
        difference(around, within)
    };
    series.iter().filter_map(at_a_place).collect()
}

/// Number of tests, and of those that detected a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct DetectionCount {
    pub(super) found: u64,
    pub(super) of: u64,
}

impl DetectionCount {
    /// The sum of both.
    pub(super) fn with(self, other: Self) -> Self {
        Self { found: self.found + other.found, of: self.of + other.of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that are each nine tenths of the previous one plus noise: a series of them has much less
    /// information than as many independent values.
    fn drifting(count: usize, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut value = 0.0;
        let next = |_| {
            value = 0.9 * value + random.f64() - 0.5;
            value
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn the_smallest_step_is_found_nearly_always_and_nothing_nearly_never_though_neighbours_are_alike()
     {
        let series: Vec<_> = (0..40).map(|seed| drifting(150, seed)).collect();
        let (known, others) = series.split_at(20);
        let known = Chance::of(known.iter().map(Vec::as_slice));
        let others = Chance::of(others.iter().map(Vec::as_slice));
        let (critical, smallest) = (known.critical().unwrap(), known.smallest().unwrap());
        let share = |step| {
            let DetectionCount { found, of } = others.found(step, critical);
            assert_eq!(of, 3000);
            found * 100 / of
        };
        // Of 3,000 places that overlap, some sixty are independent.
        assert!(share(0.0) <= 5 && share(smallest) >= 95, "{} {}", share(0.0), share(smallest));
        assert!(share(smallest / 2.0) < 90 && share(2.0 * smallest) == 100);
    }

    #[test]
    fn differences_are_those_of_the_thirds() {
        let chance = Chance::of([&[0.0, 0.0, 0.0, 0.0, 9.0, 9.0][..]]);
        // At six places: 9, 4.5 twice, 0 less 4.5 three times... one and a half less where neither is in.
        assert_eq!(chance.0.len(), 6);
        assert_eq!((chance.critical(), chance.quantile(0.01)), (Some(9.0), Some(-4.5)));
        assert_eq!(chance.smallest(), Some(13.5));
    }

    #[test]
    fn series_that_are_short_or_do_not_vary_are_no_trouble() {
        assert_eq!(Chance::of([&[][..], &[1.0][..]]).smallest(), None);
        let sure = Chance::of([&[2.0; 9][..]]);
        assert_eq!((sure.critical(), sure.smallest()), (Some(0.0), Some(0.0)));
        assert_eq!(sure.found(0.0, 0.0), DetectionCount { found: 0, of: 9 });
        assert_eq!(sure.found(0.1, 0.0).found, 9);
    }
}
