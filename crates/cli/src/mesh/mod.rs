//! The commands of the mesh: pki, controller, collector, probe.

mod collector;
mod controller;
mod join;
#[cfg(feature = "kafka")]
mod kafka;
pub(crate) mod lab;
mod log;
mod node;
pub(crate) mod pki;
mod privileges;
mod probe;

use std::process::ExitCode;

use clap::Subcommand;

use crate::output::Output;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Manage the certificate authority (CA) of a mesh: tokens, certificates, revocation
    Pki(pki::Arguments),
    /// Run a controller: sends tasks to probes, stores their observations, serves the results
    Controller(controller::Arguments),
    /// Run a separate collector: receives observations of probes and stores the results
    Collector(collector::Arguments),
    /// Run a probe: measures the tasks of a controller on this machine
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

/// The launcher of meshes for studies.
#[cfg(feature = "studies")]
#[expect(clippy::unnecessary_wraps, reason = "without the mesh there is none")]
pub(crate) fn bring_up() -> anyhow::Result<wirestamp_studies::mesh::StartMesh> {
    Ok(lab::study::bring_up)
}
