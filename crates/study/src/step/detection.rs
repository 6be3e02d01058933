//! Whether a step is in a series: Welch's test of the means within and around it.
//!
//! The values are medians of packets in a row: neighbours that are alike within a batch do not count as
//! independent (batch means: Law, "Simulation Modeling and Analysis", section 9.5.3), and a packet that
//! met an interruption does not hide all others.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::experiment::{deviation, mean};
use crate::report::format::{length, real};

/// How rarely a step is found where there is none, both ways together, and how rarely one of the
/// smallest size is missed.
const ERROR: f64 = 0.01;

/// How far two means are apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    /// By how much the second is larger.
    pub(super) mean: f64,
    /// The standard error of that.
    error: f64,
    /// Its degrees of freedom.
    freedom: f64,
}

impl Difference {
    /// From the mean of the values `around` to that of those `within`; none unless both have two.
    ///
    /// Welch, "The generalization of Student's problem when several different population variances
    /// are involved" (1947).
    pub(super) fn of(around: &[f64], within: &[f64]) -> Option<Self> {
        let part = |values: &[f64]| {
            let count = real(length(values));
            Some((mean(values)?, deviation(values)?.powi(2) / count, count - 1.0))
        };
        let ((before, a, of_a), (raised, b, of_b)) = (part(around)?, part(within)?);
        let freedom = (a + b).powi(2) / (a * a / of_a + b * b / of_b);
        // Where nothing varies, everything is known.
        let freedom = if freedom.is_finite() { freedom } else { of_a + of_b };
        Some(Self { mean: raised - before, error: (a + b).sqrt(), freedom })
    }

    /// Half the width of the interval that holds the true difference with 99 % confidence.
    pub(super) fn ci99(&self) -> f64 {
        self.quantile(1.0 - ERROR / 2.0) * self.error
    }

    /// Whether the second is larger, with 99 % confidence that they are not the same.
    pub(super) fn is_found(&self) -> bool {
        self.mean > self.ci99()
    }

    /// The smallest difference that is found 99 times in 100, by values that vary as these do.
    pub(super) fn smallest(&self) -> f64 {
        self.ci99() + self.quantile(1.0 - ERROR) * self.error
    }

    fn quantile(&self, share: f64) -> f64 {
        let quantile = |t: StudentsT| t.inverse_cdf(share);
        StudentsT::new(0.0, 1.0, self.freedom).map_or(f64::INFINITY, quantile)
    }
}

/// Of how many tests a step was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Found {
    pub(super) found: u64,
    pub(super) of: u64,
}

impl Found {
    /// Puts a step of this size into a series that has none, at every place in turn, as if the series
    /// were a ring, and looks for it: neighbours stay neighbours, so that a series that drifts shows
    /// what that does to the test.
    pub(super) fn everywhere(series: &[f64], step: f64) -> Self {
        let third = series.len() / 3;
        let mut turned = series.to_vec();
        let mut found = Self::default();
        for _ in 0..series.len() {
            turned.rotate_left(1);
            let (within, around) = turned.split_at(third);
            let raised: Vec<_> = within.iter().map(|value| value + step).collect();
            if let Some(difference) = Difference::of(around, &raised) {
                found.found += u64::from(difference.is_found());
                found.of += 1;
            }
        }
        found
    }

    /// Both together.
    pub(super) fn with(self, other: Self) -> Self {
        Self { found: self.found + other.found, of: self.of + other.of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that are spread as a normal distribution, with a deviation of 1: sums of twelve equal
    /// ones.
    fn noise(count: usize) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(7);
        (0..count).map(|_| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0).collect()
    }

    #[test]
    fn the_difference_is_that_of_the_worked_example() {
        // Means 2 and 12, variances 1 and 4, three values each: error sqrt(5/3), and by Welch's formula
        // (5/3)^2 / ((1/9 + 16/9) / 2) = 2.94 degrees of freedom.
        let difference = Difference::of(&[1.0, 2.0, 3.0], &[10.0, 12.0, 14.0]).unwrap();
        assert!((difference.mean - 10.0).abs() < 1e-12);
        assert!((difference.error - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((difference.freedom - 2.941).abs() < 1e-3, "{difference:?}");
        // The table's quantile for 3 degrees of freedom is 5.841, and this has fewer.
        assert!(difference.ci99() > 5.841 * difference.error && difference.is_found());
    }

    #[test]
    fn the_smallest_step_is_found_nearly_always_and_nothing_nearly_never() {
        let series = noise(1500);
        let chunks = || series.chunks(150);
        let smallest = |run: &[f64]| Difference::of(&run[50..], &run[..50]).unwrap().smallest();
        let all = |found: Found, of: Found| found.with(of);
        let power = chunks().map(|run| Found::everywhere(run, smallest(run))).reduce(all).unwrap();
        let nothing = chunks().map(|run| Found::everywhere(run, 0.0)).reduce(all).unwrap();
        assert_eq!((power.of, nothing.of), (1500, 1500));
        // 1485 are expected, and 7 of nothing; rotations of a run are alike, so that these scatter.
        assert!(power.found > 1440 && nothing.found < 60, "{power:?} {nothing:?}");
        let half = chunks().map(|run| Found::everywhere(run, smallest(run) / 2.0)).reduce(all);
        assert!(half.unwrap().found < 1200, "{half:?}");
    }

    #[test]
    fn series_that_are_short_or_do_not_vary_are_no_trouble() {
        assert_eq!(Difference::of(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(Found::everywhere(&[], 1.0), Found::default());
        let sure = Difference::of(&[1.0, 1.0], &[2.0, 2.0]).unwrap();
        assert!(sure.is_found() && sure.smallest() < 1e-12);
        assert!(!Difference::of(&[1.0, 1.0], &[1.0, 1.0]).unwrap().is_found());
    }
}
