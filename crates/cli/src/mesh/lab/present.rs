//! What is shown of a run: each second meanwhile, everything in the end.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use wirestamp_lab::results::{Delay, Second};
use wirestamp_report::Check;

use super::results::Task;
use crate::check::checks;
use crate::output::{mean, time};
use crate::table::table;

/// What came of it.
#[derive(Serialize)]
pub(super) struct Findings {
    /// Whether it was ended before its time, or had none.
    pub(super) interrupted: bool,
    pub(super) rate_bits_per_s: u64,
    pub(super) queue_bytes: u32,
    /// From when the nodes are started, in seconds.
    pub(super) first_delay_s: f64,
    /// How long nodes were cut off, in seconds.
    pub(super) cut_s: Option<f64>,
    pub(super) tasks: Vec<Task>,
    pub(super) checks: Vec<Check>,
    /// Where logs and results are kept.
    pub(super) folder: Option<PathBuf>,
}

/// What is shown of a second.
const HEADER: [&str; 8] = ["second", "task", "sent", "lost", "delay min", "mean", "max", "error"];

/// The names of what is shown of a second.
pub(super) fn header() -> String {
    row(HEADER)
}

/// A second of a task.
pub(super) fn line(number: i64, task: &Task, second: &Second) -> String {
    let Second { counts, delay_ns, error_ns, .. } = second;
    let [least, average, most] = match delay_ns {
        Some(it) => [time(it.min), mean(it.mean), time(it.max)],
        None => ["-"; 3].map(str::to_owned),
    };
    let error = error_ns.map_or("not known".to_owned(), time);
    row([
        &number.to_string(),
        task.name,
        &counts.sent.to_string(),
        &counts.lost.to_string(),
        &least,
        &average,
        &most,
        &error,
    ])
}

/// A row of a table whose rows are not known in advance.
fn row(cells: [&str; 8]) -> String {
    let [number, task, sent, lost, least, average, most, error] = cells;
    format!(
        "{number:>6}  {task:<4}  {sent:>6}  {lost:>6}  {least:>9}  {average:>9}  {most:>9}  {error:>9}"
    )
}

pub(super) fn text(findings: &Findings) -> String {
    let cells = |task: &Task| {
        let delay = task.owd_ns;
        let of = |show: &dyn Fn(Delay) -> String| delay.map_or("-".to_owned(), show);
        vec![
            task.name.to_owned(),
            task.counts.sent.to_string(),
            task.counts.matched.to_string(),
            task.counts.lost.to_string(),
            task.counts.undetermined_sent.to_string(),
            of(&|it| time(it.min)),
            of(&|it| mean(it.mean)),
            of(&|it| time(it.max)),
            task.error_ns.map_or("not known".to_owned(), time),
        ]
    };
    let header =
        ["task", "sent", "arrived", "lost", "given up", "delay min", "mean", "max", "error"];
    let rows: Vec<_> = findings.tasks.iter().map(cells).collect();
    let mut text = String::new();
    if findings.interrupted {
        text.push_str("Interrupted: these are the figures of the part that ran.\n\n");
    }
    text.push_str(&table(&header, &rows));
    text.push('\n');
    text.push_str(&checks(&findings.checks));
    if let Some(folder) = &findings.folder {
        let _ = writeln!(text, "\nlogs and results: {}", folder.display());
    }
    text
}
