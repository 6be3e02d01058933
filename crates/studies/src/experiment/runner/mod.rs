//! Runs the cells of a study in their order, and stores the results.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use wirestamp_capture::Stop;

use super::archive::Archive;
use super::design::{Cell, Design, RunId};
use wirestamp_report::Circumstances;

/// A study: what is varied, and how one cell is run.
pub trait Study {
    /// A raw result, of which a run brings many: a row of a CSV file.
    type Sample: Serialize + DeserializeOwned;

    /// Factors of the study.
    fn design(&self) -> Design;

    /// Approximate duration of a run of this cell.
    fn lasts(&self, cell: &Cell) -> Duration;

    /// Runs a cell once. If `stop` is requested meanwhile, the result is discarded.
    ///
    /// # Errors
    /// When the cell cannot be run; the experiment ends with it.
    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Self::Sample>>;
}

/// How far an experiment is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Share of completed work, 0 to 1.
    pub share: f64,
    /// Approximate remaining time.
    pub left: Duration,
    /// Current run.
    pub doing: String,
}

/// Runs of an experiment.
#[derive(Clone, Debug)]
pub struct Runs<S> {
    /// Design.
    pub design: Design,
    /// Seed of the order.
    pub seed: u64,
    /// When and where runs were made: once more for each time the experiment was resumed.
    pub sittings: Vec<Circumstances>,
    /// Whether it was stopped before all runs were done.
    pub interrupted: bool,
    /// The runs in their order, each with its samples.
    pub runs: Vec<(RunId, Vec<S>)>,
}

impl<S> Runs<S> {
    /// How many repetitions were done of every cell.
    #[must_use]
    pub fn complete(&self) -> u32 {
        let cells = self.design.cells().len();
        let whole = self.runs.len() / cells.max(1);
        u32::try_from(whole).unwrap_or(u32::MAX)
    }

    /// Ticks of the processor's counter in a nanosecond, if they were measured. The counter runs at the processor's nominal
    /// frequency, so that these are cycles of a processor that neither saves power nor is boosted.
    #[must_use]
    pub fn cycles_per_ns(&self) -> Option<f64> {
        Some(self.sittings.last()?.counter_hz? / 1e9)
    }

    /// Smallest usual step of the processor's counter when the runs were made, in nanoseconds: at least one tick. None if it
    /// was not measured. It varies from one measurement to the next on some processors, and the results of stored runs
    /// must not.
    #[must_use]
    pub fn counter_step_ns(&self) -> Option<f64> {
        Some(self.sittings.last()?.counter_step_ns?.max(1.0 / self.cycles_per_ns()?))
    }

    /// The runs of a cell, by repetition.
    pub fn of_cell(&self, cell: usize) -> impl Iterator<Item = &[S]> {
        let runs = self.runs.iter().filter(move |(turn, _)| turn.cell == cell);
        runs.map(|(_, samples)| samples.as_slice())
    }

    /// `response` of each run, for each cell by repetition. Only complete repetitions, so that the result is
    /// balanced. NaN for a run without a response.
    pub fn responses(&self, response: impl Fn(&[S]) -> Option<f64>) -> Vec<Vec<f64>> {
        let complete = usize::try_from(self.complete()).unwrap_or(usize::MAX);
        let of_run = |samples: &[S]| response(samples).unwrap_or(f64::NAN);
        let of_cell = |cell| self.of_cell(cell).take(complete).map(of_run).collect();
        (0..self.design.cells().len()).map(of_cell).collect()
    }
}

/// Runs all cells in an order by `seed`, until `stop` is requested. Results of an earlier run in
/// `folder` are kept, as is their order. Calls `progress` before each run, so that a study that was stopped
/// before its first run still reports the remaining time.
///
/// # Errors
/// When a cell cannot be run, the folder cannot be used, or it holds the results of another design.
pub fn run<T: Study>(
    study: &mut T,
    folder: Option<&Path>,
    seed: u64,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Runs<T::Sample>> {
    let mut archive = Archive::open(folder, study.design(), seed)?;
    let design = archive.record.design.clone();
    let (cells, order) = (design.cells(), design.order(archive.record.seed));
    let lasts: Vec<_> = order.iter().map(|turn| study.lasts(&cells[turn.cell])).collect();
    let mut work = Work::new(lasts.iter().sum());
    let mut runs = Vec::new();
    for (turn, lasts) in order.iter().zip(lasts) {
        let cell = &cells[turn.cell];
        if let Some(samples) = archive.load(*turn)? {
            runs.push((*turn, samples));
            work.skip(lasts);
            continue;
        }
        progress(&work.progress(format!(
            "{} {} of {}",
            design.levels(cell).join(" "),
            turn.repetition + 1,
            design.repetitions
        )));
        if stop.is_requested() {
            break;
        }
        let samples = study.run(cell, stop)?;
        if stop.is_requested() {
            break;
        }
        archive.keep(*turn, &samples)?;
        runs.push((*turn, samples));
        work.done(lasts);
    }
    let interrupted = runs.len() < order.len();
    let record = archive.record;
    Ok(Runs { design, seed: record.seed, sittings: record.sittings, interrupted, runs })
}

/// Completed work, and its actual and expected duration.
struct Work {
    all: Duration,
    skipped: Duration,
    done: Duration,
    since: Instant,
}

impl Work {
    fn new(all: Duration) -> Self {
        Self { all, skipped: Duration::ZERO, done: Duration::ZERO, since: Instant::now() }
    }

    fn skip(&mut self, lasts: Duration) {
        self.skipped += lasts;
    }

    fn done(&mut self, lasts: Duration) {
        self.done += lasts;
    }

    fn progress(&self, doing: String) -> Progress {
        let finished = self.skipped + self.done;
        let share = finished.as_secs_f64() / self.all.as_secs_f64().max(f64::MIN_POSITIVE);
        let left = left(self.since.elapsed(), self.done, self.all.saturating_sub(finished));
        Progress { share: share.min(1.0), left, doing }
    }
}

/// Remaining time: the expected remaining duration `rest`, scaled by the ratio of the actual duration
/// `took` to the expected duration `done` so far.
fn left(took: Duration, done: Duration, rest: Duration) -> Duration {
    if done.is_zero() {
        return rest;
    }
    let slower = took.as_secs_f64() / done.as_secs_f64();
    Duration::try_from_secs_f64(rest.as_secs_f64() * slower).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests;
