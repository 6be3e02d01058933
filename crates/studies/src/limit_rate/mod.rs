//! The limit rate of a probe: section 2 of 6QM's final system test report (Figures 2-3 to 2-39), on this machine.
//!
//! Frames are sent at a rate for some time, and the frames that the probe captured are compared with the frames
//! sent: series over rate, memory, buffer, filter, tasks, frame size, gap and duration, and searches for the highest
//! rate without loss. Departures from the report: `deviations.md`.

mod claims;
mod cost;
mod durations;
mod figures;
mod findings;
mod links;
mod model;
mod over_mesh;
mod paper;
mod saturation;
mod setting;
mod sweeps;
mod tasks;
mod trials;

use wirestamp_capture::Stop;

use crate::account::{Account, Making, MeasuredDesign, Part};
use crate::experiment::{self, Progress};
use crate::options::Options;
use crate::presentation::Texts;
use crate::tester::MemoryLimit;
use durations::Durations;
use findings::{LimitRateResult, LimitRateRuns};
use saturation::Searches;
use sweeps::LimitRateScale;
use trials::{Probe, Series};

pub(crate) use over_mesh::run_over_mesh;
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
    let Options { quick, folder, seed } = options;
    let (size, folder) = (LimitRateScale { quick: *quick }, folder.as_deref());
    let probe = Probe::new()?;
    let mut searches = Searches { probe: &probe, size };
    let searches = experiment::run(&mut searches, folder, *seed, stop, progress)?;
    let mut series = Vec::new();
    let no_limit = MemoryLimit::obstacle();
    for sweep in size.sweeps().into_iter().filter(|it| it.name != "memory" || no_limit.is_none()) {
        let runs = if sweep.is_of_durations() {
            let mut trials = Durations { probe: &probe, sweep: &sweep };
            let runs = experiment::run(&mut trials, folder, *seed, stop, progress)?;
            durations::by_duration(&sweep, runs)
        } else {
            let mut trials = Series { probe: &probe, sweep: &sweep };
            experiment::run(&mut trials, folder, *seed, stop, progress)?
        };
        series.push((sweep, runs));
    }
    account(&LimitRateRuns { size, series, searches, no_limit })
}

/// Account of the trials and their results.
fn account(measured: &LimitRateRuns) -> anyhow::Result<Account> {
    let findings = LimitRateResult::of(measured);
    let series = measured.series.iter().map(|(_, runs)| MeasuredDesign::of(runs));
    let making = Making {
        interrupted: measured.interrupted(),
        ..Making::of(&measured.searches).with(series)
    };
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER)
        .with_published(include_str!("published.json"));
    let mut account =
        texts.account(making, claims::claims(measured), &findings, &|id, heading| {
            let draw = |size, id: &str| figures::model(&findings, size, id);
            (id == "model").then(|| Part::figure(heading, id, figures::AREAS, draw))
        })?;
    let repetitions = measured.size.repetitions();
    let series = format!("{repetitions} repetitions of every trial");
    account.machine.insert(1, ("Series".to_owned(), series));
    Ok(account)
}

#[cfg(test)]
mod tests;
