//! Archive of observations: for each point of a task, the files of an hour.
//!
//! `observations/task=NAME/date=2026-11-28/hour=15/point=a/TASK-EPOCH-FIRST.parquet` has a row for each observed packet, and
//! the same path below `batches` a row for each batch, and for each capture loss in it. FIRST is the place of the first
//! batch in the database. The files of an hour are written when it is complete. Batches that arrive later are in further
//! files.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tracing::info;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Point;
use wirestamp_results::{Field, Table, TableFile, TableFormat};

use super::observation_columns::{BATCHES, BatchRow, OBSERVATIONS, ObservationRow};
use super::{Archive, ArchiveError, Archived, DAMAGED, about, entries, put_in_place};
use crate::Name;
use crate::collector::observed::{hour, last_hour};
use crate::collector::results::ObservedHour;
use crate::collector::{ObservedBatch, ObservedContent};
use crate::protocol::ObservationBatch;

/// Folders of the two tables.
const TABLES: [&str; 2] = ["observations", "batches"];

/// Batches are acknowledged at the latest this time after the results of their hour are final. Later ones are in a
/// further file.
const ACKNOWLEDGEMENT: Span = Span::from_secs(60);

/// Batches in memory at a time, and rows of a row group.
const BATCHES_READ: u32 = 64;
const ROWS: usize = 1 << 16;

impl Archive {
    /// Writes the complete hours of a task's observations. `next_results` returns the earliest time of further results,
    /// given the settled time.
    pub(super) fn write_observations(
        &self,
        task: u64,
        name: &Name,
        next_results: impl Fn(Time<Utc>) -> Time<Utc>,
    ) -> Result<(), ArchiveError> {
        let next = |settled_until| {
            let next = next_results(settled_until);
            if next < Time::from_nanos(i64::MAX) { next - ACKNOWLEDGEMENT } else { next }
        };
        loop {
            // Unlocked before the files are written.
            let hour = self.collector.results().next_observed_hour(task, next)?;
            let Some(hour) = hour else { return Ok(()) };
            for point in [Point::A, Point::B] {
                self.write_point(task, name, &hour, point)?;
            }
            self.collector.results().observed_written(task, &hour)?;
        }
    }

    fn write_point(
        &self,
        task: u64,
        name: &Name,
        hour: &ObservedHour,
        point: Point,
    ) -> Result<(), ArchiveError> {
        let [observations, batches] =
            TABLES.map(|table| self.observation_path(table, (task, name), hour, point));
        let mut observations = Rows::new(observations, OBSERVATIONS);
        let mut batches = Rows::new(batches, BATCHES);
        let mut behind = 0;
        loop {
            let results = self.collector.results();
            let read = results.observed(task, hour, (point, behind), BATCHES_READ)?;
            drop(results);
            let Some((last, _)) = read.last() else { break };
            behind = *last;
            for (stored, batch) in &read {
                let rows = rows(task, (*stored, batch), hour.begin);
                observations.add(rows.0)?;
                batches.add(rows.1)?;
            }
        }
        let count = observations.finish()?;
        batches.finish()?;
        self.collector.archived.send_modify(|it| it.observations += count as u64);
        info!("archived {count} observations of point {} of task {name}", letter(point));
        Ok(())
    }

    fn observation_path(
        &self,
        table: &str,
        (task, name): (u64, &Name),
        hour: &ObservedHour,
        point: Point,
    ) -> PathBuf {
        let begin = Timestamp::from_nanosecond(hour.begin.as_nanos().into()).unwrap_or_default();
        let begin = begin.to_zoned(TimeZone::UTC);
        self.folder
            .join(table)
            .join(format!("task={name}"))
            .join(begin.strftime("date=%Y-%m-%d").to_string())
            .join(begin.strftime("hour=%H").to_string())
            .join(format!("point={}", letter(point)))
            .join(format!("{task}-{}-{}.parquet", hour.epoch, hour.first))
    }

