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
use std::ops::Range;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wirestamp_packet::Shard;

pub use file::{WrongFile, read_file};
pub use foreign::{ForeignPoint, NotForeign};
pub use measure::{
    ActiveDelay, ArchiveContents, Distribution, Measure, PassiveDelay, ReportedDelay,
};
pub(crate) use measure::{VOLUME, interval};
pub use point::{End, NotAPoint, NotAnEnd, Point};
pub use schedule::{Schedule, Window, WrongSchedule};
pub use spec::WrongTask;
pub(crate) use spec::make_whole;

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
    /// Index of the shard of the task's packets, below [`Measure::shards`]. The shards of a task have successive numbers.
    /// Not part of the text form.
    pub shard: u16,
}

impl Task {
    /// The shard, if the task has several.
    #[must_use]
    pub fn part(&self) -> Option<Shard> {
        let count = self.measure.shards();
        if count > 1 { Shard::new(self.shard, count) } else { None }
    }

    /// Makes it a shard of the task.
    pub(crate) fn set_shard(&mut self, shard: u32) -> Result<(), String> {
        let count = self.measure.shards();
        let index = u16::try_from(shard).ok().filter(|it| *it < count);
        self.shard = index.ok_or_else(|| format!("it has no shard {shard}, but {count} shards"))?;
        Ok(())
    }
}

/// All tasks, also ended ones, by number. Numbers are never reused.
pub type Tasks = BTreeMap<u64, TaskRecord>;

/// The tasks, without the further shards of each: the first shard stands for the task.
pub(crate) fn without_shards(
    tasks: &Tasks,
) -> impl DoubleEndedIterator<Item = (&u64, &TaskRecord)> {
    tasks.iter().filter(|(_, it)| it.task.shard == 0)
}

/// Numbers of all shards of a task, given the number of its first one.
pub(crate) fn shards(first: u64, entered: &TaskRecord) -> Range<u64> {
    first..first.saturating_add(entered.task.measure.shards().into())
}

/// Number of the first shard of a task; the number itself if there is no such task.
pub(crate) fn first_shard(number: u64, tasks: &Tasks) -> u64 {
    let shard = tasks.get(&number).map_or(0, |it| it.task.shard);
    number.saturating_sub(shard.into())
}

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
