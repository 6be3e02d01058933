//! The newest results of all tasks at once.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use wirestamp_clock::{Time, Utc};

use super::{Brief, Collector, Counted};
use crate::DatabaseError;
use crate::task::Measure;

/// The newest of a task, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Recent {
    /// Of a path.
    Windows(Vec<Brief>),
    /// Of a point.
    Intervals(Vec<Counted>),
}

impl Collector {
    /// What tasks that are not ended have measured from a time on, by their numbers: so many of each at the most, the
    /// newest. Flows are left out, which have no results by the second.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn recent(
        &self,
        from: Time<Utc>,
        most: u32,
    ) -> Result<BTreeMap<u64, Recent>, DatabaseError> {
        let tasks = self.tasks().borrow().clone();
        let mut all = BTreeMap::new();
        for (number, entered) in tasks.iter().filter(|(_, it)| it.ended.is_none()) {
            // Each by itself: what is to be stored need not wait for all of them.
            let results = self.results();
            let recent = match entered.task.measure {
                Measure::PassiveDelay(_) | Measure::ReportedDelay(_) | Measure::ActiveDelay(_) => {
                    Recent::Windows(results.briefs(*number, from, most)?)
                }
                Measure::Volume { .. } | Measure::Traffic { .. } => {
                    Recent::Intervals(results.newest_counted(*number, from, most)?)
                }
                Measure::Flows { .. } => continue,
            };
            all.insert(*number, recent);
        }
        Ok(all)
    }
}
