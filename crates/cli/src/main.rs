//! `wirestamp`: precise packet timestamps and end-to-end quality of service.
//!
//! Parses arguments, calls the library crates, prints. Results go to standard output, as text or
//! with `--json` as one document; everything else goes to standard error. Exit status: 0 success,
//! 1 failure, 2 usage error.

#![forbid(unsafe_code)]

mod bottleneck;
mod capture;
mod clock;
mod delay;
mod demo;
#[cfg(all(test, feature = "mesh", feature = "studies"))]
mod documented_tests;
mod extcap;
mod files;
mod flows;
mod interrupt;
mod lab;
mod layers;
#[cfg_attr(not(feature = "mesh"), path = "meshless.rs")]
mod mesh;
mod metrics;
mod output;
mod parse;
mod progress;
mod quality;
mod redirection;
mod reflect;
mod restamp;
mod row_files;
mod schema;
mod send;
mod stamp;
#[cfg_attr(not(feature = "studies"), path = "no_studies.rs")]
mod study;
mod table;
mod tap;
mod target;
mod usage;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Output;
use usage::suggest_partial;

/// Precise packet timestamps and end-to-end quality of service, on ordinary Linux machines.
///
/// Every delay is reported with the error bound of the clocks that measured it.
#[derive(Parser)]
#[command(name = "wirestamp", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show this machine's clocks, the one in use, its calibration, and the UTC sync status
    Clock(clock::Arguments),
    /// Capture and timestamp the packets of an interface
    Capture(capture::Arguments),
    /// Improve the timestamps of a capture afterwards, from its saved anchors
    Restamp(restamp::Arguments),
    /// Send paced traffic; each packet carries an identity and its send time
    Send(send::Arguments),
    /// Measure both directions with test packets to a reflector (STAMP, TWAMP Light)
    Stamp(stamp::Arguments),
    /// Answer STAMP test packets with their receive and send times
    Reflect(reflect::Arguments),
    /// Measure one-way delay, loss, reordering and duplicates between two points
    Delay(delay::Arguments),
    /// Show the quality of each flow of a file or interface: loss, jitter, round-trip time, MOS
    Flows(flows::Arguments),
    /// Measure the time that packets spend in each layer of this host: driver, stack, socket, application
    Layers(layers::Arguments),
    /// Build, use and remove a test bed of network namespaces
    Lab(lab::Arguments),
    /// Measure a call, a video and a burst across a bottleneck, and check the results against known values
    Demo(demo::Arguments),
    /// Reproduce the experiment of a paper and compare the results with the paper's
    Study(study::Arguments),
    #[command(flatten)]
    Mesh(mesh::Command),
    /// Print the JSON schema of the document that a command prints with --json
    Schema(schema::Arguments),
    /// Add Wirestamp's interfaces to Wireshark and tshark, to capture with precise timestamps there
    Extcap(extcap::Arguments),
}

fn main() -> ExitCode {
    if let Some(result) = extcap::respond_to_wireshark(std::env::args_os()) {
        return status(result);
    }
    let Arguments { output, command } = Arguments::parse();
    let result = match command {
        Command::Clock(arguments) => clock::run(&arguments, output),
        Command::Capture(arguments) => capture::run(&arguments, output),
        Command::Restamp(arguments) => restamp::run(&arguments, output),
        Command::Send(arguments) => send::run(&arguments, output),
        Command::Stamp(arguments) => stamp::run(arguments, output),
        Command::Reflect(arguments) => reflect::run(&arguments, output),
        Command::Delay(arguments) => suggest_partial(delay::run(&arguments, output)),
        Command::Flows(arguments) => suggest_partial(flows::run(&arguments, output)),
        Command::Layers(arguments) => layers::run(&arguments, output),
        Command::Lab(arguments) => lab::run(arguments, output),
        Command::Demo(arguments) => demo::run(arguments, output),
        Command::Study(arguments) => study::run(arguments, output),
        Command::Mesh(command) => mesh::run(command, output),
        Command::Schema(arguments) => schema::run(&arguments, output),
        Command::Extcap(arguments) => extcap::run(&arguments, output),
    };
    status(result)
}

/// The exit status; prints the error, if any.
fn status(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        // The reader of our output has closed the pipe, as in `wirestamp ... | head`.
        Err(error) if usage::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::to_stderr(format_args!("wirestamp: {error:#}"));
            if usage::is_usage(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
