//! All studies one after the other, and the page that leads to their reports.

mod card;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;
use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::Progress;
use crate::options::Options;
use crate::studies::Entry;
use card::Card;

/// Outcome of one study. Serialises as its account or its error, with its name.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// The name of the study.
    pub study: &'static str,
    /// Its subject.
    #[serde(skip)]
    pub about: &'static str,
    /// The reproduced paper.
    #[serde(skip)]
    pub paper: &'static str,
    #[serde(flatten)]
    result: Ending,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Ending {
    /// Results; not complete if it was stopped.
    Run(Box<Account>),
    /// It could not be run.
    Failed {
        /// Why, in a line.
        error: String,
    },
}

impl Outcome {
    /// The account of a study that could be run.
    #[must_use]
    pub fn account(&self) -> Option<&Account> {
        match &self.result {
            Ending::Run(account) => Some(account),
            Ending::Failed { .. } => None,
        }
    }

    /// Why it could not be run.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match &self.result {
            Ending::Run(_) => None,
            Ending::Failed { error } => Some(error),
        }
    }
}

/// Runs these studies until all are done or `stop` is requested. Continues when one cannot be run.
/// Studies that had not begun by then are absent from the result.
///
/// # Errors
/// When the folder cannot be made.
pub fn run(
    studies: &'static [Entry],
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Vec<Outcome>> {
    if let Some(folder) = &options.folder {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let mut way = Way::before(studies, options);
    let mut outcomes = Vec::new();
    for study in studies {
        if stop.is_requested() {
            break;
        }
        way.next();
        let account = study.run(options, stop, &mut |of_study| {
            progress(&way.progress(study.name, of_study));
        });
        outcomes.push(Outcome {
            study: study.name,
            about: study.about,
            paper: study.paper,
            result: match account {
                Ok(account) => Ending::Run(Box::new(account)),
                Err(error) => Ending::Failed { error: format!("{error:#}") },
            },
        });
    }
    Ok(outcomes)
}

/// Writes the page that leads to the reports in `folder`: `index.html` there. Documents of studies with a mesh in the folder
/// are included.
///
/// # Errors
/// When it cannot be written, or a document cannot be read.
pub fn write(folder: &Path, outcomes: &[Outcome]) -> anyhow::Result<PathBuf> {
    let cards = outcomes.iter().map(Card::of_outcome).chain(Card::saved_with_mesh(folder)?);
    write_page(folder, &cards.collect::<Vec<_>>())
}

/// Writes the same page from the documents `NAME.json` in `folder`, the output of `wirestamp study NAME --json`.
///
/// # Errors
/// When it cannot be written, or a document cannot be read, or there is none.
pub fn write_saved(folder: &Path) -> anyhow::Result<PathBuf> {
    let cards = Card::saved(folder)?;
    ensure!(!cards.is_empty(), "no document of a study in {}", folder.display());
    write_page(folder, &cards)
}

fn write_page(folder: &Path, cards: &[Card]) -> anyhow::Result<PathBuf> {
    let index = folder.join("index.html");
    fs::write(&index, page::html(cards))
        .with_context(|| format!("cannot write {}", index.display()))?;
    Ok(index)
}

/// Progress through all studies.
struct Way {
    since: Instant,
    /// When the present study began.
    began: Instant,
    /// Expected duration of the current study.
    present: Duration,
    /// Expected durations of the following studies, the last one first.
    ahead: Vec<Duration>,
}

impl Way {
    fn before(studies: &[Entry], options: &Options) -> Self {
        let ahead = studies.iter().rev().map(|study| study.lasts(options)).collect();
        let now = Instant::now();
        Self { since: now, began: now, present: Duration::ZERO, ahead }
    }

    /// Another study begins.
    fn next(&mut self) {
        self.present = self.ahead.pop().unwrap_or_default();
        self.began = Instant::now();
    }

    /// Progress of all studies, from the progress of the current study.
    fn progress(&self, name: &str, Progress { left, doing, .. }: &Progress) -> Progress {
        // A study may consist of several experiments, and reports the progress of the current one only.
        let present = self.present.saturating_sub(self.began.elapsed());
        let left = present.max(*left) + self.ahead.iter().sum::<Duration>();
        let done = self.since.elapsed();
        let all = (done + left).as_secs_f64().max(f64::MIN_POSITIVE);
        let doing = format!("{name} {}", doing.trim());
        Progress { share: done.as_secs_f64() / all, left, doing }
    }
}

#[cfg(test)]
mod tests;
