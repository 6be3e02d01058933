//! Capture tools side by side in one run: loss and CPU time, the error of stamps, and what a capture
//! costs an endpoint.
//!
//! `cargo bench -p wirestamp-studies --bench capture -- --output FOLDER` needs root, the release
//! binary `wirestamp`, and the peers; `make bench-capture` brings all of that.

#![forbid(unsafe_code)]

mod arguments;
mod busy;
mod contenders;
mod endpoint;
mod figures;
mod host_memory;
mod loss;
mod page;
mod process;
mod results;
mod stamps;
mod statistics;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_studies::tester::Bed;

use crate::arguments::{Arguments, Part};
use crate::contenders::Programs;
use crate::results::Results;

/// What every part works with.
struct Bench {
    bed: Bed,
    clock: ClockService,
    programs: Programs,
    results: Results,
    /// Set by SIGINT and SIGTERM.
    stop: Arc<AtomicBool>,
}

impl Bench {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        wirestamp_lab::check_privilege()?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(Self {
            bed: Bed::build()?,
            clock: ClockService::start(Counter::select())
                .context("cannot calibrate the counter")?,
            programs: Programs::find(&arguments.output)?,
            results: Results::begin(&arguments.output)?,
            stop,
        })
    }

    /// Whether the run is to end: between two measurements it does so with what there is.
    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut bench = Bench::new(&arguments)?;
    for part in &arguments.parts() {
        match part {
            Part::Loss => loss::run(&mut bench, &arguments)?,
            Part::Stamps => stamps::run(&mut bench, &arguments)?,
            Part::Endpoint => endpoint::run(&mut bench, &arguments)?,
        }
    }
    bench.results.finish(bench.stop.load(Ordering::Relaxed))
}