    /// Deletes the observations of a task, and empty folders.
    pub(super) fn remove_observations(&self, task: u64) -> Result<(), ArchiveError> {
        let its = format!("{task}-");
        for table in TABLES {
            for folder in point_folders(&self.folder.join(table))? {
                for path in entries(&folder)? {
                    let name = path.file_name().and_then(|it| it.to_str());
                    if name.is_some_and(|it| it.starts_with(&its) && is_own(&path)) {
                        fs::remove_file(&path).map_err(about(&path))?;
                        remove_empty(&path, &self.folder);
                    }
                }
            }
        }
        Ok(())
    }
}

fn letter(point: Point) -> &'static str {
    if point == Point::A { "a" } else { "b" }
}

/// Whether a file is one of the archive: complete, being written, or damaged.
fn is_own(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "parquet" || it == "new" || it == DAMAGED)
}

/// Rows of a batch that belong to an hour.
fn rows(
    task: u64,
    (stored, batch): (i64, &ObservedBatch),
    begin: Time<Utc>,
) -> (Vec<ObservationRow>, Vec<BatchRow>) {
    let row = BatchRow::of(task, stored, batch);
    let message = match &batch.content {
        ObservedContent::Observations(message) => message,
        ObservedContent::Dropped { .. } | ObservedContent::Malformed(_) => {
            return (Vec::new(), vec![row]);
        }
    };
    // It was decoded before it was stored.
    let Ok(decoded) = ObservationBatch::decode(message) else { return (Vec::new(), vec![row]) };
    let complete_until = decoded.complete_until;
    let numbered = (0_i64..).zip(&decoded.observations);
    let within = numbered.filter(|(_, it)| hour(it.stamp.utc, complete_until) == begin);
    let observations = within
        .map(|(position, seen)| ObservationRow::of((row.task, stored), batch, position, *seen));
    let observations = observations.collect();
    // The batch itself is in the hour of its end.
    let batches =
        if last_hour(complete_until) == begin { row.with_losses(&decoded) } else { Vec::new() };
    (observations, batches)
}

/// A file that is written in parts. Without rows, there is none.
struct Rows<R: 'static> {
    path: PathBuf,
    fields: &'static [Field<R>],
    file: Option<TableFile>,
    waiting: Vec<R>,
    written: usize,
}

impl<R: 'static> Rows<R> {
    fn new(path: PathBuf, fields: &'static [Field<R>]) -> Self {
        Self { path, fields, file: None, waiting: Vec::new(), written: 0 }
    }

    fn beside(&self) -> PathBuf {
        self.path.with_extension("new")
    }

    fn add(&mut self, rows: Vec<R>) -> Result<(), ArchiveError> {
        self.waiting.extend(rows);
        if self.waiting.len() < ROWS { Ok(()) } else { self.write() }
    }

    /// Writes a row group.
    fn write(&mut self) -> Result<(), ArchiveError> {
        if self.file.is_none() {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder).map_err(about(folder))?;
            }
            let file = TableFile::create_as(&self.beside(), TableFormat::Parquet, self.fields)?;
            self.file = Some(file);
        }
        if let Some(file) = &mut self.file {
            file.append(&Table::of(&self.waiting, self.fields))?;
        }
        self.written += self.waiting.len();
        self.waiting.clear();
        Ok(())
    }

    /// Completes the file. Returns the number of its rows.
    fn finish(mut self) -> Result<usize, ArchiveError> {
        if !self.waiting.is_empty() {
            self.write()?;
        }
        if let Some(file) = self.file.take() {
            file.finish()?;
            put_in_place(&self.beside(), &self.path)?;
        }
        Ok(self.written)
    }
}

/// Folders of the points of all hours and tasks of a table.
fn point_folders(table: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let mut folders = vec![table.to_owned()];
    // Task, date, hour, point.
    for _ in 0..4 {
        let mut inner = Vec::new();
        for folder in &folders {
            inner.extend(entries(folder)?);
        }
        folders = inner;
    }
    Ok(folders)
}

