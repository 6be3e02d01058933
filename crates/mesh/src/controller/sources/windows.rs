//! Kinds of windows that are read from collectors: those that people see, and those of shards.

use serde::de::DeserializeOwned;

use crate::DatabaseError;
use crate::collector::{
    Collector, Measured, ResultRange, ShardWindow, Step, StoredRow, merged, merged_shard, of_task,
};
use crate::task::Measure;
use crate::v1;
use crate::v1::question::What;

/// A window as read from a collector.
pub(super) trait WindowRow: DeserializeOwned {
    /// Begin, in nanoseconds since 1970 (UTC).
    fn begin(&self) -> i64;

    /// The query for windows.
    fn query(range: v1::ResultRange) -> What;

    /// Reads windows from a collector of this process.
    fn read(own: &Collector, task: u64, range: &ResultRange) -> Result<Vec<Self>, DatabaseError>;

    /// The window that a collector with the rows of all these collectors would have; none without rows.
    fn merged(
        step: Step,
        begin: i64,
        collectors: &[Vec<StoredRow>],
        measure: Option<&Measure>,
    ) -> Result<Option<Self>, DatabaseError>;
}

impl WindowRow for Measured {
    fn begin(&self) -> i64 {
        self.begin_ns
    }

    fn query(range: v1::ResultRange) -> What {
        What::Measured(range)
    }

    fn read(own: &Collector, task: u64, range: &ResultRange) -> Result<Vec<Self>, DatabaseError> {
        own.measured(task, range)
    }

    fn merged(
        step: Step,
        begin: i64,
        collectors: &[Vec<StoredRow>],
        measure: Option<&Measure>,
    ) -> Result<Option<Self>, DatabaseError> {
        Ok(merged(step, begin, collectors)?.map(|it| of_task(it, measure)))
    }
}

impl WindowRow for ShardWindow {
    fn begin(&self) -> i64 {
        self.begin_ns
    }

    fn query(range: v1::ResultRange) -> What {
        What::ShardWindows(range)
    }

    fn read(own: &Collector, task: u64, range: &ResultRange) -> Result<Vec<Self>, DatabaseError> {
        own.results().shard_windows(task, range)
    }

    fn merged(
        step: Step,
        begin: i64,
        collectors: &[Vec<StoredRow>],
        _: Option<&Measure>,
    ) -> Result<Option<Self>, DatabaseError> {
        merged_shard(step, begin, collectors)
    }
}
