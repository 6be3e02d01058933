//! Removed tasks: their results are deleted, and their late batches are acknowledged without being stored.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Collector, Refused};
use crate::DatabaseError;
use crate::task::Removed;

/// Max rows deleted from a table at a time: others can use the database in between.
const MAX_ROWS: u32 = 5000;

impl Collector {
    /// Knows the removed tasks.
    #[must_use]
    pub fn with_removed(mut self, removed: watch::Receiver<Arc<Removed>>) -> Self {
        self.removed = removed;
        self
    }

    /// The removed tasks and their changes.
    pub(super) fn removed(&self) -> watch::Receiver<Arc<Removed>> {
        self.removed.clone()
    }

    /// Whether a task was removed. While the results are locked, a removal waits: what is stored before it is deleted.
    pub(super) fn is_removed(&self, task: u64) -> bool {
        self.removed.borrow().contains(&task)
    }

    /// An error if a task was removed.
    pub(super) fn check_not_removed(&self, task: u64) -> Result<(), Refused> {
        if self.is_removed(task) { Err(Refused::Superseded(task)) } else { Ok(()) }
    }

    /// Whether results of a task are stored.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn is_stored(&self, task: u64) -> Result<bool, DatabaseError> {
        self.results().is_stored(task)
    }

    /// Ends the deliveries of a removed task and deletes its results.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn remove(&self, task: u64) -> Result<(), DatabaseError> {
        self.supersede(task);
        // The lock is released after each call.
        while self.results().remove(task, MAX_ROWS)? > 0 {}
        Ok(())
    }
}
