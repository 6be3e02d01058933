//! What Prometheus is told of tasks that count packets or follow flows: sums of what is kept, which a restart does not
//! change.

use tracing::debug;
use wirestamp_results::Families;

use crate::Name;
use crate::collector::Sum;
use crate::controller::{NoAnswer, Sources};
use crate::task::{Entered, Measure, Task, Tasks};

/// Shows what there is of each task that was not ended.
///
/// A task whose collector is away is left out.
pub(super) async fn show(
    tasks: &Tasks,
    sources: &Sources,
    families: &mut Families,
) -> Result<(), NoAnswer> {
    for (number, Entered { task, .. }) in tasks.iter().filter(|(_, it)| it.ended.is_none()) {
        match show_task(*number, task, sources, families).await {
            // That a collector is away has a figure of its own.
            Err(error @ NoAnswer::Away { .. }) => {
                debug!("task {}: what it has counted is not told: {error}", task.name);
            }
            told => told?,
        }
    }
    Ok(())
}

async fn show_task(
    number: u64,
    task: &Task,
    sources: &Sources,
    families: &mut Families,
) -> Result<(), NoAnswer> {
    match task.measure {
        Measure::Volume { .. } | Measure::Traffic { .. } => {
            show_sum(&task.name, &sources.sum(number).await?, families);
        }
        Measure::Flows { .. } => {
            show_flows(&task.name, sources.flow_count(number).await?, families);
        }
        Measure::PassiveDelay(_) | Measure::ReportedDelay(_) | Measure::ActiveDelay(_) => {}
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
