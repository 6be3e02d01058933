//! Smallest change of the delay that is detected: the experiment of Grigorjew et al., section IV
//! (Figure 3), reproduced on this machine.
//!
//! The paper puts 18 m of copper between its taps for the second third of the packets, which raises the
//! delay by 88 ns. Here the emulated device raises its delay ([`crate::replicas`]), by that and by other
//! steps, and a statistical test reports whether the taps detect the step. Departures from the paper: `deviations.md`.

mod cells;
mod claims;
mod detection;
mod figures;
mod findings;
mod paper;

use wirestamp_capture::Stop;

use crate::account::{Account, Making, Part};
use crate::experiment::{self, Progress, Runs};
use crate::options::Options;
use crate::presentation::Texts;
use crate::replicas::{Block, Technique};
use cells::{Cells, StepScale};
use findings::{Data, StepResult};

pub(crate) use paper::PAPER;

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// When privileges are missing, when a capture fails, or when the folder cannot be used or holds the results
/// of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let Options { quick, folder, seed } = options;
    let size = if *quick { StepScale::quick() } else { StepScale::full() };
    let packets = size.packets;
    let mut cells = Cells::new(size);
    let runs = experiment::run(&mut cells, folder.as_deref(), *seed, stop, progress)?;
    account(&runs, &StepResult::of(&runs, packets, Technique::missing()))
}

/// Account of the runs and their results.
fn account(runs: &Runs<Block>, findings: &StepResult) -> anyhow::Result<Account> {
    let data = Data { runs, packets: findings.packets };
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER);
    texts.account(Making::of(runs), claims::claims(findings), findings, &|id, heading| {
        let draw = |size: (u32, u32), id: &str| figures::step(data, size, id);
        (id == "step").then(|| Part::figure(heading, id, figures::SERIES_OF, draw))
    })
}

#[cfg(test)]
mod tests;
