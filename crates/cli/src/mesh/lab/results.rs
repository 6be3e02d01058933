//! The mesh's results since the start of traffic.

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_lab::results::{Delay, Second};
use wirestamp_metrics::Counts;

use super::api::Api;
use super::streams::TaskStream;

/// The results of each task.
#[derive(Debug)]
pub(super) struct Results {
    /// Start time in nanoseconds since 1970 (UTC).
    since: i64,
    pub(super) tasks: Vec<Task>,
}

/// The results of a task, summed over all seconds.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TaskResult")]
pub(super) struct Task {
    /// Name of the task.
    pub(super) name: String,
    /// UDP port of its traffic.
    pub(super) port: u16,
    #[serde(flatten)]
    pub(super) counts: Counts,
    /// One-way delay; null without matched packets.
    pub(super) owd_ns: Option<Delay>,
    /// Max error of all seconds, in nanoseconds; null if it is unknown.
    pub(super) error_ns: Option<i64>,
    /// Seconds with a delay that is negative by more than its error.
    pub(super) contradictions: u64,
    /// Start time of the next request.
    #[serde(skip)]
    next: i64,
}

impl Results {
    pub(super) fn new(tasks: &[TaskStream], since: i64) -> Self {
        let task = |it: &TaskStream| Task {
            name: it.name.clone(),
            port: it.port,
            counts: Counts::default(),
            owd_ns: None,
            error_ns: None,
            contradictions: 0,
            next: since,
        };
        Self { since, tasks: tasks.iter().map(task).collect() }
    }

    /// Requests new results, and passes each second to `show`, with its number and task.
    pub(super) fn poll(
        &mut self,
        api: &Api,
        mut show: impl FnMut(i64, &Task, &Second),
    ) -> anyhow::Result<()> {
        for task in &mut self.tasks {
            for second in api.seconds(&task.name, task.next)? {
                task.add(&second);
                show((second.begin_ns - self.since) / 1_000_000_000, task, &second);
            }
        }
        Ok(())
    }

    /// A sum over all tasks.
    pub(super) fn total(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        self.tasks.iter().map(|task| of(&task.counts)).sum()
    }
}

impl Task {
    fn add(&mut self, second: &Second) {
        self.next = second.begin_ns + 1;
        self.counts.add(&second.counts);
        self.owd_ns = match (self.owd_ns, second.delay_ns) {
            (Some(a), Some(b)) => Some(a.and(b)),
            (a, b) => a.or(b),
        };
        self.error_ns = self.error_ns.max(second.error_ns);
        self.contradictions += u64::from(second.contradicts_the_clocks);
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_lab::Impairments;

    use super::super::streams::{Load, tasks};
    use super::*;

    #[test]
    fn seconds_add_up() {
        let path = Impairments::bottleneck(10_000_000, 50_000);
        let mut results = Results::new(&tasks(&path, Load::Bursts).unwrap(), 5);
        let second = |begin_ns, delay_ns| Second {
            begin_ns,
            counts: Counts { sent: 2, lost: 1, ..Counts::default() },
            delay_ns,
            error_ns: Some(begin_ns),
            contradicts_the_clocks: false,
        };
        let delay = |count, mean, max| Some(Delay { count, min: 1, mean, max });
        for it in [second(7, delay(1, 10.0, 9)), second(8, None), second(9, delay(3, 2.0, 6))] {
            results.tasks[0].add(&it);
        }
        let task = &results.tasks[0];
        assert_eq!((task.counts.sent, task.counts.lost, task.next), (6, 3, 10));
        assert_eq!((task.owd_ns, task.error_ns), (delay(4, 4.0, 9), Some(9)));
        assert_eq!(results.total(|counts| counts.sent), 6);
    }
}
