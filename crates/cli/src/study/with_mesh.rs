//! Studies that can be measured with a mesh, too.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use wirestamp_studies::Entry;

use super::named;
use crate::mesh;
use crate::output::Output;

#[derive(Args)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    as_all: named::Arguments,
    /// Measure with a mesh: controller and probes are separate processes in network namespaces
    #[arg(long)]
    mesh: bool,
}

pub(super) fn run(name: &str, arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments { as_all, mesh } = arguments;
    if !mesh {
        return named::run(name, as_all, output);
    }
    let study = Entry::named(name).with_context(|| format!("there is no study {name}"))?;
    let bring_up = mesh::bring_up()?;
    named::measure(as_all, output, |options, stop, progress| {
        study.run_over_mesh(bring_up, options, stop, progress)
    })
}
