//! `wirestamp study list`.

use std::process::ExitCode;

use serde::Serialize;
use wirestamp_study::{overhead, timers};

use crate::output::Output;

/// A study that can be run.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    about: &'static str,
    paper: &'static str,
}

const STUDIES: [Entry; 2] = [
    Entry { name: "timers", about: "what it costs to read the time", paper: timers::PAPER },
    Entry { name: "overhead", about: "what it costs to stamp a packet", paper: overhead::PAPER },
];

#[derive(Serialize)]
struct List {
    studies: [Entry; 2],
}

pub(crate) fn run(output: Output) -> anyhow::Result<ExitCode> {
    output.result(&List { studies: STUDIES }, |list| {
        let line =
            |Entry { name, about, paper }: &Entry| format!("{name:<10}{about}\n{:10}{paper}\n", "");
        list.studies.iter().map(line).collect()
    })?;
    Ok(ExitCode::SUCCESS)
}
