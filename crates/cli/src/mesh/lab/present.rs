//! Output of a run: a line for each second, and the summary.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_lab::results::{Delay, Second};
use wirestamp_report::Check;

use super::costs::Costs;
use super::results::Task;
use crate::output::{count, mean, time};
use crate::table::{checks, table};

/// The result of a run.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MeshResult {
    /// Whether it was ended by a signal.
    pub(super) interrupted: bool,
    /// Rate of the bottleneck, in bit/s.
    pub(super) rate_bits_per_s: u64,
    /// Length of its queue, in bytes.
    pub(super) queue_bytes: u32,
    /// Seconds from starting the nodes to the first delay.
    pub(super) first_delay_s: f64,
    /// Seconds for which nodes were disconnected; null without `--cut`.
    pub(super) cut_s: Option<f64>,
    /// The collector that was killed and started again; null without `--kill-collector`.
    pub(super) killed_collector: Option<String>,
    /// Seconds from the kill until the controller had moved its tasks; null without `--kill-collector`.
    pub(super) moved_after_s: Option<f64>,
    /// Results of each task.
    pub(super) tasks: Vec<Task>,
    /// Comparisons of the results with known values.
    pub(super) checks: Vec<Check>,
    /// Processor time and memory of each process.
    pub(super) costs: Costs,
    /// The folder of logs and results; null without `--keep`.
    pub(super) folder: Option<PathBuf>,
}

/// Columns of a second.
const HEADER: [&str; 8] = ["second", "task", "sent", "lost", "delay min", "mean", "max", "error"];

/// The header of the lines.
pub(super) fn header() -> String {
    row(HEADER)
}

/// The line of a task's second.
pub(super) fn line(number: i64, task: &Task, second: &Second) -> String {
    let Second { counts, delay_ns, error_ns, .. } = second;
    let [min, average, max] = match delay_ns {
        Some(it) => [time(it.min), mean(it.mean), time(it.max)],
        None => ["-"; 3].map(str::to_owned),
    };
    let error = error_ns.map_or("unknown".to_owned(), time);
    row([
        &number.to_string(),
        &task.name,
        &counts.sent.to_string(),
        &counts.lost.to_string(),
        &min,
        &average,
        &max,
        &error,
    ])
}

/// A row with fixed column widths.
fn row(cells: [&str; 8]) -> String {
    let [number, task, sent, lost, min, average, max, error] = cells;
    format!(
        "{number:>6}  {task:<7}  {sent:>6}  {lost:>6}  {min:>9}  {average:>9}  {max:>9}  {error:>9}"
    )
}

pub(super) fn text(result: &MeshResult) -> String {
    let cells = |task: &Task| {
        let delay = task.owd_ns;
        let of = |show: &dyn Fn(Delay) -> String| delay.map_or("-".to_owned(), show);
        vec![
            task.name.clone(),
            task.counts.sent.to_string(),
            task.counts.matched.to_string(),
            task.counts.lost.to_string(),
            task.counts.undetermined_sent.to_string(),
            of(&|it| time(it.min)),
            of(&|it| mean(it.mean)),
            of(&|it| time(it.max)),
            task.error_ns.map_or("unknown".to_owned(), time),
        ]
    };
    let header =
        ["task", "sent", "arrived", "lost", "undetermined", "delay min", "mean", "max", "error"];
    let rows: Vec<_> = result.tasks.iter().map(cells).collect();
    let mut text = String::new();
    if result.interrupted {
        text.push_str("Interrupted: these are the results up to then.\n\n");
    }
    text.push_str(&table(&header, &rows));
    text.push('\n');
    text.push_str(&checks(&result.checks));
    text.push('\n');
    text.push_str(&costs(&result.costs));
    if let Some(folder) = &result.folder {
        let _ = writeln!(text, "\nlogs and results: {}", folder.display());
    }
    text
}

/// The table of the processes, and the costs of an observation.
fn costs(costs: &Costs) -> String {
    let unknown = || "unknown".to_owned();
    let rows = costs.processes.iter().map(|it| {
        let share = Duration::from_nanos(it.processor_time_ns).as_secs_f64() / costs.interval_s;
        vec![
            it.name.clone(),
            format!("{:.2} s", Duration::from_nanos(it.processor_time_ns).as_secs_f64()),
            format!("{:.1} %", share * 100.0),
            it.peak_memory_bytes.map_or_else(unknown, |bytes| format!("{} MiB", bytes >> 20)),
        ]
    });
    let rows = rows.collect::<Vec<_>>();
    let mut text = table(&["process", "CPU time", "of one core", "peak memory"], &rows);
    let nanos = |it: Option<f64>| it.map_or_else(unknown, |it| format!("{it:.0} ns"));
    let _ = writeln!(
        text,
        "\n{} observations in {:.1} s; CPU time of probes and collectors per observation: {}",
        count(costs.observations),
        costs.interval_s,
        nanos(costs.processor_time_per_observation_ns)
    );
    if costs.kafka_processor_time_per_observation_ns.is_some() {
        let bytes = costs.kafka_bytes_per_observation;
        let _ = writeln!(
            text,
            "Kafka, per observation: {} of CPU time, {} stored",
            nanos(costs.kafka_processor_time_per_observation_ns),
            bytes.map_or_else(unknown, |it| format!("{it:.1} bytes"))
        );
    }
    text
}
