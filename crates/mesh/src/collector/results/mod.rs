//! Database of results and of each task's progress. What is stored together becomes visible together.

mod brief;
mod counts;
mod counts_schema;
mod epochs;
mod flows;
mod histograms;
mod hours;
mod mos;
mod observed;
mod progress;
mod range;
mod removal;
mod return_paths;
mod rows;
mod shard_windows;
mod shared_counts;
mod spreads;
mod stored_rows;
mod tables;
mod windows;

use std::ops::Range;
use std::path::Path;

use rusqlite::Transaction;
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

use super::Settled;
use crate::DatabaseError;
use crate::database::Database;
pub use brief::Brief;
pub use epochs::{Begun, EpochBegin, Handover, PointBegin};
pub use histograms::{Histograms, Missing};
pub(crate) use observed::ObservedHour;
pub use progress::{Delivered, Progress};
pub use range::{Hour, ResultRange, Step};
pub use rows::{Counted, Measured, MeasuredReturn, MosUnavailable, NoTimes, NotReported, Sum};
pub(crate) use shard_windows::{ShardWindow, merge_shards};
pub use spreads::Spread;
pub(crate) use stored_rows::{StoredRow, merged, merged_shard};
use tables::SCHEMA;

/// The database.
pub struct Results {
    database: Database,
}

