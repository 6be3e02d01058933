//! Capture tools side by side in one run: loss and CPU time, the error of stamps, and what a capture
//! costs an endpoint.
//!
//! `cargo bench -p wirestamp-studies --bench capture -- --output FOLDER` needs root, the release
//! binary `wirestamp`, and the peers; `make bench-capture` brings all of that.

#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod busy;
mod contenders;
mod endpoint;
mod figures;
mod host_memory;
mod loss;
mod process;
mod rate;
mod results;
mod stamps;
mod statistics;

use std::sync::atomic::Ordering;

use clap::Parser;

use crate::arguments::{Arguments, Part};
use crate::bench::Bench;

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
