//! `wirestamp probe`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rustix::thread::CapabilitySet;
use wirestamp_mesh::probe::{Probe, Settings};

use super::join::JoinToken;
use super::log::log;
use super::node::{interrupted, runtime};
use super::privileges::RunAs;
use crate::output::Output;

#[derive(Args)]
#[command(after_help = "\
Observations stay on disk until the collector has stored their results. If the disk space is used up, \
further ones are discarded and counted. Points of a task are named PROBE/INTERFACE or \
PROBE/INTERFACE@NAMESPACE. The probe drops all capabilities except CAP_NET_RAW, for capturing.

Examples:
  wirestamp probe main.example.org:4747 --token-file FILE   # the first time
  wirestamp probe main.example.org:4747                     # later starts")]
pub(crate) struct Arguments {
    /// The controller
    #[arg(
        value_name = "HOST:PORT",
        env = "WIRESTAMP_CONTROLLER",
        default_value = "127.0.0.1:4747"
    )]
    controller: String,
    #[command(flatten)]
    token: JoinToken,
    /// Folder of all data of this node
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/wirestamp/probe")]
    folder: PathBuf,
    /// Max disk space for observations that the collector has not acknowledged, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    hold: u64,
    /// Allow tasks to capture in network namespaces. The probe then keeps CAP_SYS_ADMIN, which is almost as powerful
    /// as root
    #[arg(long)]
    namespaces: bool,
    #[cfg(feature = "kafka")]
    #[command(flatten)]
    kafka: super::kafka::KafkaBrokers,
    #[command(flatten)]
    user: RunAs,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments {
        controller,
        token,
        folder,
        hold,
        namespaces,
        #[cfg(feature = "kafka")]
        kafka,
        user,
    } = arguments;
    let token = token.read()?;
    #[cfg(feature = "kafka")]
    let kafka = kafka.settings()?;
    let user = user.or_default(&[&folder]);
    user.make_folder(&folder)?;
    let mut needed = CapabilitySet::NET_RAW;
    needed.set(CapabilitySet::SYS_ADMIN, namespaces);
    user.keep_only(needed, &[&folder], output)?;
    log(output);
    let settings = Settings { controller, folder, token, spool_bytes: hold * 1_000_000 };
    let runtime = runtime()?;
    let mut stop = Box::pin(interrupted()?);
    runtime.block_on(async {
        // It may have to wait for its controller.
        let probe = tokio::select! {
            opened = Probe::open(settings) => opened?,
            () = &mut stop => return Ok(ExitCode::SUCCESS),
        };
        #[cfg(feature = "kafka")]
        let probe = match kafka {
            Some(settings) => probe.with_kafka(settings),
            None => probe,
        };
        output.remark(format!("probe {}; Ctrl-C ends it", probe.name()));
        probe.run(stop).await;
        Ok(ExitCode::SUCCESS)
    })
}
