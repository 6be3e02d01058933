//! The limit rate of a mesh's probe: the same tasks as the report's, given by a controller to a probe that is a
//! process of its own on a core of its own.
//!
//! A search with each set-up finds the highest rate without loss, and reports the limiting part: the probe, which
//! loses packets above it, or the load, which cannot send faster. If the load is the limit, the probe's CPU time
//! per packet is compared.

mod claims;
mod findings;
mod trials;

use wirestamp_capture::Stop;

use super::paper::PAPER;
use crate::account::{Account, Making};
use crate::experiment::{self, Progress, Runs};
use crate::mesh::StartMesh;
use crate::options::Options;
use crate::presentation::Texts;
use findings::MeshLimitRateResult;
use trials::{MeshLimitRateScale, Trials};

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// When privileges, a second core or a mesh are missing, when a node ends, or when the folder cannot be used
/// or holds the results of a run of another size.
pub(crate) fn run_over_mesh(
    bring_up: StartMesh,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    wirestamp_lab::check_privilege()?;
    let Options { quick, folder, seed } = options;
    let size = if *quick { MeshLimitRateScale::QUICK } else { MeshLimitRateScale::FULL };
    let mut trials = Trials::new(size, bring_up)?;
    let runs = experiment::run(&mut trials, folder.as_deref(), *seed, stop, progress)?;
    trials.end()?;
    account(&runs)
}

fn account(runs: &Runs<super::trials::Trial>) -> anyhow::Result<Account> {
    let findings = MeshLimitRateResult::of(runs);
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER);
    texts.account(Making::of(runs), claims::claims(runs), &findings, &|_, _| None)
}

#[cfg(test)]
mod tests;
