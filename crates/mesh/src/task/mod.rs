//! Tasks: what to measure, as written in files and sent to the API.
//!
//! A task is a table in a TOML file or a JSON object:
//!
//! ```toml
//! [[task]]
//! name = "backbone"
//! measure = "passive-delay"
//! from = "roof/eth0"
//! to = "cellar/eth1"
//! filter = "udp portrange 5004-5099"
//! share = 0.1
//! schedule = { every = "1h", for = "10m", until = "2027-01-01T00:00:00Z" }
//! ```

mod file;
mod foreign;
mod measure;
mod point;
mod schedule;
mod schema;
mod spec;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use file::{WrongFile, read_file};
pub use foreign::{ForeignPoint, NotForeign};
pub use measure::{
    ActiveDelay, ArchiveContents, Distribution, Measure, PassiveDelay, ReportedDelay,
};
pub(crate) use measure::{VOLUME, interval};
pub use point::{End, NotAPoint, NotAnEnd, Point};
pub use schedule::{Schedule, Window, WrongSchedule};
pub use spec::WrongTask;

pub(crate) use schema::entered_schema;

use crate::Name;
use spec::TaskText;

/// A measurement task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Value", into = "TaskText")]
pub struct Task {
    /// Unique among current tasks.
    pub name: Name,
    /// What to measure, and where.
    pub measure: Measure,
    /// Capture filter (pcap-filter(7)); none for all packets.
    pub filter: Option<String>,
    /// When to measure.
    pub schedule: Schedule,
}

/// All tasks, also ended ones, by number. Numbers are never reused.
pub type Tasks = BTreeMap<u64, TaskRecord>;

/// Numbers of the tasks that were removed with their results.
pub type Removed = BTreeSet<u64>;

/// A task with its times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskRecord {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Creation time, in whole seconds.
    pub made: Timestamp,
    /// When the task was ended, if it was. Its results stay until the task is removed.
    pub ended: Option<Timestamp>,
}
