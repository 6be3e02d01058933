//! Means of few runs, with confidence intervals.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::format::{NOTHING, length, real, signed};

/// Confidence level of the intervals.
const CONFIDENCE: f64 = 0.95;

/// Degrees of freedom with which Student's t distribution is the normal one, to six digits.
const MANY: f64 = 1e6;

/// A mean, and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The estimate.
    pub mean: f64,
    /// Half the width of the interval around the mean; none for fewer than two values.
    pub ci95: Option<f64>,
    /// Degrees of freedom of the interval; none if they are not known: the normal distribution is assumed then.
    #[serde(skip)]
    pub freedom: Option<f64>,
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
    /// A mean with this interval, whose degrees of freedom are not known.
    #[must_use]
    pub const fn new(mean: f64, ci95: Option<f64>) -> Self {
        Self { mean, ci95, freedom: None }
    }

    /// A number without uncertainty.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self::new(value, Some(0.0))
    }

    /// The mean of independent values, with an interval by Student's t; none without values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = real(length(values));
        let mean = mean(values)?;
        let ci95 = (values.len() > 1).then(|| {
            let variance = squares(values, mean) / (count - 1.0);
            t(count - 1.0) * (variance / count).sqrt()
        });
        Some(Self { mean, ci95, freedom: Some(count - 1.0) })
    }

    /// The mean of the middle 60 % of independent values, with the interval for a trimmed mean (Tukey and McLaughlin, "Less
    /// vulnerable confidence and significance procedures for location", 1963): for values of which a few are far off for a
    /// reason that is not asked. None without values.
    #[must_use]
    pub fn trimmed(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let cut = values.len() / 5; // at each end
        let middle = sorted.get(cut..values.len() - cut)?;
        let trimmed = mean(middle)?;
        let (count, kept) = (real(length(values)), real(length(middle)));
        let (least, most) = (*middle.first()?, *middle.last()?);
        let winsorized: Vec<_> = sorted.iter().map(|value| value.clamp(least, most)).collect();
        let ci95 = (middle.len() > 1).then(|| {
            let deviation = deviation(&winsorized).unwrap_or(0.0);
            t(kept - 1.0) * deviation * count.sqrt() / kept
        });
        Some(Self { mean: trimmed, ci95, freedom: Some(kept - 1.0) })
    }

    /// A statistic of all repetitions, with an interval by the jackknife: from the statistic without each of them (Quenouille,
    /// "Notes on bias in estimation", 1956; Tukey, "Bias and confidence in not-quite large samples", 1958). None if `of` has
    /// no value for all of them.
    pub fn jackknife<T: Clone>(
        repetitions: &[T],
        of: impl Fn(&[T]) -> Option<f64>,
    ) -> Option<Self> {
        let all = of(repetitions)?;
        let count = real(length(repetitions));
        let without = |left_out: usize| {
            let others = repetitions.iter().enumerate().filter(|(index, _)| *index != left_out);
            let others: Vec<_> = others.map(|(_, it)| it.clone()).collect();
            Some(count * all - (count - 1.0) * of(&others)?)
        };
        let pseudo: Option<Vec<_>> = (0..repetitions.len()).map(without).collect();
        let spread = pseudo.and_then(|values| Self::of(&values));
        let (ci95, freedom) = spread.map_or((None, None), |it| (it.ci95, it.freedom));
        Some(Self { mean: all, ci95, freedom })
    }

    /// This interval around another mean.
    #[must_use]
    pub const fn around(self, mean: f64) -> Self {
        Self { mean, ..self }
    }

    /// The same estimate as the best of `count`: with an interval that has its confidence whichever of them is the best
    /// (Bonferroni).
    #[must_use]
    pub fn of_best(self, count: f64) -> Self {
        let freedom = self.freedom.unwrap_or(MANY);
        let tail = (1.0 - CONFIDENCE) / 2.0 / count.max(1.0);
        let wide = StudentsT::new(0.0, 1.0, freedom);
        let wide = wide.map_or(f64::INFINITY, |it| it.inverse_cdf(1.0 - tail));
        Self { ci95: self.ci95.map(|ci95| ci95 * wide / t(freedom)), ..self }
    }

    /// The estimate in other units.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let ci95 = self.ci95.map(|ci95| ci95 * factor.abs());
        Self { mean: self.mean * factor, ci95, ..self }
    }

    /// Probability of a mean at least that far from zero if the true mean is zero (two-sided t test); none without an
    /// interval.
    #[must_use]
    pub fn p_value(&self) -> Option<f64> {
        let ci95 = self.ci95?;
        if ci95 <= 0.0 {
            return Some(if self.mean == 0.0 { 1.0 } else { 0.0 });
        }
        let freedom = self.freedom.unwrap_or(MANY);
        let statistic = self.mean.abs() / ci95 * t(freedom);
        let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
        Some(2.0 * distribution.sf(statistic))
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
pub fn decimal(Estimate { mean, ci95, .. }: Estimate, decimals: usize) -> String {
    let text = |value: f64| signed(&format!("{value:.decimals$}"));
    match ci95 {
        _ if !mean.is_finite() => NOTHING.to_owned(),
        Some(ci95) => format!("{} ± {}", text(mean), text(ci95)),
        None => text(mean),
    }
}

/// A coefficient of correlation.
pub fn coefficient(Estimate { mean, ci95, .. }: Estimate) -> String {
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
        let Estimate { mean, ci95, .. } = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((mean - 2.0).abs() < 1e-12 && (ci95.unwrap() - 2.484).abs() < 1e-3);
        assert!((deviation(&[1.0, 2.0, 3.0]).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn jackknife_of_a_mean_is_its_t_interval() {
        let values = [1.0, 2.0, 4.0, 9.0];
        let by_jackknife = Estimate::jackknife(&values, mean).unwrap();
        let by_t = Estimate::of(&values).unwrap();
        assert!((by_jackknife.mean - by_t.mean).abs() < 1e-12);
        assert!((by_jackknife.ci95.unwrap() - by_t.ci95.unwrap()).abs() < 1e-9);
        assert_eq!(Estimate::jackknife(&[1.0], mean).unwrap().ci95, None);
        assert_eq!(Estimate::jackknife(&[], mean), None);
    }

    #[test]
    fn trimmed_mean_ignores_values_that_are_far_off() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1e6];
        let Estimate { mean, ci95, freedom } = Estimate::trimmed(&values).unwrap();
        assert_eq!((mean, freedom), (5.5, Some(5.0)));
        // Winsorized 3 3 3 4 5 6 7 8 8 8: squares 42.5, variance 42.5 / 9; standard error deviation / (0.6 sqrt(10)).
        let error = (42.5_f64 / 9.0).sqrt() / (0.6 * 10.0_f64.sqrt());
        assert!((ci95.unwrap() - 2.571 * error).abs() < 1e-3, "{ci95:?}");
        let few = [1.0, 2.0, 4.0];
        assert_eq!(Estimate::trimmed(&few), Estimate::of(&few));
        assert_eq!((Estimate::trimmed(&[1.0]).unwrap().ci95, Estimate::trimmed(&[])), (None, None));
    }

    #[test]
    fn one_value_is_sure_of_nothing() {
        let one = Estimate::of(&[5.0]).unwrap();
        assert_eq!((one.ci95, one.sign(), deviation(&[5.0])), (None, Sign::Open, None));
        assert_eq!((Estimate::of(&[]), mean(&[]), deviation(&[])), (None, None, None));
    }

    #[test]
    fn p_value_is_that_of_the_t_test() {
        // t = 2 / (1 / sqrt(3)) = 3.464 with 2 degrees of freedom.
        let p_value = Estimate::of(&[1.0, 2.0, 3.0]).unwrap().p_value().unwrap();
        assert!((p_value - 0.0742).abs() < 1e-4, "{p_value}");
        assert_eq!(Estimate::of(&[1.0]).unwrap().p_value(), None);
        assert_eq!(
            [0.0, 3.0].map(|value| Estimate::exact(value).p_value()),
            [Some(1.0), Some(0.0)]
        );
        let at_the_end = Estimate::new(1.0, Some(1.0)).p_value().unwrap();
        assert!((at_the_end - 0.05).abs() < 1e-3, "{at_the_end}");
    }

    #[test]
    fn sign_is_open_if_interval_includes_zero() {
        let sign = |values: &[f64]| Estimate::of(values).unwrap().sign();
        assert_eq!(sign(&[1.0, 1.1, 0.9]), Sign::Above);
        assert_eq!(sign(&[-1.0, -1.1, -0.9]), Sign::Below);
        assert_eq!(sign(&[1.0, -1.1, 0.9]), Sign::Open);
    }

    #[test]
    fn digits_of_mean_and_interval_are_in_groups_of_three() {
        let thin = |text: &str| text.replace(' ', "\u{202f}").replace("\u{202f}±\u{202f}", " ± ");
        let rate = Estimate::new(-1_208_781.4, Some(237_348.0));
        assert_eq!(decimal(rate, 0), thin("\u{2212}1 208 781 ± 237 348"));
        assert_eq!(decimal(Estimate::new(4_061.13, None), 1), thin("4 061.1"));
    }

    #[test]
    fn coefficients_have_their_interval() {
        let rho = Estimate::new(-0.25, Some(0.5));
        assert_eq!(coefficient(rho), "\u{2212}0.250 ± 0.500");
    }
}
