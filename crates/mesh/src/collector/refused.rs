//! Why the collector rejects deliveries.

use thiserror::Error;

use crate::{DatabaseError, Name};

/// Why a delivery is rejected.
#[derive(Debug, Error)]
pub enum Refused {
    /// The task does not exist.
    #[error("there is no task {0}")]
    NoSuchTask(u64),
    /// The probe takes no part in the task.
    #[error("probe {probe} does not observe point {point} of task {task}")]
    NotYours {
        /// Task.
        task: Name,
        /// Requested point.
        point: u32,
        /// The probe.
        probe: Name,
    },
    /// The task is at another collector, or has come back from one: the probe uses an earlier placement.
    #[error("task {0} moved to another collector")]
    Moved(Name),
    /// Another call delivers from a newer spool, or results could not be stored.
    #[error("another call replaced this one for task {0}; reconnect")]
    Superseded(u64),
    /// A batch was skipped.
    #[error("wrong batch number: expected {0}")]
    OutOfTurn(u64),
    /// Results cannot be stored.
    #[error("cannot store results: {0}")]
    Results(#[from] DatabaseError),
}
