//! `wirestamp study`: reproduces experiments of papers.

mod all;
mod index;
mod list;
mod named;
mod timers;
mod with_mesh;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use wirestamp_report::Circumstances;
use wirestamp_report::Table;
use wirestamp_studies::experiment::Progress;

use crate::output::{Output, plain};
use crate::progress::per_mille;
use crate::table::table;
pub(crate) use index::Index;
pub(crate) use list::List;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    study: Study,
}

#[derive(Subcommand)]
enum Study {
    /// List the studies, each with its paper
    List,
    /// Run all studies and write an index page of their reports
    All(named::Arguments),
    /// Write an index page of the reports in a folder, from their JSON documents
    Index(index::Arguments),
    /// Cost of reading each time source (Fedotova and Siemens, "HighPerTimer")
    Timers(timers::Arguments),
    /// Cost of timestamping a packet (Orosz and Skopkó, 2013)
    Overhead(named::Arguments),
    /// Error of times between arrivals, by timestamping method (Orosz and Skopkó, 2013)
    Interarrival(named::Arguments),
    /// Packet loss by timestamping method (Orosz and Skopkó, 2013)
    Loss(named::Arguments),
    /// Packet loss and timestamp error of each capture technique (Grigorjew et al., 2023)
    Reception(named::Arguments),
    /// Smallest delay change that is detected (Grigorjew et al., 2023)
    Step(named::Arguments),
    /// Max packet rate of a probe without loss (6QM, D4.2, section 2)
    LimitRate(with_mesh::Arguments),
    /// Timestamp error at a constant packet rate (6QM, D4.2)
    TimestampJitter(named::Arguments),
    /// Error of passive one-way delay and loss (6QM, deliverable D4.2)
    PassiveDelay(with_mesh::Arguments),
    /// Difference between active and passive one-way delay of the same packets (6QM, D4.2, section 3.7)
    ActiveDelay(with_mesh::Arguments),
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    match arguments.study {
        Study::List => list::run(output),
        Study::All(arguments) => all::run(arguments, output),
        Study::Index(arguments) => index::run(&arguments, output),
        Study::Timers(arguments) => timers::run(arguments, output),
        Study::Overhead(arguments) => named::run("overhead", arguments, output),
        Study::Interarrival(arguments) => named::run("interarrival", arguments, output),
        Study::Loss(arguments) => named::run("loss", arguments, output),
        Study::Reception(arguments) => named::run("reception", arguments, output),
        Study::Step(arguments) => named::run("step", arguments, output),
        Study::LimitRate(arguments) => with_mesh::run("limit-rate", arguments, output),
        Study::TimestampJitter(arguments) => named::run("timestamp-jitter", arguments, output),
        Study::PassiveDelay(arguments) => with_mesh::run("passive-delay", arguments, output),
        Study::ActiveDelay(arguments) => with_mesh::run("active-delay", arguments, output),
    }
}

/// Title, time and machine of a study.
fn header(title: &str, here: &Circumstances) -> String {
    format!(
        "{title}\n{} UTC; Linux {}; {}; the kernel keeps time by {}\n{}\n",
        here.date, here.kernel, here.processor, here.clocksource, here.command,
    )
}

/// A table below its caption.
fn titled(Table { caption, heads, rows }: &Table) -> String {
    let heads: Vec<_> = heads.iter().map(String::as_str).collect();
    let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|c| plain(c)).collect()).collect();
    format!("{caption}\n{}", table(&heads, &rows))
}

/// Updates the bar with the progress of an experiment, the current run and the remaining time.
fn show(bar: &ProgressBar, Progress { share, left, doing }: &Progress) {
    bar.set_position(per_mille(*share));
    let left = left.as_secs();
    bar.set_message(format!("{}; {}:{:02} left", doing.trim(), left / 60, left % 60));
}
