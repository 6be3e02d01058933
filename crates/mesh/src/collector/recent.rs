//! The newest results of all tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wirestamp_clock::{Time, Utc};

use super::{Brief, Collector, Counted, Results};
use crate::DatabaseError;
use crate::task::Measure;

/// Newest results of a task, ordered by time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Recent {
    /// Windows of a delay task.
    Windows(Vec<Brief>),
    /// Intervals of a counting task.
    Intervals(Vec<Counted>),
}

/// Tasks that are read at a time. Storing results waits meanwhile, and the reading waits for it each time.
const TASKS_AT_A_TIME: usize = 50;

impl Collector {
    /// The newest results of current tasks from a time on, at most `most` per task. Flow tasks have no results per
    /// second and are left out.
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
        let current: Vec<_> = tasks.iter().filter(|(_, it)| it.ended.is_none()).collect();
        for some in current.chunks(TASKS_AT_A_TIME) {
            let results = self.results();
            for (number, entered) in some {
                if let Some(recent) = recent(&results, **number, &entered.task.measure, from, most)?
                {
                    all.insert(**number, recent);
                }
            }
        }
        Ok(all)
    }
}

/// The newest results of a task; none of one that has no results per second.
fn recent(
    results: &Results,
    task: u64,
    measure: &Measure,
    from: Time<Utc>,
    most: u32,
) -> Result<Option<Recent>, DatabaseError> {
    Ok(match measure {
        Measure::PassiveDelay(_) | Measure::ReportedDelay(_) | Measure::ActiveDelay(_) => {
            Some(Recent::Windows(results.briefs(task, from, most)?))
        }
        Measure::Volume { .. } | Measure::Traffic { .. } => {
            Some(Recent::Intervals(results.newest_counted(task, from, most)?))
        }
        Measure::Flows { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::protocol::Count;
    use tokio::sync::watch;
    use wirestamp_clock::Span;
    use wirestamp_metrics::Quality;

    use super::*;
    use crate::collector::{MosUnavailable, PointResults, ResultRange, Settled, Step, Window};
    use crate::task::{Task, TaskRecord, Tasks};

    const TASKS: [&str; 4] = [
        r#"{"name":"p","measure":"passive-delay","from":"a/i","to":"b/i","codec":"g711"}"#,
        r#"{"name":"v","measure":"volume","at":"a/i"}"#,
        r#"{"name":"f","measure":"flows","at":"a/i"}"#,
        r#"{"name":"old","measure":"volume","at":"a/i"}"#,
    ];

    fn tasks() -> Tasks {
        let made = "2027-01-15T08:00:00Z".parse().unwrap();
        let entered = |text: &str| {
            let task: Task = serde_json::from_str(text).unwrap();
            let ended = (task.name.to_string() == "old").then_some(made);
            TaskRecord { task, made, ended }
        };
        (1..).zip(TASKS.map(entered)).collect()
    }

    #[test]
    fn current_tasks_have_recent_results_and_mos() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(&folder.path().join("results")).unwrap();
        let time = |second| Time::from_nanos(0) + Span::from_secs(second);
        let empty = Window {
            quality: Quality::new(),
            offset: Ok(Span::ZERO),
            least: None,
            return_path: None,
        };
        let windows = [1, 2, 3].map(|second| (time(second), empty.clone())).into();
        results.store(1, &Settled { windows, ..Settled::nothing(time(4)) }).unwrap();
        let count = |second| Count {
            begin: time(second),
            packets: 7,
            bytes: 700,
            missed: 0,
            watched: Span::ZERO,
        };
        for task in [2, 4] {
            let point_results =
                PointResults { counts: vec![count(1), count(2)], flows: Vec::new() };
            results.store(task, &Settled { point_results, ..Settled::nothing(time(4)) }).unwrap();
        }
        let (_, tasks) = watch::channel(Arc::new(tasks()));
        let collector = Collector::new(results, tasks);
        let seconds = |from, most| -> Vec<(u64, Vec<i64>)> {
            let recent = collector.recent(time(from), most).unwrap().into_iter();
            let begins = |recent| -> Vec<i64> {
                match recent {
                    Recent::Windows(windows) => windows.iter().map(|it| it.begin_ns).collect(),
                    Recent::Intervals(counted) => counted.iter().map(|it| it.begin_ns).collect(),
                }
            };
            let whole = |nanos: Vec<i64>| nanos.into_iter().map(|it| it / 1_000_000_000).collect();
            recent.map(|(number, it)| (number, whole(begins(it)))).collect()
        };
        assert_eq!(seconds(0, 2), [(1, vec![2, 3]), (2, vec![1, 2])]);
        assert_eq!(seconds(2, 9), [(1, vec![2, 3]), (2, vec![2])]);
        let range = ResultRange { step: Step::AsMeasured, from: 0, until: i64::MAX, most: 9 };
        for measured in collector.measured(1, &range).unwrap() {
            assert_eq!((measured.mos, measured.no_mos), (None, Some(MosUnavailable::NoDelay)));
        }
    }
}
