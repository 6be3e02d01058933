//! `wirestamp probe`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rustix::thread::CapabilitySet;
use wirestamp_mesh::pki::Token;
use wirestamp_mesh::probe::{Probe, Settings};

use super::node::{interrupted, log, runtime};
use super::privileges::As;
use crate::output::Output;

#[derive(Args)]
#[command(after_help = "\
What it sees waits on disk until the collector has it; what finds no room there is given up, and
counted. A task's points are written PROBE/INTERFACE, or PROBE/INTERFACE@NAMESPACE. Of the
capabilities that it was started with it keeps CAP_NET_RAW, to capture.

Examples:
  wirestamp probe main.example.org:4747 --token TOKEN   # the first time
  wirestamp probe main.example.org:4747                 # ever after")]
pub(crate) struct Arguments {
    /// The controller
    #[arg(
        value_name = "HOST:PORT",
        env = "WIRESTAMP_CONTROLLER",
        default_value = "127.0.0.1:4747"
    )]
    controller: String,
    /// What lets this probe in, as `wirestamp pki token` prints it on the controller's machine
    #[arg(long, value_name = "TOKEN", env = "WIRESTAMP_TOKEN", hide_env_values = true)]
    token: Option<Token>,
    /// Keep everything in this folder
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/wirestamp/probe")]
    folder: PathBuf,
    /// Hold so many megabytes for the collector at the most
    #[arg(long, value_name = "MB", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    hold: u64,
    /// Capture in network namespaces too, where tasks name them; for that it keeps CAP_SYS_ADMIN, which is
    /// most of what root may
    #[arg(long)]
    namespaces: bool,
    #[command(flatten)]
    user: As,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments { controller, token, folder, hold, namespaces, user } = arguments;
    user.make_folder(&folder)?;
    let mut needed = CapabilitySet::NET_RAW;
    needed.set(CapabilitySet::SYS_ADMIN, namespaces);
    user.keep_only(needed, &[&folder], output)?;
    log(output);
    let settings = Settings { controller, folder, token, spool_bytes: hold * 1_000_000 };
    let runtime = runtime()?;
    let mut stop = Box::pin(interrupted()?);
    runtime.block_on(async {
        // It may wait for its controller to let it in.
        let probe = tokio::select! {
            opened = Probe::open(settings) => opened?,
            () = &mut stop => return Ok(ExitCode::SUCCESS),
        };
        output.remark(format!("probe {}; Ctrl-C ends it", probe.name()));
        probe.run(stop).await;
        Ok(ExitCode::SUCCESS)
    })
}
