//! `wirestamp collector`.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use rustix::thread::CapabilitySet;
use wirestamp_mesh::collector::node::{Node, Settings};

use super::join::JoinToken;
use super::log::log;
use super::node::{Retention, interrupted, runtime};
use super::privileges::RunAs;
use crate::output::Output;

#[derive(Args)]
#[command(after_help = "\
Every controller contains a collector, which is sufficient in most cases. This command runs a separate \
one. The controller assigns each new task to the connected collector with the fewest tasks. The probes \
of the task send their observations there. The collector stores the results in --folder, and the controller reads them from it. After it listens, it drops all capabilities.

Examples:
  wirestamp pki token store --role collector            # on the controller's machine
  wirestamp collector --controller main.example.org:4747 --token-file FILE --listen 0.0.0.0:4749
  wirestamp collector --controller main.example.org:4747 --listen 0.0.0.0:4749  # later starts")]
pub(crate) struct Arguments {
    /// The controller
    #[arg(
        short,
        long,
        value_name = "HOST:PORT",
        env = "WIRESTAMP_CONTROLLER",
        default_value = "127.0.0.1:4747"
    )]
    controller: String,
    #[command(flatten)]
    token: JoinToken,
    /// Listen on this address for probes and the controller
    #[arg(
        short,
        long,
        value_name = "ADDRESS:PORT",
        env = "WIRESTAMP_LISTEN",
        default_value = "127.0.0.1:4749"
    )]
    listen: SocketAddr,
    /// Address for probes and the controller, if not the listening one [default for 0.0.0.0: the source address of
    /// its connection to the controller]
    #[arg(long, value_name = "HOST:PORT", env = "WIRESTAMP_REACH")]
    reach: Option<String>,
    /// Folder of all data of this node
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/wirestamp/collector")]
    folder: PathBuf,
    #[command(flatten)]
    retention: Retention,
    #[cfg(feature = "kafka")]
    #[command(flatten)]
    kafka: super::kafka::KafkaTopics,
    #[command(flatten)]
    user: RunAs,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments {
        controller,
        token,
        listen,
        reach,
        folder,
        retention,
        #[cfg(feature = "kafka")]
        kafka,
        user,
    } = arguments;
    let token = token.read()?;
    #[cfg(feature = "kafka")]
    let kafka = kafka.settings()?;
    let socket = TcpListener::bind(listen).with_context(|| format!("cannot listen at {listen}"))?;
    let user = user.or_default(&[&folder]);
    user.make_folder(&folder)?;
    user.keep_only(CapabilitySet::empty(), &[&folder], output)?;
    log(output);
    let keep = retention.keep();
    let settings = Settings { socket, reach, controller, folder, token, keep };
    let runtime = runtime()?;
    let mut stop = pin!(interrupted()?);
    runtime.block_on(async {
        // It may have to wait for its controller.
        let node = tokio::select! {
            opened = Node::open(settings) => opened?,
            () = &mut stop => return Ok(ExitCode::SUCCESS),
        };
        #[cfg(feature = "kafka")]
        let node = match kafka {
            Some(settings) => node.with_kafka(settings)?,
            None => node,
        };
        let (name, address) = (node.name(), node.address());
        output.remark(format!("collector {name} is listening at {address}; Ctrl-C ends it"));
        if address.ip().is_loopback() {
            output.remark("reachable from this machine only; add --listen for other machines");
        }
        node.run(stop).await.context("cannot continue to listen")?;
        Ok(ExitCode::SUCCESS)
    })
}
