//! Effects of levels on a response, and interactions of pairs of levels.
//!
//! Formulas for balanced designs with replications: Jain, "The Art of Computer Systems Performance
//! Analysis" (1991), chapters 21 and 22. The variance of errors is computed from the runs of each cell.

use serde::Serialize;
use wirestamp_report::estimate::{self, Estimate};

use super::design::{Cell, Design};
use wirestamp_report::format::{length, real};

/// Effect of levels on the response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The levels, each with the name of its factor: one for a main effect, two for an interaction.
    pub levels: Vec<(String, String)>,
    /// Difference of the response in its unit: from the mean of all runs, or for an interaction from the sum
    /// of both main effects.
    pub effect: Estimate,
}

/// The main effects of all levels and then the interactions of all pairs of two factors, from the
/// responses of each cell in the order of [`Design::cells`]. Empty if a cell has no response, or if the
/// cells have different numbers of responses.
#[must_use]
pub fn effects(design: &Design, responses: &[Vec<f64>]) -> Vec<Effect> {
    let Some(runs) = Runs::of(design, responses) else { return Vec::new() };
    let factors = 0..design.factors.len();
    let levels = |factor: usize| (0..design.factors[factor].levels.len()).map(move |l| (factor, l));
    let main = factors.clone().flat_map(levels).map(|level| runs.effect(design, &[level]));
    let pairs = factors.clone().flat_map(|a| factors.clone().skip(a + 1).map(move |b| (a, b)));
    let both = pairs.flat_map(|(a, b)| levels(a).flat_map(move |x| levels(b).map(move |y| [x, y])));
    main.chain(both.map(|pair| runs.effect(design, &pair))).collect()
}

/// A factor, and one of its levels.
type Level = (usize, usize);

/// The responses of a balanced design.
struct Runs<'a> {
    cells: Vec<(Cell, &'a [f64])>,
    /// Of one run, in squares of the unit; none without repetitions.
    variance: Option<f64>,
    /// Degrees of freedom of the variance.
    freedom: f64,
}

impl<'a> Runs<'a> {
    fn of(design: &Design, responses: &'a [Vec<f64>]) -> Option<Self> {
        let cells = design.cells();
        let repetitions = responses.first()?.len();
        let is_balanced = responses.iter().all(|cell| cell.len() == repetitions);
        if repetitions == 0 || cells.len() != responses.len() || !is_balanced {
            return None;
        }
        let error = |cell: &Vec<f64>| Some(estimate::squares(cell, estimate::mean(cell)?));
        let errors: f64 = responses.iter().filter_map(error).sum();
        let freedom = real(length(&cells)) * (real(length(&responses[0])) - 1.0);
        let variance = (freedom > 0.0).then(|| errors / freedom);
        let cells = cells.into_iter().zip(responses.iter().map(Vec::as_slice)).collect();
        Some(Self { cells, variance, freedom })
    }

    /// The effect of a level, or the interaction of two.
    fn effect(&self, design: &Design, levels: &[Level]) -> Effect {
        let (all, runs) = self.mean(&[]);
        // For two levels: mean of both, minus the mean of each alone, plus the mean of all, subtracted twice before.
        let (effect, share) = match levels {
            [a, b] => {
                let [both, a, b] = [levels, &[*a], &[*b]].map(|these| self.mean(these));
                let share = 1.0 / both.1 - 1.0 / a.1 - 1.0 / b.1 + 1.0 / runs;
                (both.0 - a.0 - b.0 + all, share)
            }
            _ => {
                let (mean, of) = self.mean(levels);
                (mean - all, 1.0 / of - 1.0 / runs)
            }
        };
        let error = |variance: f64| estimate::t(self.freedom) * (variance * share.max(0.0)).sqrt();
        let name = |&(factor, level): &Level| {
            let factor = &design.factors[factor];
            (factor.name.clone(), factor.levels[level].clone())
        };
        Effect {
            levels: levels.iter().map(name).collect(),
            effect: Estimate {
                mean: effect,
                ci95: self.variance.map(error),
                freedom: Some(self.freedom),
            },
        }
    }

    /// The mean of the runs that have these levels, and how many there are.
    fn mean(&self, levels: &[Level]) -> (f64, f64) {
        let has = |cell: &Cell| levels.iter().all(|(factor, level)| cell.0[*factor] == *level);
        let cells = self.cells.iter().filter(|(cell, _)| has(cell));
        let runs: Vec<f64> = cells.flat_map(|(_, responses)| responses.iter().copied()).collect();
        (estimate::mean(&runs).unwrap_or(0.0), real(length(&runs)))
    }
}

/// A difference of logarithms as a factor, with the ends of its interval.
pub(crate) fn factor(Estimate { mean, ci95, .. }: Estimate) -> String {
    let ci95 = ci95.map_or_else(String::new, |ci95| {
        format!(" ({:.2} to {:.2})", (mean - ci95).exp(), (mean + ci95).exp())
    });
    format!("{:.2}{ci95}", mean.exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Factor;

    fn design() -> Design {
        let factors = vec![Factor::new("a", ["0", "1"]), Factor::new("b", ["0", "1"])];
        Design { name: "test".to_owned(), factors, repetitions: 3, constants: Vec::new() }
    }

    #[test]
    fn effects_and_errors_are_those_of_the_worked_example() {
        // Jain, example 18.1 and 18.4: 41, 9.5 (b), 21.5 (a) and 5 (ab), s = 3.57 (SSE 102, 8
        // degrees of freedom), each effect with a deviation of 1.03.
        let responses = [
            vec![15.0, 18.0, 12.0],
            vec![25.0, 28.0, 19.0],
            vec![45.0, 48.0, 51.0],
            vec![75.0, 75.0, 81.0],
        ];
        let effects = effects(&design(), &responses);
        let found: Vec<_> = effects.iter().map(|effect| effect.effect.mean).collect();
        assert_eq!(found, [-21.5, 21.5, -9.5, 9.5, 5.0, -5.0, -5.0, 5.0]);
        let error = (102.0_f64 / 8.0 / 12.0).sqrt();
        for effect in &effects {
            let ci95 = effect.effect.ci95.unwrap();
            assert!((ci95 / estimate::t(8.0) - error).abs() < 1e-9, "{effect:?}");
        }
        let last = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "1".to_owned())];
        assert_eq!(effects[7].levels, last);
    }

    #[test]
    fn one_repetition_has_effects_of_unknown_error_and_gaps_have_none() {
        let single = effects(&design(), &[vec![1.0], vec![1.0], vec![3.0], vec![3.0]]);
        assert_eq!((single[1].effect.mean, single[1].effect.ci95), (1.0, None));
        assert_eq!(effects(&design(), &[vec![1.0], vec![], vec![3.0], vec![3.0]]), []);
        assert_eq!(effects(&design(), &[]), []);
    }

    #[test]
    fn a_difference_of_logarithms_is_a_factor() {
        let twice = Estimate::new(2_f64.ln(), Some(2_f64.ln()));
        assert_eq!(factor(twice), "2.00 (1.00 to 4.00)");
    }
}
