//! What is wanted of the probes: tasks, as people write them and as programs send them.
//!
//! A task is a table of a TOML file, or an object of JSON:
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

mod described;
mod end;
mod file;
mod foreign;
mod measure;
mod point;
mod schedule;
mod written;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use end::{End, NotAnEnd};
pub use file::{WrongFile, read_file};
pub use foreign::{ForeignPoint, NotForeign};
pub use measure::{ActiveDelay, Distribution, Measure, PassiveDelay, ReportedDelay};
pub(crate) use measure::{VOLUME, interval};
pub use point::{NotAPoint, Point};
pub use schedule::{Schedule, Window, WrongSchedule};
pub use written::WrongTask;

pub(crate) use described::entered_schema;

use crate::Name;
use written::Written;

/// Something to be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Task {
    /// Its name, which no other task has.
    pub name: Name,
    /// What is measured, and where.
    pub measure: Measure,
    /// Which packets, in the syntax of pcap-filter(7); all, if there is none.
    pub filter: Option<String>,
    /// When.
    pub schedule: Schedule,
}

/// The tasks that there are or were, by their numbers, which are never given again.
pub type Tasks = BTreeMap<u64, TaskRecord>;

/// A task that somebody has entered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskRecord {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// When it was made, in whole seconds.
    pub made: Timestamp,
    /// When it was ended, if it was. Its results stay.
    pub ended: Option<Timestamp>,
}
