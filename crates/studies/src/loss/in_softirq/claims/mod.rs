//! Claims of the paper and of this project about loss in the softIRQ, and their verdicts here.

mod losses;
mod ours;
mod paper;

use super::SoftirqRound;
use super::scale::SoftirqScale;
use crate::experiment::{Claim, Runs};
use losses::Losses;

/// All claims, with verdicts from complete repetitions: those of the paper, then those of this project.
pub(in crate::loss) fn claims(runs: &Runs<SoftirqRound>, size: SoftirqScale) -> Vec<Claim> {
    let losses = Losses::of_runs(runs, size);
    [paper::claims(&losses), ours::claims(&losses)].concat()
}
