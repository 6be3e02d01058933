//! Metrics of tasks that count packets or follow flows: sums of the stored results, unaffected by a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use wirestamp_metrics::numeric::count_to_f64;
use wirestamp_results::Families;

use super::totals::unless_away;
use crate::Name;
use crate::collector::Sum;
use crate::controller::sources::{QueryError, Sources};
use crate::task::{Measure, TaskRecord, Tasks};

/// Stored results of a task.
pub(super) enum Counted {
    Sum(Sum),
    Flows(u64),
}

/// Queries each current task. Tasks whose collector does not answer in time are left out.
pub(super) async fn ask(
    tasks: &Tasks,
    sources: &Arc<Sources>,
) -> BTreeMap<u64, Result<Counted, QueryError>> {
    let is_asked = |it: &TaskRecord| it.ended.is_none() && !it.task.measure.is_delay();
    let asked = tasks.iter().filter(|(_, it)| is_asked(it)).map(|(number, _)| *number);
    let ask = |sources: Arc<Sources>, number| {
        let is_flows = matches!(tasks[&number].task.measure, Measure::Flows { .. });
        async move {
            if is_flows {
                sources.flow_count(number).await.map(Counted::Flows)
            } else {
                sources.sum(number).await.map(Counted::Sum)
            }
        }
    };
    sources.together(asked, ask).await
}

/// Shows the results.
pub(super) fn show(
    counted: BTreeMap<u64, Result<Counted, QueryError>>,
    tasks: &Tasks,
    families: &mut Families,
) -> Result<(), QueryError> {
    for (number, last) in counted {
        let name = &tasks[&number].task.name;
        match unless_away(last)? {
            Some(Counted::Sum(sum)) => show_sum(name, &sum, families),
            Some(Counted::Flows(flows)) => show_flows(name, flows, families),
            None => {}
        }
    }
    Ok(())
}

fn show_sum(task: &Name, sum: &Sum, families: &mut Families) {
    let labels = [("task", task.to_string())];
    families.add("wirestamp_task_packets_total", &labels, sum.packets);
    families.add("wirestamp_task_bytes_total", &labels, sum.bytes);
    families.add("wirestamp_task_missed_packets_total", &labels, sum.missed);
    let watched = count_to_f64(sum.watched_ns) / 1e9;
    families.add("wirestamp_task_watched_seconds_total", &labels, watched);
}

fn show_flows(task: &Name, flows: u64, families: &mut Families) {
    families.add("wirestamp_task_flows", &[("task", task.to_string())], flows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_counters_and_flows_a_gauge() {
        let mut families = Families::default();
        let (name, watched_ns) = ("load".parse().unwrap(), 1_500_000_000);
        show_sum(&name, &Sum { packets: 3, bytes: 400, missed: 1, watched_ns }, &mut families);
        show_flows(&name, 7, &mut families);
        let text = families.text().unwrap();
        for line in [
            "# TYPE wirestamp_task_packets_total counter",
            "wirestamp_task_packets_total{task=\"load\"} 3",
            "wirestamp_task_bytes_total{task=\"load\"} 400",
            "wirestamp_task_missed_packets_total{task=\"load\"} 1",
            "wirestamp_task_watched_seconds_total{task=\"load\"} 1.5",
            "# TYPE wirestamp_task_flows gauge",
            "wirestamp_task_flows{task=\"load\"} 7",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }
}
