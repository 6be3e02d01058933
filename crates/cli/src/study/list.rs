//! `wirestamp study list`.

use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_studies::{Entry, STUDIES};

use crate::output::Output;

/// A study that can be run.
#[derive(Serialize, JsonSchema)]
struct Item {
    /// Name: the argument of `wirestamp study`.
    name: &'static str,
    /// Its subject.
    about: &'static str,
    /// The paper whose experiment it repeats.
    paper: &'static str,
    /// Whether `--mesh` measures it with a mesh.
    mesh: bool,
}

/// The studies.
#[derive(Serialize, JsonSchema)]
pub(crate) struct List {
    /// Each study.
    studies: Vec<Item>,
}

pub(crate) fn run(output: Output) -> anyhow::Result<ExitCode> {
    let item = |study: &Entry| {
        let Entry { name, about, paper, .. } = *study;
        Item { name, about, paper, mesh: study.has_mesh() }
    };
    let studies = STUDIES.iter().map(item).collect();
    output.result(&List { studies }, |list| {
        let width = list.studies.iter().map(|study| study.name.len()).max().unwrap_or(0) + 2;
        let line = |Item { name, about, paper, mesh }: &Item| {
            let mesh = if *mesh { "; --mesh measures with a mesh" } else { "" };
            format!("{name:<width$}{about}{mesh}\n{:width$}{paper}\n", "")
        };
        list.studies.iter().map(line).collect()
    })?;
    Ok(ExitCode::SUCCESS)
}
