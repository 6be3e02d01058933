//! Correlation of two quantities.

use wirestamp_report::estimate::{mean, squares};

/// Pearson's correlation coefficient, from -1 to 1. `None` for fewer than two pairs, or if a quantity does
/// not vary.
#[must_use]
pub fn pearson(pairs: &[(f64, f64)]) -> Option<f64> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (mean_a, mean_b) = (mean(&a)?, mean(&b)?);
    let product: f64 = pairs.iter().map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
    let scale = (squares(&a, mean_a) * squares(&b, mean_b)).sqrt();
    (pairs.len() > 1 && scale > 0.0).then(|| product / scale)
}

/// Spearman's coefficient: Pearson's coefficient of the ranks. A few huge values have little influence on it
/// (Kendall, "Rank Correlation Methods", chapter 1).
#[must_use]
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let ranks: Vec<_> = ranks(&a).into_iter().zip(ranks(&b)).collect();
    pearson(&ranks)
}

/// The rank of each value from the least on; equal ones share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0.0;
    for equal in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        let count = equal.iter().map(|_| 1.0).sum::<f64>();
        equal.iter().for_each(|place| ranks[*place] = below + (count - 1.0) / 2.0);
        below += count;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_together_wholly_and_noise_not_at_all() {
        let line: Vec<_> = (0..50).map(|n| (f64::from(n), 7.0 - 2.0 * f64::from(n))).collect();
        assert!((pearson(&line).unwrap() + 1.0).abs() < 1e-12);
        assert!((spearman(&line).unwrap() + 1.0).abs() < 1e-12);
        let mut random = fastrand::Rng::with_seed(3);
        let noise: Vec<_> = (0..10_000).map(|_| (random.f64(), random.f64())).collect();
        assert!(pearson(&noise).unwrap().abs() < 0.03 && spearman(&noise).unwrap().abs() < 0.03);
    }

    #[test]
    fn ranks_go_together_on_any_rising_curve_and_one_outlier_does_not_decide() {
        let curve: Vec<_> = (0..50).map(|n| (f64::from(n), f64::from(n).powi(5))).collect();
        assert!((spearman(&curve).unwrap() - 1.0).abs() < 1e-12);
        assert!(pearson(&curve).unwrap() < 0.9);
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
    }

    #[test]
    fn what_does_not_vary_goes_together_with_nothing() {
        assert_eq!(pearson(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(spearman(&[(1.0, 2.0)]), None);
        assert_eq!(pearson(&[]), None);
    }
}
