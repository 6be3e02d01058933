//! `wirestamp study` in a build without the studies.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::output::Output;
use crate::usage::usage;

#[derive(Args)]
#[command(after_help = "This build leaves the studies out; build with \"make build-studies\".")]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

pub(crate) fn run(_: Arguments, _: Output) -> anyhow::Result<ExitCode> {
    Err(usage("cannot run studies: this build leaves them out; build with \"make build-studies\""))
}
