//! The commands of the mesh.

mod collector;
mod controller;
pub(crate) mod lab;
mod node;
mod pki;
mod privileges;
mod probe;

use std::process::ExitCode;

use clap::Subcommand;

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
