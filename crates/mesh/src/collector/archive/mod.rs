//! Archive of results as Parquet files by hour, and retention of results.
//!
//! A file is `task=NAME/hour=2026-11-22T15/NUMBER.parquet`, a layout with keys that Parquet readers understand. Files
//! are written atomically. Results per second are deleted from the database only after they are in a file. If more
//! results of an archived hour arrive, the file is replaced.
//!
//! A flow is in the file of the hour of its last packet. If it continues, it is in a later file again, with its newer
//! statistics. Tasks may archive their observations, too ([`observations`]).

mod columns;
mod counts;
mod damaged;
mod observation_columns;
mod observations;
mod removal;
mod task_end;

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use thiserror::Error;
use tokio::sync::watch;
use tracing::{info, warn};
use wirestamp_clock::{Time, Utc};
use wirestamp_results::Table;

use super::{Collector, Hour, ResultRange, Step, flow_reports};
use crate::task::{Measure, Task, TaskRecord, Tasks};
use crate::{DatabaseError, Name};
use columns::{COUNTED, MEASURED};
pub use counts::ArchiveCounts;
pub(crate) use task_end::is_delivered;

/// Interval of maintenance.
const INTERVAL: Duration = Duration::from_secs(60);

/// Extension of incomplete files whose results are deleted.
const DAMAGED: &str = "damaged";

/// Text form of an hour, for strftime.
const HOUR: &str = "%Y-%m-%dT%H";

/// Archive of a collector.
pub struct Archive {
    folder: PathBuf,
    collector: Arc<Collector>,
    keep: Keep,
}

/// Retention of results. Minutes and hours stay in the database.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Max age of results per second, in the database and in files.
    pub age: Duration,
    /// Max size of the files, in bytes; the oldest are deleted first.
    pub bytes: Option<u64>,
}

/// Errors of the archive.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// Results cannot be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A file cannot be written.
    #[error(transparent)]
    Table(#[from] wirestamp_results::Error),
    /// A file or folder cannot be used.
    #[error("{}: {cause}", path.display())]
    File {
        /// Path.
        path: PathBuf,
        /// Cause.
        cause: io::Error,
    },
}

impl Archive {
    /// An archive in `folder`, which is created with the first file.
    #[must_use]
    pub fn new(folder: PathBuf, collector: Arc<Collector>, keep: Keep) -> Self {
        Self { folder, collector, keep }
    }

    /// Archives complete hours and deletes old results.
    pub fn maintain(&self, tasks: &Tasks) {
        for (number, entered) in tasks {
            if let Err(error) = self.tend_task(*number, entered) {
                self.failed(format_args!(
                    "task {}: cannot archive results: {error}",
                    entered.task.name
                ));
            }
        }
        if let Err(error) = self.remove_old() {
            self.failed(format_args!("cannot remove old results: {error}"));
        }
    }

    /// Logs and counts a failure.
    fn failed(&self, why: fmt::Arguments<'_>) {
        warn!("{why}");
        self.collector.archived.send_modify(|it| it.failures += 1);
    }

    fn tend_task(&self, number: u64, entered: &TaskRecord) -> Result<(), ArchiveError> {
        // Of a task that moved away, no further results are expected here.
        let is_former = self.collector.epoch_of(number).is_former;
        let next_results = |settled_until| {
            if is_former {
                return Time::from_nanos(i64::MAX);
            }
            task_end::next_results(entered, settled_until, Timestamp::now())
        };
        loop {
            // Unlocked before the file is written.
            let next = self.collector.results().next_hour(number, next_results)?;
            let Some(hour) = next else { break };
            self.write(number, &entered.task, &hour)?;
            self.collector.results().archived(number, &hour)?;
        }
        self.write_observations(number, &entered.task.name, next_results)?;
        Ok(self.collector.results().forget(number, self.oldest())?)
    }

    /// The stored results of an hour.
    fn table(&self, number: u64, task: &Task, begin: Time<Utc>) -> Result<Table, ArchiveError> {
        let (from, until) = (begin.as_nanos(), (begin + Step::Hour.length()).as_nanos());
        let range = ResultRange { step: Step::AsMeasured, from, until, most: u32::MAX };
        Ok(match task.measure {
            Measure::Volume { .. } | Measure::Traffic { .. } => {
                Table::of(&self.collector.results().counted(number, &range)?, COUNTED)
            }
            Measure::Flows { .. } => {
                let found = self.collector.results().flows(number, &range)?;
                Table::of_flows(&flow_reports(&task.name, found))
            }
            _ => Table::of(&self.collector.measured(number, &range)?, MEASURED),
        })
    }

    fn write(&self, number: u64, task: &Task, hour: &Hour) -> Result<(), ArchiveError> {
        let table = self.table(number, task, hour.begin)?;
        let path = self.path(&task.name, hour.begin, number);
        write_table(&table, &path)?;
        self.collector.archived.send_modify(|it| it.results += table.rows() as u64);
        info!("archived {} results in {}", table.rows(), path.display());
        Ok(())
    }

