//! Stand-ins for the mesh commands in builds without the feature `mesh`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Subcommand;

use crate::output::Output;
use crate::usage::usage;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Any mesh command, with any arguments
    #[command(
        name = "controller",
        aliases = ["collector", "probe", "pki"],
        hide = true,
        disable_help_flag = true
    )]
    Any {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<OsString>,
    },
}

pub(crate) fn run(_: Command, _: Output) -> anyhow::Result<ExitCode> {
    not_built_in()
}

/// The launcher of meshes for studies; an error in this build.
#[cfg(feature = "studies")]
pub(crate) fn bring_up() -> anyhow::Result<wirestamp_studies::mesh::StartMesh> {
    not_built_in()
}

fn not_built_in<T>() -> anyhow::Result<T> {
    Err(usage("this build of wirestamp has no mesh; build one with `make build-mesh`"))
}

/// Stand-in for `wirestamp lab mesh`.
pub(crate) mod lab {
    use std::ffi::OsString;
    use std::process::ExitCode;

    use clap::Args;

    use super::not_built_in;
    use crate::output::Output;

    #[derive(Args)]
    #[command(disable_help_flag = true)]
    pub(crate) struct Arguments {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<OsString>,
    }

    pub(crate) fn run(_: &Arguments, _: Output) -> anyhow::Result<ExitCode> {
        not_built_in()
    }
}
