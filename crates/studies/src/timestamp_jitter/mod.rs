//! Error of a probe's timestamps at a constant packet rate: the experiment of the 6QM report, section
//! 3.2 (Figures 3-5 to 3-13), reproduced on this machine.
//!
//! Frames of one size are sent at a constant rate. The min, mean, max and standard deviation of the time between
//! the stamps of two packets are compared with the sender's. The report uses the nominal times of its sender.
//! Here the sender records each time between packets, so that only the error of the stamps remains. In a second
//! experiment the kernel's work on the sender's core is recorded, too: it shows why packets are late (`causes`). Departures
//! from the report: `deviations.md`.

mod causes;
mod claims;
mod control;
mod findings;
mod flows;
mod paper;
mod source;
mod transit;

use std::collections::BTreeMap;

use wirestamp_capture::Stop;

use crate::account::{Account, Making, MeasuredDesign};
use crate::experiment::{self, Progress, Runs};
use crate::options::Options;
use crate::presentation::Texts;
use causes::{LateFlows, LateResult, LateScale};
use findings::JitterResult;
use flows::{Flows, JitterScale, SourceJitter};

pub(crate) use paper::PAPER;

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// When the privileges for a cable are missing, a flow cannot be sent, or the folder cannot be used or
/// holds the results of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let Options { quick, folder, seed } = options;
    let mut flows = Flows::new(if *quick { JitterScale::QUICK } else { JitterScale::FULL })?;
    let mut runs = experiment::run(&mut flows, folder.as_deref(), *seed, stop, progress)?;
    let mut late_flows = LateFlows::new(if *quick { LateScale::QUICK } else { LateScale::FULL })?;
    let (late, late_design) = match late_flows.check() {
        Err(error) => (LateResult::unavailable(&error), None),
        Ok(()) => {
            let late = experiment::run(&mut late_flows, folder.as_deref(), *seed, stop, progress)?;
            runs.interrupted |= late.interrupted;
            (LateResult::of(&late), Some(MeasuredDesign::of(&late)))
        }
    };
    let refused: BTreeMap<_, _> =
        flows.refusals().into_iter().chain(late_flows.refusals()).collect();
    let findings = JitterResult::of(&runs, refused.into_iter().collect(), late);
    let account = account(&runs, &findings)?;
    Ok(Account { making: account.making.with(late_design), ..account })
}

/// Account of the runs and their results.
fn account(runs: &Runs<SourceJitter>, findings: &JitterResult) -> anyhow::Result<Account> {
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER)
        .with_published(paper::PUBLISHED);
    texts.account(Making::of(runs), claims::claims(runs, findings), findings, &|_, _| None)
}

#[cfg(test)]
mod tests;
