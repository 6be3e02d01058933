//! Difference between active and passive one-way delay of the same packets: the test of 6QM's report on
//! OpenIMP, section 3.7, reproduced on this machine.
//!
//! A STAMP sender tests the way through a bottleneck to a reflector, and two captures before and behind the
//! bottleneck measure the same packets passively. Departures from the report: `deviations.md`.
//!
//! | file | what it does |
//! |---|---|
//! | `tests_of_a_path.rs` | what is varied |
//! | `bed.rs`, `over_mesh.rs` | makes one run: with a sender and captures of its own, or with a mesh |
//! | `measured.rs` | what a run brings: a row of the raw results |
//! | `findings.rs`, `claims.rs` | what is computed of the runs |
//! | `paper.rs` | what the report measured |
//! | `report.md` | template of the report |

mod bed;
mod claims;
mod findings;
mod measured;
mod over_mesh;
mod paper;
mod setting;
mod tests_of_a_path;

use wirestamp_capture::Stop;

use crate::account::{Account, Making};
use crate::experiment::{self, Progress, Runs};
use crate::mesh::StartMesh;
use crate::options::Options;
use crate::presentation::Texts;
use findings::ActiveDelayResult;
use measured::Measured;
use tests_of_a_path::{ActiveDelayScale, TestsOfAPath};

pub(crate) use paper::PAPER;

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// When privileges are missing, when the lab cannot be built, or when the folder cannot be used or holds the
/// results of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    wirestamp_lab::check_privilege()?;
    let Options { quick, folder, seed } = options;
    let size = if *quick { ActiveDelayScale::QUICK } else { ActiveDelayScale::FULL };
    let mut tests = TestsOfAPath::new(size)?;
    let runs = experiment::run(&mut tests, folder.as_deref(), *seed, stop, progress)?;
    account(&runs, &ActiveDelayResult::of(&runs))
}

/// The study with probes and controller of a mesh.
///
/// # Errors
/// As of [`run`], or when no mesh is available.
pub(crate) fn run_over_mesh(
    bring_up: StartMesh,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    wirestamp_lab::check_privilege()?;
    let Options { quick, folder, seed } = options;
    let size =
        if *quick { ActiveDelayScale::QUICK_OF_MESH } else { ActiveDelayScale::FULL_OF_MESH };
    let mut tests = TestsOfAPath::over_mesh(size, bring_up);
    let runs = experiment::run(&mut tests, folder.as_deref(), *seed, stop, progress)?;
    let account = account(&runs, &ActiveDelayResult::of(&runs))?;
    let title = "Difference between active and passive one-way delay of the same packets, with probes of a mesh";
    Ok(Account {
        title: title.to_owned(),
        deviations: include_str!("deviations_of_mesh.md"),
        ..account
    })
}

/// Account of the runs and their results.
fn account(runs: &Runs<Measured>, findings: &ActiveDelayResult) -> anyhow::Result<Account> {
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER)
        .with_published(include_str!("published.json"));
    texts.account(Making::of(runs), claims::claims(runs), findings, &|_, _| None)
}

#[cfg(test)]
mod tests;
