//! Claims of the paper, and their verdicts here.

use super::findings::loss_percent;
use super::paper::Method;
use super::round::Round;
use super::rounds::{CORES, Condition, LossStudyScale};
use crate::experiment::{Claim, Estimate, Runs, mean};
use wirestamp_report::format::real;

/// Claims, each with two ways to capture, the first of which loses less according to the paper.
const MEASURES: [(&str, Method, Method); 2] = [
    (
        "fewer packets are lost with raw stamps that are converted on another core than with generic \
         ktime capture",
        Method::Raw,
        Method::Generic,
    ),
    (
        "that is due to the stamps, so that in one and the same capture raw ones lose less than the \
         kernel's",
        Method::Raw,
        Method::Kernel,
    ),
];

/// The paper's claims with verdicts from complete repetitions.
pub(super) fn claims(runs: &Runs<Round>, size: LossStudyScale) -> Vec<Claim> {
    let losses = Losses { runs, size, cells: runs.responses(loss_percent) };
    let claim = |(claim, ours, other): (&str, _, _)| losses.claim(claim, ours, other);
    MEASURES.into_iter().map(claim).collect()
}

/// The loss of each cell, by repetition.
struct Losses<'a> {
    runs: &'a Runs<Round>,
    size: LossStudyScale,
    cells: Vec<Vec<f64>>,
}

impl Losses<'_> {
    /// Compares the mean loss of both over all sizes and gaps, on an idle and on a busy core. A core on which
    /// neither loses a packet has no influence on the verdict.
    fn claim(&self, claim: &str, ours: Method, other: Method) -> Claim {
        let (mut leads, mut words) = (Vec::new(), Vec::new());
        for (busy, core) in [false, true].into_iter().zip(CORES) {
            let [ours, other] = [ours, other].map(|method| self.by_repetition(method, busy));
            let Some([of_ours, of_other]) =
                mean(&ours).zip(mean(&other)).map(|(ours, other)| [ours, other])
            else {
                continue;
            };
            if of_ours + of_other > 0.0 {
                let lead = ours.iter().zip(&other).map(|(ours, other)| other - ours);
                leads.push(Estimate::of(&lead.collect::<Vec<_>>()));
                words.push(format!(
                    "{of_ours:.2} % against {of_other:.2} % of all packets on a core that is {core}"
                ));
            } else {
                words.push(format!("neither loses one on a core that is {core}"));
            }
        }
        Claim::of(claim, leads, &words.join(", "))
    }

    /// The mean loss over all sizes and gaps.
    fn by_repetition(&self, method: Method, busy: bool) -> Vec<f64> {
        let cells: Vec<_> = self.runs.design.cells();
        let is_meant = |condition: &Condition| {
            Method::ALL.get(condition.method) == Some(&method) && condition.busy_core == busy
        };
        let meant = cells.iter().zip(&self.cells);
        let meant = meant.filter(|(cell, _)| is_meant(&self.size.condition(cell)));
        let meant: Vec<_> = meant.map(|(_, losses)| losses).collect();
        let repetitions = meant.iter().map(|losses| losses.len()).min().unwrap_or(0);
        let count = real(u64::try_from(meant.len()).unwrap_or(u64::MAX));
        let of = |repetition| meant.iter().map(|losses| losses[repetition]).sum::<f64>() / count;
        (0..repetitions).map(of).collect()
    }
}
