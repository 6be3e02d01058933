//! `wirestamp probe`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use wirestamp_mesh::pki::Token;
use wirestamp_mesh::probe::{Probe, Settings};

use super::{interrupted, log, runtime};
use crate::output::Output;

#[derive(Args)]
#[command(after_help = "\
What it sees waits on disk until the collector has it; what finds no room there is given up, and
counted. A task's points are written PROBE/INTERFACE, or PROBE/INTERFACE@NAMESPACE.

Examples:
  wirestamp probe main.example.org:4747 --token TOKEN   # the first time
  wirestamp probe main.example.org:4747                 # ever after")]
pub(crate) struct Arguments {
    /// The controller
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:4747")]
    controller: String,
    /// What lets this probe in, as `wirestamp pki token` prints it on the controller's machine
    #[arg(long, value_name = "TOKEN")]
    token: Option<Token>,
    /// Keep everything in this folder
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/wirestamp/probe")]
    folder: PathBuf,
    /// Hold so many megabytes for the collector at the most
    #[arg(long, value_name = "MB", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    hold: u64,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments { controller, token, folder, hold } = arguments;
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    log(output);
    let settings = Settings { controller, folder, token, spool_bytes: hold * 1_000_000 };
    let runtime = runtime()?;
    let stop = interrupted()?;
    let probe = runtime.block_on(Probe::open(settings))?;
    output.remark(format!("probe {}; Ctrl-C ends it", probe.name()));
    runtime.block_on(probe.run(stop));
    Ok(ExitCode::SUCCESS)
}
