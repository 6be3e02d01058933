//! The studies that can be run by name.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::Stop;

use crate::account::{self, Account};
use crate::experiment::Progress;
use crate::mesh::StartMesh;
use crate::options::Options;
use crate::timers::{self, Elsewhere};
use crate::{
    active_delay, interarrival, limit_rate, loss, overhead, passive_delay, reception, step,
    timestamp_jitter,
};

/// Measures until all is done or the stop is requested.
type Run = fn(&Options, &Stop, &mut dyn FnMut(&Progress)) -> anyhow::Result<Account>;

/// The same with a mesh.
type RunOverMesh =
    fn(StartMesh, &Options, &Stop, &mut dyn FnMut(&Progress)) -> anyhow::Result<Account>;

/// A study.
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// Subject, for the list of studies.
    pub about: &'static str,
    /// The reproduced paper.
    pub paper: &'static str,
    /// How it is run.
    pub(crate) run: Run,
    /// How it is run with a mesh, if it can be.
    pub(crate) run_over_mesh: Option<RunOverMesh>,
}

/// All of them, in the order of the papers.
pub static STUDIES: &[Entry] = &[
    study("timers", "cost of reading a time source", timers::PAPER, timers::run),
    study("overhead", "cost of timestamping a packet", overhead::PAPER, overhead::run),
    study(
        "interarrival",
        "error of times between arrivals, by timestamping method",
        interarrival::PAPER,
        interarrival::run,
    ),
    study("loss", "packet loss by timestamping method", loss::PAPER, loss::run),
    study(
        "reception",
        "packet loss and timestamp error of each capture technique",
        reception::PAPER,
        reception::run,
    ),
    study("step", "smallest delay change that is detected", step::PAPER, step::run),
    study(
        "limit-rate",
        "max packet rate of a probe without loss",
        limit_rate::PAPER,
        limit_rate::run,
    )
    .over_mesh(limit_rate::run_over_mesh),
    study(
        "timestamp-jitter",
        "timestamp error at a constant packet rate",
        timestamp_jitter::PAPER,
        timestamp_jitter::run,
    ),
    study(
        "passive-delay",
        "error of passive one-way delay and loss",
        passive_delay::PAPER,
        passive_delay::run,
    )
    .over_mesh(passive_delay::run_over_mesh),
    study(
        "active-delay",
        "difference between active and passive one-way delay of the same packets",
        active_delay::PAPER,
        active_delay::run,
    )
    .over_mesh(active_delay::run_over_mesh),
];

/// A study that runs without a mesh.
const fn study(name: &'static str, about: &'static str, paper: &'static str, run: Run) -> Entry {
    Entry { name, about, paper, run, run_over_mesh: None }
}

impl Entry {
    /// The study, which also runs with a mesh.
    const fn over_mesh(self, run: RunOverMesh) -> Self {
        Self { run_over_mesh: Some(run), ..self }
    }

    /// The study of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        STUDIES.iter().find(|study| study.name == name)
    }

    /// Runs the study. With a folder, writes the report `NAME.html` there.
    ///
    /// # Errors
    /// When a cell cannot be run, or the folder cannot be used or holds the results of another design.
    pub fn run(
        &self,
        options: &Options,
        stop: &Stop,
        progress: &mut dyn FnMut(&Progress),
    ) -> anyhow::Result<Account> {
        reported(self.name, options, (self.run)(options, stop, progress)?)
    }

    /// Whether a mesh can be measured with, too.
    #[must_use]
    pub const fn has_mesh(&self) -> bool {
        self.run_over_mesh.is_some()
    }

    /// Runs the study with meshes that `bring_up` starts. With a folder, writes the report `NAME-mesh.html`
    /// there.
    ///
    /// # Errors
    /// As of [`Entry::run`], when the study has no mesh variant, or no mesh is available.
    pub fn run_over_mesh(
        &self,
        bring_up: StartMesh,
        options: &Options,
        stop: &Stop,
        progress: &mut dyn FnMut(&Progress),
    ) -> anyhow::Result<Account> {
        let run = self.run_over_mesh;
        let run = run.with_context(|| format!("study {} cannot run with a mesh", self.name))?;
        let account = run(bring_up, options, stop, progress)?;
        reported(&format!("{}-mesh", self.name), options, account)
    }

    /// Approximate duration of the missing runs, without those in the folder; zero if unknown.
    pub(crate) fn lasts(&self, options: &Options) -> Duration {
        let mut lasts = Duration::ZERO;
        if let Ok(stop) = Stop::new() {
            stop.request();
            // Running a study reports why it cannot be run.
            let _ = (self.run)(options, &stop, &mut |progress| lasts += progress.left);
        }
        lasts
    }
}

/// Runs the study `timers`, with the results of another machine beside it. `rounds` is the number of
/// rounds for each way to read a source (min 1; rounded up to whole runs).
///
/// # Errors
/// As of [`Entry::run`].
pub fn timers_beside(
    rounds: Option<u32>,
    beside: Option<&Elsewhere>,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let account = timers::run_beside(rounds, beside, options, stop, progress)?;
    reported("timers", options, account)
}

/// The account, with its report if a folder is set.
fn reported(name: &str, options: &Options, mut account: Account) -> anyhow::Result<Account> {
    if let Some(folder) = &options.folder {
        let report = folder.join(name).with_extension("html");
        fs::write(&report, account::html(&account))
            .with_context(|| format!("cannot write {}", report.display()))?;
        account.report = Some(report);
    }
    Ok(account)
}
