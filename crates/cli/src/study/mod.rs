//! `wirestamp study`: the experiments of papers, made again here. A file for each.

mod timers;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::output::Output;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    study: Study,
}

#[derive(Subcommand)]
enum Study {
    /// What it costs to read each time source (Fedotova and Siemens, "HighPerTimer")
    Timers(timers::Arguments),
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    match arguments.study {
        Study::Timers(arguments) => timers::run(arguments, output),
    }
}