/// The files of both tables, without foreign ones.
pub(super) fn observation_files(archive: &Path) -> Result<Vec<Archived>, ArchiveError> {
    let mut found = Vec::new();
    for table in TABLES {
        for folder in point_folders(&archive.join(table))? {
            let Some(hour) = hour_of(&folder) else { continue };
            for path in entries(&folder)? {
                let is_damaged = path.extension().is_some_and(|it| it == DAMAGED);
                if is_damaged || path.extension().is_some_and(|it| it == "parquet") {
                    let bytes = fs::metadata(&path).map_err(about(&path))?.len();
                    found.push(Archived { path, hour: hour.clone(), bytes, is_damaged });
                }
            }
        }
    }
    Ok(found)
}

/// Text form of the hour of a point's folder, as files of results have it.
fn hour_of(folder: &Path) -> Option<String> {
    let hour = folder.parent()?;
    let key = |path: &Path, key: &str| {
        path.file_name()?.to_str()?.strip_prefix(key).map(ToOwned::to_owned)
    };
    Some(format!("{}T{}", key(hour.parent()?, "date=")?, key(hour, "hour=")?))
}

/// Removes the folders of a file below the archive, unless they contain something else.
pub(super) fn remove_empty(path: &Path, archive: &Path) {
    let folders = path.ancestors().skip(1).take_while(|it| *it != archive);
    for folder in folders {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::watch;

    use super::*;
    use crate::collector::{ArchiveCounts, Collector, Keep, Results, Settled};

    const HOUR: i64 = 3_600_000_000_000;

    fn settled(number: u64) -> Settled {
        let content = ObservedContent::Dropped { until: Time::from_nanos(HOUR), packets: 7 };
        let (point, spool, epoch, numbers, is_unknown) = (Point::A, 71, 2, number..=number, false);
        let batch = ObservedBatch { point, spool, epoch, numbers, is_unknown, content };
        let observed = vec![(BTreeSet::from([Time::from_nanos(0)]), batch)];
        Settled { observed, ..Settled::nothing(Time::from_nanos(HOUR)) }
    }

    fn names(archive: &Path) -> Vec<String> {
        let files = observation_files(archive).unwrap().into_iter();
        let mut names: Vec<_> =
            files.map(|it| it.path.strip_prefix(archive).unwrap().display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn file_that_is_written_again_after_a_crash_replaces_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        let mut results = Results::open(&folder.path().join("results")).unwrap();
        results.store(7, &settled(1)).unwrap();
        let (_, tasks) = watch::channel(Arc::new(BTreeMap::new()));
        let collector = Arc::new(Collector::new(results, tasks));
        let keep = Keep { age: Duration::from_secs(1 << 40), bytes: None };
        let archive = Archive::new(path.clone(), Arc::clone(&collector), keep);
        let name: Name = "p".parse().unwrap();
        let write = || archive.write_observations(7, &name, |_| Time::from_nanos(i64::MAX));
        // A crash after the file was written, before its batches are deleted; a further batch arrives.
        let hour = collector.results().next_observed_hour(7, |_| Time::from_nanos(i64::MAX));
        archive.write_point(7, &name, &hour.unwrap().unwrap(), Point::A).unwrap();
        collector.results().store(7, &settled(2)).unwrap();
        write().unwrap();
        let first = "batches/task=p/date=1970-01-01/hour=00/point=a/7-2-1.parquet";
        assert_eq!(names(&path), [first]);
        // A later batch is in a file of its own.
        collector.results().store(7, &settled(3)).unwrap();
        write().unwrap();
        write().unwrap();
        assert_eq!(names(&path), [first, &first.replace("7-2-1", "7-2-3")]);
        // Dropped batches have no observations.
        assert_eq!(*collector.archived().borrow(), ArchiveCounts::default());
        fs::write(path.join(first).with_extension("new"), "x").unwrap();
        fs::write(path.join(first).with_file_name("70-2-1.parquet"), "x").unwrap();
        archive.remove_observations(7).unwrap();
        assert_eq!(names(&path), [first.replace("7-2-1", "70-2-1")]);
    }
}
