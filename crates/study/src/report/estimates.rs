//! Estimates as text, with their intervals of 95 % confidence.

use super::Table;
use super::format::micros;
use crate::experiment::{Effect, Estimate};

/// Nanoseconds as microseconds, for a row of many.
pub(crate) fn micros_with_confidence(Estimate { mean, ci95 }: Estimate) -> String {
    let ci95 = ci95.map_or_else(String::new, |ci95| format!(" ± {}", micros(ci95)));
    micros(mean) + &ci95
}

/// A coefficient of correlation.
pub(crate) fn coefficient(Estimate { mean, ci95 }: Estimate) -> String {
    let ci95 = ci95.map_or_else(String::new, |ci95| format!(" ± {ci95:.3}"));
    format!("{mean:.3}").replace('-', "\u{2212}") + &ci95
}

/// Effects on the natural logarithm of `what`, as factors of it.
pub(crate) fn factors(what: &str, effects: &[Effect]) -> Table {
    let row = |effect: &Effect| {
        let levels: Vec<_> = effect.levels.iter().map(|(_, level)| level.as_str()).collect();
        vec![levels.join(" with "), factor(effect.effect)]
    };
    Table::new(
        &format!("Main effects, and interactions of two: by what {what} is multiplied"),
        &["", "times that of all runs (95 % confidence)"],
        effects.iter().map(row).collect(),
    )
}

/// A difference of logarithms as a factor, with the ends of its interval.
fn factor(Estimate { mean, ci95 }: Estimate) -> String {
    let ci95 = ci95.map_or_else(String::new, |ci95| {
        format!(" ({:.2} to {:.2})", (mean - ci95).exp(), (mean + ci95).exp())
    });
    format!("{:.2}{ci95}", mean.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_have_their_interval_where_there_is_one() {
        let sure = Estimate { mean: -1_500.0, ci95: Some(200.0) };
        assert_eq!(micros_with_confidence(sure), "\u{2212}1.500 ± 0.200");
        assert_eq!(micros_with_confidence(Estimate { ci95: None, ..sure }), "\u{2212}1.500");
        let rho = Estimate { mean: -0.25, ci95: Some(0.5) };
        assert_eq!(coefficient(rho), "\u{2212}0.250 ± 0.500");
    }

    #[test]
    fn a_difference_of_logarithms_is_a_factor() {
        let twice = Estimate { mean: 2_f64.ln(), ci95: Some(2_f64.ln()) };
        assert_eq!(factor(twice), "2.00 (1.00 to 4.00)");
        let levels = vec![("a".to_owned(), "x".to_owned()), ("b".to_owned(), "y".to_owned())];
        let table = factors("it", &[Effect { levels, effect: twice }]);
        assert_eq!(table.rows, [["x with y", "2.00 (1.00 to 4.00)"]]);
    }
}
