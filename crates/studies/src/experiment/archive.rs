//! The raw results of an experiment in a folder: what can be resumed, and computed again.
//!
//! `design.json` holds the design, the seed of the order, and the circumstances of every sitting that
//! added to it. Each run is a CSV file, which appears when the run is done and not before.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::design::{Design, RunId};
use wirestamp_clock::CounterSource;
use wirestamp_report::Circumstances;

/// File that describes the others.
const RECORD: &str = "design.json";

/// Where the results of an experiment are kept.
pub(super) struct Archive {
    /// `None` to store nothing.
    folder: Option<PathBuf>,
    pub(super) record: Record,
    /// Whether this sitting is in the record.
    has_added: bool,
}

/// Content of `design.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) design: Design,
    pub(super) seed: u64,
    pub(super) sittings: Vec<Circumstances>,
}

impl Archive {
    /// Opens the archive of a design in `folder`, or begins one with this seed.
    ///
    /// # Errors
    /// When the folder cannot be written or read, or holds the results of another design.
    pub(super) fn open(folder: Option<&Path>, design: Design, seed: u64) -> anyhow::Result<Self> {
        if let Some(inside) = folder.filter(|folder| folder.join(RECORD).exists()) {
            let inside = inside.display();
            bail!("{inside} holds the raw results of one study: name the folder that it is in");
        }
        let folder = folder.map(|folder| folder.join(&design.name));
        let mut record = Record { design, seed, sittings: Vec::new() };
        if let Some(folder) = &folder {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
            let file = folder.join(RECORD);
            if file.exists() {
                record = earlier(&file, &record.design)?;
            }
        }
        let archive = Self { folder, record, has_added: false };
        archive.write_record()?;
        Ok(archive)
    }

    fn write_record(&self) -> anyhow::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        write(&folder.join(RECORD), &serde_json::to_vec_pretty(&self.record)?)
    }

    /// Samples of a run, if it was done before.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub(super) fn load<S: DeserializeOwned>(&self, turn: RunId) -> anyhow::Result<Option<Vec<S>>> {
        let Some(file) = self.file(turn).filter(|file| file.exists()) else { return Ok(None) };
        let read = || csv::Reader::from_path(&file)?.into_deserialize().collect();
        let samples: Result<_, csv::Error> = read();
        samples.map(Some).with_context(|| {
            format!("cannot read {}: remove it to make the run again", file.display())
        })
    }

    /// Stores the samples of a run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep<S: Serialize>(&mut self, turn: RunId, samples: &[S]) -> anyhow::Result<()> {
        if !self.has_added {
            self.record.sittings.push(with_counter(Circumstances::here()));
            self.write_record()?;
            self.has_added = true;
        }
        let Some(file) = self.file(turn) else { return Ok(()) };
        let mut text = csv::Writer::from_writer(Vec::new());
        for sample in samples {
            text.serialize(sample).context("cannot write a sample as CSV")?;
        }
        write(&file, &text.into_inner().context("cannot write samples as CSV")?)
    }

    fn file(&self, turn: RunId) -> Option<PathBuf> {
        let design = &self.record.design;
        let cell = design.cells().into_iter().nth(turn.cell)?;
        let repetition = format!("{:03}", turn.repetition + 1);
        let words = std::iter::once(repetition.as_str()).chain(design.levels(&cell));
        // A level may have a point or a slash in it.
        let name = words.collect::<Vec<_>>().join("-").replace('/', "-");
        Some(self.folder.as_ref()?.join(name + ".csv"))
    }
}

/// The circumstances with the properties of the counter that this process reads.
fn with_counter(here: Circumstances) -> Circumstances {
    let survey = wirestamp_clock::survey();
    match survey.sources.into_iter().find(|source| source.name == survey.selected) {
        Some(CounterSource { frequency_hz, granularity_ns, .. }) => {
            Circumstances { counter_hz: frequency_hz, counter_step_ns: granularity_ns, ..here }
        }
        None => here,
    }
}

/// Record of an earlier sitting with the same design.
fn earlier(file: &Path, design: &Design) -> anyhow::Result<Record> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let record: Record = serde_json::from_str(&text)
        .with_context(|| format!("{} is not a record of a study", file.display()))?;
    ensure!(
        record.design == *design,
        "{} is of another design, quick or not, or of another version: name another folder, or remove it",
        file.parent().unwrap_or(file).display()
    );
    Ok(record)
}

/// Writes a file that is there as a whole or not at all.
fn write(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let part = file.with_extension("part");
    let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, file));
    written.or_else(|error| {
        // It may fill the disk; the error below has the cause.
        let _ = fs::remove_file(&part);
        let rest = match error.kind() {
            ErrorKind::StorageFull => {
                ": free disk space, then run the same command again to resume"
            }
            _ => "",
        };
        Err(error).with_context(|| format!("cannot write {}{rest}", file.display()))
    })
}
