//! Error of passive one-way delay and loss: the tests of 6QM's report on OpenIMP,
//! sections 3.3 to 3.6, reproduced on this machine.
//!
//! A sender fills a bottleneck with UDP over IPv6; two captures before and behind it go to a correlator,
//! as those of `wirestamp delay` do. Their min, mean and max delay and their loss are compared with the records of
//! sender and receiver. `deviations.md` lists the departures from the report.
//!
//! | file | what it does |
//! |---|---|
//! | `setting.rs` | what a run sends, over what bottleneck |
//! | `measurements.rs` | what each section varies |
//! | `bed.rs`, `over_mesh.rs` | makes one run: with captures of its own, or with a mesh |
//! | `reference_capture.rs` | records the packets where they leave for the taps |
//! | `measured.rs` | what a run brings: a row of the raw results |
//! | `findings.rs`, `claims.rs` | what is computed of the runs |
//! | `paper.rs` | what the report measured |
//! | `report.md` | template of the report |

mod bed;
mod claims;
mod findings;
mod measured;
mod measurements;
mod over_mesh;
mod paper;
mod reference_capture;
mod setting;

use wirestamp_capture::Stop;

use crate::account::{Account, Making, MeasuredDesign};
use crate::experiment::{self, Cell, Progress, Runs};
use crate::mesh::{ReusedMesh, StartMesh};
use crate::options::Options;
use crate::presentation::Texts;
use findings::{AllRuns, PassiveDelayResult};
use measurements::{Measurements, PassiveDelayScale};
use paper::Question;

pub(crate) use bed::{capture_point, join};
pub(crate) use measured::summary;
pub(crate) use paper::PAPER;
pub(crate) use setting::Bottleneck;

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
    let size = if options.quick { PassiveDelayScale::QUICK } else { PassiveDelayScale::FULL };
    measure(size, None, options, stop, progress)
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
    let size = if options.quick {
        PassiveDelayScale::QUICK_OF_MESH
    } else {
        PassiveDelayScale::FULL_OF_MESH
    };
    let mut kept = ReusedMesh::new(bring_up);
    let account = measure(size, Some(&mut kept), options, stop, progress)?;
    kept.end()?;
    let title = "Error of passive one-way delay and loss, with probes of a mesh";
    Ok(Account {
        title: title.to_owned(),
        deviations: include_str!("deviations_of_mesh.md"),
        ..account
    })
}

fn measure(
    size: PassiveDelayScale,
    mut mesh: Option<&mut ReusedMesh>,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    wirestamp_lab::check_privilege()?;
    let Options { folder, seed, .. } = options;
    let mut runs = |question| {
        let mut measurements = Measurements::new(question, size, mesh.as_deref_mut())?;
        experiment::run(&mut measurements, folder.as_deref(), *seed, stop, progress)
    };
    let runs = [runs(Question::Precision)?, runs(Question::Frames)?, runs(Question::Duration)?];
    account(&runs, size, &PassiveDelayResult::of(&runs, size))
}

/// Account of the runs and their results.
fn account(
    runs: &AllRuns,
    size: PassiveDelayScale,
    findings: &PassiveDelayResult,
) -> anyhow::Result<Account> {
    let [precision, frames, duration] = runs;
    let cells = frames.design.cells();
    let setting = |cell: usize| {
        let cell = cells.get(cell).cloned().unwrap_or(Cell(Vec::new()));
        Measurements::setting(Question::Frames, size, &cell)
    };
    let interrupted = runs.iter().any(|runs| runs.interrupted);
    let others = [precision, duration].map(MeasuredDesign::of);
    let making = Making { interrupted, ..Making::of(frames).with(others) };
    let claims = claims::claims(runs, setting);
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER)
        .with_published(include_str!("published.json"));
    let mut account = texts.account(making, claims, findings, &|_, _| None)?;
    let [a, b, c] = [precision, frames, duration].map(Runs::complete);
    let repetitions =
        ("Repetitions of the three experiments".to_owned(), format!("{a}, {b} and {c}"));
    account.machine.insert(0, repetitions);
    Ok(account)
}

#[cfg(test)]
mod tests;
