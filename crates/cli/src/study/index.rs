//! `wirestamp study index`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_studies::site;

use crate::output::Output;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Folder of the reports (NAME.html) and of the documents (NAME.json, from `wirestamp study NAME --json`)
    folder: PathBuf,
}

/// The page that was written.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Index {
    /// Path of the page.
    index: PathBuf,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let index = site::write_saved(&arguments.folder)?;
    output.result(&Index { index }, |it| format!("{}\n", it.index.display()))?;
    Ok(ExitCode::SUCCESS)
}
