//! Means of few runs, with confidence intervals.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::format::{NOTHING, length, real, signed};

/// Confidence level of the intervals.
const CONFIDENCE: f64 = 0.95;

/// A mean, and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate.
    pub mean: f64,
    /// Half the width of the interval around the mean; none for fewer than two values.
    pub ci95: Option<f64>,
}

/// Sign of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// The whole interval is above zero.
    Above,
    /// The whole interval is below zero.
    Below,
    /// The interval includes zero: the data are too noisy, or there is no difference.
    Open,
}

impl Estimate {
    /// The mean of independent values, with an interval by Student's t; none without values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = real(length(values));
        let mean = mean(values)?;
        let ci95 = (values.len() > 1).then(|| {
            let variance = squares(values, mean) / (count - 1.0);
            t(count - 1.0) * (variance / count).sqrt()
        });
        Some(Self { mean, ci95 })
    }

    /// The estimate as formatted by `text`, with its interval if there is one.
    pub fn text(&self, text: impl Fn(f64) -> String) -> String {
        match self.ci95 {
            _ if !self.mean.is_finite() => NOTHING.to_owned(),
            Some(ci95) => format!("{} ± {}", text(self.mean), text(ci95)),
            None => text(self.mean),
        }
    }

    /// Sign of the interval.
    #[must_use]
    pub fn sign(&self) -> Sign {
        match self.ci95 {
            Some(ci95) if self.mean - ci95 > 0.0 => Sign::Above,
            Some(ci95) if self.mean + ci95 < 0.0 => Sign::Below,
            _ => Sign::Open,
        }
    }
}

/// The arithmetic mean; none without values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / real(length(values)))
}

/// The standard deviation of a sample (with n - 1); none for fewer than two values.
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    let squares = squares(values, mean(values)?);
    (values.len() > 1).then(|| (squares / (real(length(values)) - 1.0)).sqrt())
}

/// Sum of the squared deviations from `mean`.
pub fn squares(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The quantile of Student's t distribution for a two-sided 95 % interval with `freedom` degrees of
/// freedom; infinite for none.
pub fn t(freedom: f64) -> f64 {
    let quantile = |t: StudentsT| t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE));
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, quantile)
}

/// An estimate with its 95 % confidence interval, rounded to `decimals` decimals.
pub fn decimal(Estimate { mean, ci95 }: Estimate, decimals: usize) -> String {
    match ci95 {
        _ if !mean.is_finite() => NOTHING.to_owned(),
        Some(ci95) => signed(&format!("{mean:.decimals$}")) + &format!(" ± {ci95:.decimals$}"),
        None => signed(&format!("{mean:.decimals$}")),
    }
}

/// A coefficient of correlation.
pub fn coefficient(Estimate { mean, ci95 }: Estimate) -> String {
    let ci95 = ci95.map_or_else(String::new, |ci95| format!(" ± {ci95:.3}"));
    format!("{mean:.3}").replace('-', "\u{2212}") + &ci95
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column 0.975.
        for (freedom, quantile) in [(1.0, 12.706), (2.0, 4.303), (9.0, 2.262), (100.0, 1.984)] {
            assert!((t(freedom) - quantile).abs() < 5e-4, "{freedom}: {}", t(freedom));
        }
        assert!(t(0.0).is_infinite());
    }

    #[test]
    fn an_interval_is_that_of_the_textbook() {
        // Deviation 1, standard error 1/sqrt(3), t of 2 degrees of freedom.
        let Estimate { mean, ci95 } = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((mean - 2.0).abs() < 1e-12 && (ci95.unwrap() - 2.484).abs() < 1e-3);
        assert!((deviation(&[1.0, 2.0, 3.0]).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_value_is_sure_of_nothing() {
        let one = Estimate::of(&[5.0]).unwrap();
        assert_eq!((one.ci95, one.sign(), deviation(&[5.0])), (None, Sign::Open, None));
        assert_eq!((Estimate::of(&[]), mean(&[]), deviation(&[])), (None, None, None));
    }

    #[test]
    fn sign_is_open_if_interval_includes_zero() {
        let sign = |values: &[f64]| Estimate::of(values).unwrap().sign();
        assert_eq!(sign(&[1.0, 1.1, 0.9]), Sign::Above);
        assert_eq!(sign(&[-1.0, -1.1, -0.9]), Sign::Below);
        assert_eq!(sign(&[1.0, -1.1, 0.9]), Sign::Open);
    }

    #[test]
    fn coefficients_have_their_interval() {
        let rho = Estimate { mean: -0.25, ci95: Some(0.5) };
        assert_eq!(coefficient(rho), "\u{2212}0.250 ± 0.500");
    }
}
