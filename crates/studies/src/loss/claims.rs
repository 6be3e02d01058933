//! Our claim of a reader that is overloaded, and its verdict. The paper's claims are about the softIRQ.

use super::findings::loss_percent;
use super::round::Round;
use super::rounds::{CORES, Condition, LossStudyScale};
use crate::experiment::{Claim, Estimate, Runs, mean};
use wirestamp_report::format::real;

/// Places of our capture with the kernel's stamps and of generic ktime capture, among the ways to capture.
const OURS: usize = 1;
const GENERIC: usize = 2;

/// The claim with its verdict from complete repetitions.
pub(super) fn claims(runs: &Runs<Round>, size: LossStudyScale) -> Vec<Claim> {
    let losses = Losses { runs, size, cells: runs.responses(loss_percent) };
    let claim = "where the reader is overloaded, ring/kernel loses fewer packets than generic ktime capture";
    vec![losses.claim(claim, OURS, GENERIC)]
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
    fn claim(&self, claim: &str, ours: usize, other: usize) -> Claim {
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
        Claim::goal(claim, leads, &words.join(", "))
    }

    /// The mean loss over all sizes and gaps.
    fn by_repetition(&self, method: usize, busy: bool) -> Vec<f64> {
        let cells: Vec<_> = self.runs.design.cells();
        let is_meant =
            |condition: &Condition| condition.method == method && condition.busy_core == busy;
        let meant = cells.iter().zip(&self.cells);
        let meant = meant.filter(|(cell, _)| is_meant(&self.size.condition(cell)));
        let meant: Vec<_> = meant.map(|(_, losses)| losses).collect();
        let repetitions = meant.iter().map(|losses| losses.len()).min().unwrap_or(0);
        let count = real(u64::try_from(meant.len()).unwrap_or(u64::MAX));
        let of = |repetition| meant.iter().map(|losses| losses[repetition]).sum::<f64>() / count;
        (0..repetitions).map(of).collect()
    }
}
