//! What Prometheus is told of tasks that count packets or follow flows: sums of what is kept, which a restart does not
//! change.

use std::collections::BTreeMap;
use std::sync::Arc;

use wirestamp_results::Families;

use crate::Name;
use crate::collector::Sum;
use crate::controller::{NoAnswer, Sources};
use crate::task::{Entered, Measure, Tasks};

/// What there is of a task.
pub(super) enum Counted {
    Sum(Sum),
    Flows(u64),
}

/// Asks what there is of each task that was not ended; of those whose collector does not answer in time nothing is told.
pub(super) async fn ask(
    tasks: &Tasks,
    sources: &Arc<Sources>,
) -> BTreeMap<u64, Result<Counted, NoAnswer>> {
    let is_asked = |it: &Entered| it.ended.is_none() && !it.task.measure.is_delay();
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

/// Shows what was told.
pub(super) fn show(
    counted: BTreeMap<u64, Result<Counted, NoAnswer>>,
    tasks: &Tasks,
    families: &mut Families,
) -> Result<(), NoAnswer> {
    for (number, told) in counted {
        let name = &tasks[&number].task.name;
        match super::unless_away(told)? {
            Some(Counted::Sum(sum)) => show_sum(name, &sum, families),
            Some(Counted::Flows(flows)) => show_flows(name, flows, families),
            None => {}
        }
    }
    Ok(())
}

fn show_sum(task: &Name, sum: &Sum, families: &mut Families) {
    let labels = [("task", task.to_string())];
    for (name, help, count) in [
        ("packets", "Packets that passed the point of a task that counts.", sum.packets),
        ("bytes", "Their bytes on the wire, with the link header.", sum.bytes),
        ("missed_packets", "Packets that the capture lost there, of whatever kind.", sum.missed),
    ] {
        families.counter(&format!("wirestamp_task_{name}_total"), help, &labels, count);
    }
    families.seconds_total(
        "wirestamp_task_watched_seconds_total",
        "For how long somebody looked.",
        &labels,
        sum.watched_ns,
    );
}

fn show_flows(task: &Name, flows: u64, families: &mut Families) {
    families.gauge(
        "wirestamp_task_flows",
        "Flows of which something is kept, 100,000 at the most.",
        &[("task", task.to_string())],
        super::float(flows),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_counters_and_flows_come_and_go() {
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
