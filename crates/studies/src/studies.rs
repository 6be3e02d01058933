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
    Entry {
        name: "timers",
        about: "cost of reading a time source",
        paper: timers::PAPER,
        run: timers::run,
        run_over_mesh: None,
    },
    Entry {
        name: "overhead",
        about: "cost of timestamping a packet",
        paper: overhead::PAPER,
        run: overhead::run,
        run_over_mesh: None,
    },
    Entry {
        name: "interarrival",
        about: "error of times between arrivals, by timestamping method",
        paper: interarrival::PAPER,
        run: interarrival::run,
        run_over_mesh: None,
    },
    Entry {
        name: "loss",
        about: "packet loss by timestamping method",
        paper: loss::PAPER,
        run: loss::run,
        run_over_mesh: None,
    },
    Entry {
        name: "reception",
        about: "packet loss and timestamp error of each capture technique",
        paper: reception::PAPER,
        run: reception::run,
        run_over_mesh: None,
    },
    Entry {
        name: "step",
        about: "smallest delay change that is detected",
        paper: step::PAPER,
        run: step::run,
        run_over_mesh: None,
    },
    Entry {
        name: "limit-rate",
        about: "max packet rate of a probe without loss",
        paper: limit_rate::PAPER,
        run: limit_rate::run,
        run_over_mesh: Some(limit_rate::run_over_mesh),
    },
    Entry {
        name: "timestamp-jitter",
        about: "timestamp error at a constant packet rate",
        paper: timestamp_jitter::PAPER,
        run: timestamp_jitter::run,
        run_over_mesh: None,
    },
    Entry {
        name: "passive-delay",
        about: "error of passive one-way delay and loss",
        paper: passive_delay::PAPER,
        run: passive_delay::run,
        run_over_mesh: Some(passive_delay::run_over_mesh),
    },
    Entry {
        name: "active-delay",
        about: "difference between active and passive one-way delay of the same packets",
        paper: active_delay::PAPER,
        run: active_delay::run,
        run_over_mesh: Some(active_delay::run_over_mesh),
    },
];

impl Entry {
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

    /// Runs it with meshes that `bring_up` makes, and writes its report if one is wanted: `NAME-mesh.html` in
    /// the folder.
    ///
    /// # Errors
    /// As of [`Entry::run`], when it is nothing for a mesh, or when there is none to be had.
    pub fn run_over_mesh(
        &self,
        bring_up: StartMesh,
        options: &Options,
        stop: &Stop,
        progress: &mut dyn FnMut(&Progress),
    ) -> anyhow::Result<Account> {
        let run = self.run_over_mesh;
        let run = run.with_context(|| format!("study {} is nothing for a mesh", self.name))?;
        let account = run(bring_up, options, stop, progress)?;
        reported(&format!("{}-mesh", self.name), options, account)
    }

    /// How long it will take, about, without what the folder already holds; nothing if it does not say.
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
