//! Claims of the paper and of this project about loss in the softIRQ, and their verdicts here.

use super::SoftirqRound;
use super::contender::Contender;
use super::scale::SoftirqScale;
use crate::experiment::{Claim, Estimate, Runs, mean};

/// Loss that counts as no more than another's, in percentage points above it.
const NO_MORE: f64 = 1.0;

/// Loss of the other capture from which ours is to lose at most a tenth of it, in percent.
const MUCH: f64 = 10.0;

/// All claims, with verdicts from complete repetitions.
pub(in crate::loss) fn claims(runs: &Runs<SoftirqRound>, size: SoftirqScale) -> Vec<Claim> {
    let losses = Losses {
        conditions: size.frame_bytes.len() * size.gaps_ns.len(),
        cells: runs.responses(|run| run.first().map(SoftirqRound::loss_percent)),
    };
    vec![
        losses.fewer(
            "fewer packets are lost with raw stamps that are converted elsewhere than with generic ktime capture",
            [Contender::RAW_CAPTURE, Contender::GENERIC],
        ),
        losses.fewer(
            "a raw stamp of each packet costs the softIRQ fewer packets than one of ktime",
            [Contender::RAW, Contender::KTIME],
        ),
        losses.no_more(),
        losses.tenth(),
    ]
}

/// The loss of each cell, by repetition.
struct Losses {
    /// Conditions of each contender.
    conditions: usize,
    /// By contender, then by condition.
    cells: Vec<Vec<f64>>,
}

impl Losses {
    /// The paper's claim that the first of two loses fewer packets, by the mean over all conditions.
    fn fewer(&self, claim: &str, [first, second]: [usize; 2]) -> Claim {
        let [of_first, of_second] = [first, second].map(|it| self.by_repetition(it));
        let lead: Vec<_> = of_first.iter().zip(&of_second).map(|(a, b)| b - a).collect();
        let means = mean(&of_first).zip(mean(&of_second));
        let numbers = means.map(|(a, b)| format!("{a:.2} % against {b:.2} % of all packets"));
        Claim::of(claim, vec![Estimate::of(&lead)], &numbers.unwrap_or_default())
    }

    /// Our claim of every condition: neither of our captures loses more than the generic one.
    fn no_more(&self) -> Claim {
        let lead = |ours: &f64, generic: &f64| generic - ours + NO_MORE;
        let leads: Vec<_> = self.pairs().map(|[ours, generic]| each(ours, generic, lead)).collect();
        let most = self.pairs().filter_map(|[ours, generic]| Some(mean(ours)? - mean(generic)?));
        let most = most.reduce(f64::max);
        let numbers =
            most.map(|most| format!("at most {most:.2} points more in {} cells", leads.len()));
        let claim = format!(
            "at the same load, ring/kernel and trace-pass/raw lose no more than generic ktime capture (here: by \
             {NO_MORE} point or more)"
        );
        Claim::goal(claim, leads, &numbers.unwrap_or_default())
    }

    /// Our claim of the conditions under which the generic capture loses much.
    fn tenth(&self) -> Claim {
        let is_much = |[_, generic]: &[&[f64]; 2]| mean(generic).is_some_and(|it| it >= MUCH);
        let pairs: Vec<_> = self.pairs().filter(is_much).collect();
        let lead = |ours: &f64, generic: &f64| generic / 10.0 - ours;
        let leads = pairs.iter().map(|[ours, generic]| each(ours, generic, lead)).collect();
        let number = |[ours, generic]: &[&[f64]; 2]| {
            Some(format!("{:.2} % against {:.2} %", mean(ours)?, mean(generic)?))
        };
        let numbers: Vec<_> = pairs.iter().filter_map(number).collect();
        let claim = format!(
            "where generic ktime capture loses {MUCH} % or more, ring/kernel and trace-pass/raw lose at most a tenth of \
             that"
        );
        Claim::goal(claim, leads, &numbers.join(", "))
    }

    /// Each of our captures with the generic one, under each condition.
    fn pairs(&self) -> impl Iterator<Item = [&[f64]; 2]> {
        let both = |ours| self.of(ours).iter().zip(self.of(Contender::GENERIC));
        let pairs = [Contender::RING, Contender::RAW_CAPTURE].into_iter().flat_map(both);
        pairs.map(|(ours, generic)| [ours.as_slice(), generic.as_slice()])
    }

    /// The losses of a contender, by condition.
    fn of(&self, contender: usize) -> &[Vec<f64>] {
        let first = contender * self.conditions;
        self.cells.get(first..first + self.conditions).unwrap_or_default()
    }

    /// The mean loss of a contender over all conditions.
    fn by_repetition(&self, contender: usize) -> Vec<f64> {
        let cells = self.of(contender);
        let repetitions = cells.iter().map(Vec::len).min().unwrap_or(0);
        let of = |repetition| mean(&cells.iter().map(|cell| cell[repetition]).collect::<Vec<_>>());
        (0..repetitions).filter_map(of).collect()
    }
}

/// The lead within each repetition.
fn each(ours: &[f64], generic: &[f64], lead: impl Fn(&f64, &f64) -> f64) -> Option<Estimate> {
    Estimate::of(
        &ours.iter().zip(generic).map(|(ours, generic)| lead(ours, generic)).collect::<Vec<_>>(),
    )
}
