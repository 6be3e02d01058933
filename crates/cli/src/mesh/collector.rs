//! `wirestamp collector`.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use rustix::thread::CapabilitySet;
use wirestamp_mesh::collector::node::{Node, Settings};
use wirestamp_mesh::pki::Token;

use super::node::{Keeping, interrupted, log, runtime};
use super::privileges::As;
use crate::output::Output;

#[derive(Args)]
#[command(after_help = "\
A controller has a collector in it, which is enough for most. This is one on its own. Tasks that
begin once it is there are delivered here, and stay here; it keeps their results in its folder,
and the controller asks it for them. It gives up all capabilities once it listens.

Examples:
  wirestamp pki token store --role collector            # on the controller's machine
  wirestamp collector --controller main.example.org:4747 --token TOKEN --listen 0.0.0.0:4749
  wirestamp collector --controller main.example.org:4747 --listen 0.0.0.0:4749  # ever after")]
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
    /// What lets this collector in, as `wirestamp pki token` prints it on the controller's machine
    #[arg(long, value_name = "TOKEN", env = "WIRESTAMP_TOKEN", hide_env_values = true)]
    token: Option<Token>,
    /// Listen here, for probes and the controller
    #[arg(
        short,
        long,
        value_name = "ADDRESS:PORT",
        env = "WIRESTAMP_LISTEN",
        default_value = "127.0.0.1:4749"
    )]
    listen: SocketAddr,
    /// Where probes and the controller reach it, if not where it listens. Without it, one that listens at
    /// 0.0.0.0 is reached where its calls to the controller come from
    #[arg(long, value_name = "HOST:PORT", env = "WIRESTAMP_REACH")]
    reach: Option<String>,
    /// Keep everything in this folder
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/wirestamp/collector")]
    folder: PathBuf,
    #[command(flatten)]
    keeping: Keeping,
    #[command(flatten)]
    user: As,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments { controller, token, listen, reach, folder, keeping, user } = arguments;
    let socket = TcpListener::bind(listen).with_context(|| format!("cannot listen at {listen}"))?;
    user.make_folder(&folder)?;
    user.keep_only(CapabilitySet::empty(), &[&folder], output)?;
    log(output);
    let keep = keeping.keep();
    let settings = Settings { socket, reach, controller, folder, token, keep };
    let runtime = runtime()?;
    let mut stop = pin!(interrupted()?);
    runtime.block_on(async {
        // It may wait for its controller to let it in.
        let node = tokio::select! {
            opened = Node::open(settings) => opened?,
            () = &mut stop => return Ok(ExitCode::SUCCESS),
        };
        let (name, address) = (node.name(), node.address());
        output.remark(format!("collector {name} listens at {address}; Ctrl-C ends it"));
        if address.ip().is_loopback() {
            output.remark("only this machine can reach that: --listen opens it to others");
        }
        node.run(stop).await.context("cannot go on listening")?;
        Ok(ExitCode::SUCCESS)
    })
}