impl Results {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// When it cannot be read or written, or another process has it open.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Ok(Self { database: Database::open(path, &SCHEMA)? })
    }

    /// Progress of a task.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn progress(&self, task: u64) -> Result<Progress, DatabaseError> {
        self.database.read(|database| progress::progress(database, task))
    }

    /// Begins a new spool of a point; its first batch follows number `behind`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin_spool(
        &mut self,
        task: u64,
        point: Point,
        spool: i64,
        behind: u64,
    ) -> Result<(), DatabaseError> {
        self.database.change(|change| progress::begin_spool(change, task, point, (spool, behind)))
    }

    /// Begins an epoch of a task that moved here: results from its start on are computed from the batches of the given
    /// spools. Results of an earlier epoch from then on are deleted.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin_epoch(&mut self, task: u64, begin: &EpochBegin) -> Result<(), DatabaseError> {
        self.database.change(|change| epochs::begin(change, task, begin))
    }

    /// The tasks that moved here, and where their results begin.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn begun(&self) -> Result<Vec<Begun>, DatabaseError> {
        self.database.read(epochs::begun)
    }

    /// Deletes results that belong to the collector to which a task moved: the probes had no receipt for them, so that
    /// one has computed them, too. Returns whether there were any.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn hand_over(&mut self, task: u64, handover: &Handover) -> Result<bool, DatabaseError> {
        self.database.change(|change| epochs::hand_over(change, task, handover))
    }

    /// Stores final results of a task.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is stored.
    pub fn store(&mut self, task: u64, settled: &Settled) -> Result<(), DatabaseError> {
        self.store_all([(task, settled)])
    }

    /// Stores final results of several tasks, in one transaction.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is stored.
    pub fn store_all<'a>(
        &mut self,
        results: impl IntoIterator<Item = (u64, &'a Settled)>,
    ) -> Result<(), DatabaseError> {
        self.database.change(|change| {
            results.into_iter().try_for_each(|(task, settled)| store(change, task, settled))
        })
    }

    /// Measured windows of a task, ordered by time.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn measured(&self, task: u64, range: &ResultRange) -> Result<Vec<Measured>, DatabaseError> {
        self.database.read(|database| windows::measured(database, task, range))
    }

    /// Windows of a shard with their histograms, ordered by time.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn shard_windows(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<Vec<ShardWindow>, DatabaseError> {
        self.database.read(|database| windows::of_shards(database, task, range))
    }

    /// The newest windows of a task from a time on, at most `most`, in a compact form and ordered by time.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn briefs(
        &self,
        task: u64,
        from: Time<Utc>,
        most: u32,
    ) -> Result<Vec<Brief>, DatabaseError> {
        self.database.read(|database| brief::newest(database, task, from, most))
    }

    /// The newest counted intervals of a task from a time on, at most `most`, ordered by time.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn newest_counted(
        &self,
        task: u64,
        from: Time<Utc>,
        most: u32,
    ) -> Result<Vec<Counted>, DatabaseError> {
        self.database.read(|database| counts::newest(database, task, from, most))
    }

    /// Histograms of a time range (nanoseconds since 1970, UTC), from stored hours, minutes and, at the ends, seconds.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn histograms(&self, task: u64, range: Range<i64>) -> Result<Histograms, DatabaseError> {
        self.database.read(|database| histograms::found(database, task, range))
    }

    /// Counted intervals of a task, ordered by time, including the current one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn counted(&self, task: u64, range: &ResultRange) -> Result<Vec<Counted>, DatabaseError> {
        self.database.read(|database| counts::counted(database, task, range))
    }

    /// Flow reports of a task whose last packet is in a time range, the latest first; the step is ignored. Each is a
    /// JSON object with the keys of `wirestamp flows --json`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn flows(&self, task: u64, range: &ResultRange) -> Result<Vec<String>, DatabaseError> {
        self.database.read(|database| flows::found(database, task, range))
    }

    /// Sum of a counting task.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sum(&self, task: u64) -> Result<Sum, DatabaseError> {
        self.database.read(|database| counts::sum(database, task))
    }

    /// Number of stored flows of a task.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn flow_count(&self, task: u64) -> Result<u64, DatabaseError> {
        self.database.read(|database| flows::count(database, task))
    }

    /// Number of stored flows whose first packet passed in a time range, in nanoseconds since 1970 (UTC).
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn flows_begun(&self, task: u64, range: Range<i64>) -> Result<u64, DatabaseError> {
        self.database.read(|database| flows::begun(database, task, &range))
    }

    /// Stored rows of windows that begin in a time range, in nanoseconds since 1970 (UTC).
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn stored_rows(
        &self,
        task: u64,
        range: Range<i64>,
    ) -> Result<Vec<StoredRow>, DatabaseError> {
        self.database.read(|database| stored_rows::found(database, task, range))
    }

    /// Whether a task has as many flows as are stored, so that older ones may have been deleted.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn has_most_flows(&self, task: u64) -> Result<bool, DatabaseError> {
        self.database.read(|database| flows::is_bounded(database, task))
    }

    /// The next hour to archive, if it is complete: `next_results` returns the earliest time of further results, given
    /// the settled time. Its last minute and the hour itself are merged if necessary.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn next_hour(
        &mut self,
        task: u64,
        next_results: impl FnOnce(Time<Utc>) -> Time<Utc>,
    ) -> Result<Option<Hour>, DatabaseError> {
        self.database.change(|change| hours::next(change, task, next_results))
    }

    /// Marks an hour as archived, unless more results have arrived since it was read. Later results cause another
    /// archiving.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn archived(&mut self, task: u64, hour: &Hour) -> Result<(), DatabaseError> {
        self.database.change(|change| hours::archived(change, task, hour))
    }

    /// Deletes archived hours that ended before a time, and old flows. Minutes and hours stay, and the seconds of the
    /// current minute.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget(&mut self, task: u64, before: Time<Utc>) -> Result<(), DatabaseError> {
        self.database.change(|change| hours::forget(change, task, before))
    }

    /// Whether anything is stored of a task.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn is_stored(&self, task: u64) -> Result<bool, DatabaseError> {
        self.database.read(|database| removal::is_stored(database, task))
    }

    /// Deletes results of a task, at most `most` rows of each table. Returns the number of rows deleted: 0 if none is
    /// left.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remove(&mut self, task: u64, most: u32) -> Result<usize, DatabaseError> {
        self.database.change(|change| removal::remove(change, task, most))
    }

    /// The newest window of a task.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn newest(&self, task: u64) -> Result<Option<Measured>, DatabaseError> {
        self.database.read(|database| windows::newest(database, task))
    }
}

fn store(change: &Transaction<'_>, task: u64, settled: &Settled) -> rusqlite::Result<()> {
    let before = progress::progress(change, task)?.settled_until;
    for (begin, window) in &settled.windows {
        windows::insert(change, task, *begin, window)?;
    }
    windows::merge(change, task, before, settled.until)?;
    for count in &settled.point_results.counts {
        counts::add(change, task, count)?;
    }
    // The begin of the first batch is not known.
    let is_first = before == Time::from_nanos(i64::MIN);
    let tail = settled.point_results.counts.iter().filter(|it| is_first || it.begin < before);
    shared_counts::keep_tail(change, task, settled.acknowledged[0], tail)?;
    for flow in &settled.point_results.flows {
        flows::put(change, task, flow)?;
    }
    if !settled.point_results.flows.is_empty() {
        flows::bound(change, task)?;
    }
    observed::insert(change, task, settled)?;
    progress::settle(change, task, settled)
}

#[cfg(test)]
mod tests;