    fn path(&self, task: &Name, begin: Time<Utc>, number: u64) -> PathBuf {
        let hour = Timestamp::from_nanosecond(begin.as_nanos().into()).unwrap_or_default();
        let hour = hour.to_zoned(TimeZone::UTC).strftime(HOUR).to_string();
        let folder = self.folder.join(format!("task={task}")).join(format!("hour={hour}"));
        folder.join(format!("{number}.parquet"))
    }

    /// Results before this time are deleted.
    fn oldest(&self) -> Time<Utc> {
        let oldest = SystemTime::now().checked_sub(self.keep.age);
        oldest.and_then(|it| Time::try_from(it).ok()).unwrap_or(Time::from_nanos(i64::MIN))
    }

    /// Deletes files that are too old, and the oldest ones beyond the size limit.
    fn remove_old(&self) -> Result<(), ArchiveError> {
        let mut files = files(&self.folder)?;
        files.extend(observations::observation_files(&self.folder)?);
        files.sort_by(|one, other| one.hour.cmp(&other.hour));
        let oldest = Timestamp::from_nanosecond(self.oldest().as_nanos().into());
        let oldest = oldest.unwrap_or(Timestamp::MIN).to_zoned(TimeZone::UTC);
        let oldest = oldest.strftime(HOUR).to_string();
        let mut bytes: u64 = files.iter().map(|it| it.bytes).sum();
        for file in files {
            let is_too_much = self.keep.bytes.is_some_and(|most| bytes > most);
            if file.hour >= oldest && !is_too_much {
                break;
            }
            fs::remove_file(&file.path).map_err(about(&file.path))?;
            bytes -= file.bytes;
            info!("removed {}", file.path.display());
            observations::remove_empty(&file.path, &self.folder);
        }
        Ok(())
    }
}

/// Writes a file, whole or not at all.
fn write_table(table: &Table, path: &Path) -> Result<(), ArchiveError> {
    let beside = path.with_extension("new");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(about(folder))?;
    }
    table.write_parquet(&beside)?;
    put_in_place(&beside, path)
}

/// Renames a written file. What it contains is deleted from the database once it exists, so it must survive a power
/// failure.
fn put_in_place(beside: &Path, path: &Path) -> Result<(), ArchiveError> {
    File::open(beside).and_then(|file| file.sync_all()).map_err(about(beside))?;
    fs::rename(beside, path).map_err(about(path))
}

/// A file of an hour.
struct Archived {
    path: PathBuf,
    /// In text form, which sorts by time.
    hour: String,
    bytes: u64,
    /// Whether it was renamed, because it is not complete.
    is_damaged: bool,
}

/// The files of the archive, without foreign ones.
fn files(folder: &Path) -> Result<Vec<Archived>, ArchiveError> {
    let mut found = Vec::new();
    for task in entries(folder)? {
        for of_hour in entries(&task)? {
            let name = of_hour.file_name().and_then(|name| name.to_str());
            let Some(hour) = name.and_then(|name| name.strip_prefix("hour=")) else { continue };
            for path in entries(&of_hour)? {
                let is_damaged = path.extension().is_some_and(|it| it == DAMAGED);
                if is_damaged || path.extension().is_some_and(|it| it == "parquet") {
                    let bytes = fs::metadata(&path).map_err(about(&path))?.len();
                    found.push(Archived { path, hour: hour.to_owned(), bytes, is_damaged });
                }
            }
        }
    }
    Ok(found)
}

/// Entries of a folder; empty if it is not a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            paths.collect::<io::Result<_>>().map_err(about(folder))
        }
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(about(folder)(error)),
    }
}

fn about(path: &Path) -> impl FnOnce(io::Error) -> ArchiveError {
    let path = path.to_owned();
    move |cause| ArchiveError::File { path, cause }
}

/// Maintains the archive of these tasks forever.
pub(crate) async fn maintain(archive: &Arc<Archive>, tasks: watch::Receiver<Arc<Tasks>>) {
    let mut interval = tokio::time::interval(INTERVAL);
    let mut removed = archive.collector.removed();
    let mut is_first = true;
    loop {
        let is_due = tokio::select! {
            _ = interval.tick() => true,
            Ok(()) = removed.changed() => false,
        };
        if !is_due {
            let archive = Arc::clone(archive);
            drop(tokio::task::spawn_blocking(move || archive.remove_tasks()).await);
            continue;
        }
        let (archive, tasks) = (Arc::clone(archive), Arc::clone(&tasks.borrow()));
        // A collector of its own receives its tasks from the controller.
        let is_checked = is_first && !tasks.is_empty();
        is_first &= !is_checked;
        let maintain = move || {
            archive.remove_tasks();
            if is_checked {
                archive.replace_damaged(&tasks);
            }
            archive.maintain(&tasks);
        };
        // A panic was reported by the thread itself.
        drop(tokio::task::spawn_blocking(maintain).await);
    }
}

#[cfg(test)]
mod tests;
