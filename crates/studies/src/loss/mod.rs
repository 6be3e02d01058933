//! Packet loss by timestamping and capture method: the experiment of Orosz and
//! Skopkó, section V.B (Figure 6), reproduced on this machine.
//!
//! Rounds of 20,000 packets of one size and with one gap are captured with raw stamps that another core
//! converts, with the kernel's stamps, and by dumpcap, each with the memory that libpcap asks for.
//! Departures from the paper: `deviations.md`.

mod capture;
mod claims;
mod findings;
mod paper;
mod round;
mod rounds;

use wirestamp_capture::Stop;

use crate::account::{Account, Making};
use crate::experiment::{self, Progress, Runs};
use crate::options::Options;
use crate::presentation::Texts;
use findings::LossStudyResult;
use round::Round;
use rounds::{LossStudyScale, Rounds};

pub(crate) use paper::PAPER;

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// When privileges or a second core are missing, when a capture fails, or when the folder cannot be used
/// or holds the results of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let size = if options.quick { LossStudyScale::QUICK } else { LossStudyScale::FULL };
    let mut rounds = Rounds::new(size)?;
    let folder = options.folder.as_deref();
    let runs = experiment::run(&mut rounds, folder, options.seed, stop, progress)?;
    account(&runs, size)
}

/// Account of the runs and their results.
fn account(runs: &Runs<Round>, size: LossStudyScale) -> anyhow::Result<Account> {
    let findings = LossStudyResult::of(runs, size);
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER);
    texts.account(Making::of(runs), claims::claims(runs, size), &findings, &|_, _| None)
}

#[cfg(test)]
mod tests;
