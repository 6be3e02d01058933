//! The report from raw results, with the survey of the sources in its document: the survey is that of the machine that
//! measured, and raw results do not have it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use wirestamp_capture::Stop;

use super::elsewhere::Elsewhere;
use super::findings::TimersResult;
use super::measured::Measured;
use super::reads::{CostCount, design};
use crate::account::Account;
use crate::experiment::{self, Cell, Design, Study};

/// File with the results of another machine, which replace those of the document (`tools/archive-studies`).
const BESIDE: &str = "guest.json";

/// What is read of the document.
#[derive(Deserialize)]
struct Documented {
    seed: u64,
    repetitions: u32,
    rounds: u32,
    selected: String,
    ways: Vec<Measured>,
    beside: Option<Elsewhere>,
}

/// An experiment that was made before.
struct Stored(Design);

impl Study for Stored {
    type Sample = CostCount;

    fn design(&self) -> Design {
        self.0.clone()
    }

    fn lasts(&self, _: &Cell) -> Duration {
        Duration::ZERO
    }

    fn run(&mut self, _: &Cell, _: &Stop) -> anyhow::Result<Vec<CostCount>> {
        bail!("a stored experiment is not run")
    }
}

/// The account of a document from all raw results, which are in the folder `timers` in `folder`.
///
/// # Errors
/// When the document lacks a value, or raw results are missing or are those of another experiment.
pub(crate) fn again(document: &Value, folder: &Path) -> anyhow::Result<Account> {
    let Documented { seed, repetitions, rounds, selected, ways, beside } =
        Documented::deserialize(document).context("cannot read the values of timers")?;
    let rounds_of_run = rounds.checked_div(repetitions).context("it has no repetitions")?;
    let mut stored = Stored(design(&ways, rounds_of_run, repetitions));
    let raw = folder.join("timers");
    ensure!(
        raw.join("design.json").exists(),
        "the raw results are not in {}; unpack raw/timers.tar.xz beside the document",
        raw.display()
    );
    let stop = Stop::new()?;
    stop.request();
    let runs = experiment::run(&mut stored, Some(folder), seed, &stop, &mut |_| ())?;
    ensure!(!runs.interrupted, "not all raw results are in {}", raw.display());
    let guest = folder.join(BESIDE);
    let beside = if guest.exists() { Some(Elsewhere::read(&guest)?) } else { beside };
    let findings = TimersResult::of(&runs, ways, rounds_of_run, selected.into(), beside.as_ref());
    super::account(&runs, &findings)
}
