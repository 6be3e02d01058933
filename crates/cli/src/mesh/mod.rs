//! The commands of the mesh.

mod collector;
mod controller;
mod keeping;
pub(crate) mod lab;
mod pki;
mod privileges;
mod probe;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Subcommand;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;

use crate::interrupt::stop_on_signal;
use crate::output::Output;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Say who belongs to a mesh: make its authority, let nodes in, take certificates back
    Pki(pki::Arguments),
    /// Give tasks to probes, take what they see, and answer who asks for results
    Controller(controller::Arguments),
    /// Take what probes see, apart from the controller, and keep the results
    Collector(collector::Arguments),
    /// Measure on this machine what a controller asks for
    Probe(probe::Arguments),
}

pub(crate) fn run(command: Command, output: Output) -> anyhow::Result<ExitCode> {
    match command {
        Command::Pki(arguments) => pki::run(&arguments, output),
        Command::Controller(arguments) => controller::run(&arguments, output),
        Command::Collector(arguments) => collector::run(arguments, output),
        Command::Probe(arguments) => probe::run(arguments, output),
    }
}

/// What brings up meshes for studies.
#[cfg(feature = "studies")]
#[expect(clippy::unnecessary_wraps, reason = "without the mesh there is none")]
pub(crate) fn bring_up() -> anyhow::Result<wirestamp_studies::mesh::BringUp> {
    Ok(lab::study::bring_up)
}

/// Threads for a node.
fn runtime() -> anyhow::Result<Runtime> {
    Runtime::new().context("cannot start threads")
}

/// Ends with the first Ctrl-C.
fn interrupted() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let stop = stop_on_signal()?;
    let (tell, told) = oneshot::channel();
    // None of the runtime, which would wait for it where something else ends the node.
    let wait = move || {
        stop.wait(Duration::MAX);
        // Nobody listens any more if the node ends anyway.
        let _ = tell.send(());
    };
    let thread = thread::Builder::new().name("ws-interrupt".to_owned()).spawn(wait);
    thread.context("cannot start a thread")?;
    Ok(async move { drop(told.await) })
}

/// What nodes have to say goes to standard error.
fn log(output: Output) {
    let most = match output {
        Output { quiet: true, .. } => LevelFilter::WARN,
        Output { verbose: true, .. } => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    };
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(most)
        .init();
}
