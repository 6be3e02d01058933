//! Smallest change of the delay that is detected: the experiment of Grigorjew et al., section IV
//! (Figure 3), reproduced on this machine.
//!
//! The paper puts 18 m of copper between its taps for the second third of the packets, which raises the
//! delay by 88 ns. Here the emulated device raises its delay ([`crate::replicas`]), by that and by other
//! steps, and a statistical test reports whether the taps detect the step. Departures from the paper: `deviations.md`.

mod account;
mod cells;
mod claims;
mod detection;
mod figures;
mod findings;
mod paper;
mod tables;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::options::Options;
use crate::replicas::Technique;
use cells::{Cells, StepScale};
use findings::StepResult;

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
    account::account(&runs, &StepResult::of(&runs, packets, Technique::missing()))
}

#[cfg(test)]
mod tests;
