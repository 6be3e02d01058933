//! `wirestamp`: precise packet timestamps and end-to-end quality of service.
//!
//! Parses the arguments, calls the floors below, prints. Results go to standard output, as text or
//! with `--json` as one document; everything else goes to standard error. The exit status is 0 when
//! all went well, 1 when something failed, 2 when the arguments made no sense.

#![forbid(unsafe_code)]

mod capture;
mod check;
mod clock;
mod delay;
mod demo;
mod extcap;
mod files;
mod flows;
mod interrupt;
mod lab;
mod layers;
#[cfg_attr(not(feature = "mesh"), path = "meshless.rs")]
mod mesh;
mod metrics;
mod namespace;
mod numbers;
mod output;
mod progress;
mod quality;
mod reflect;
mod restamp;
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
/// Every figure of delay comes with the error bound of the clock that measured it.
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
    /// Show the clocks of this machine, which one is used, how well it is known, and who keeps it on UTC
    Clock(clock::Arguments),
    /// Capture and stamp the packets of an interface
    Capture(capture::Arguments),
    /// Convert the stamps of a capture again, better, with the anchors kept beside it
    Restamp(restamp::Arguments),
    /// Send paced traffic, each packet with an identity and its send time
    Send(send::Arguments),
    /// Send test packets to a reflector and measure both directions (STAMP, TWAMP Light)
    Stamp(stamp::Arguments),
    /// Return the test packets of others with the times at which they came and left (STAMP)
    Reflect(reflect::Arguments),
    /// Measure one-way delay, loss, reordering and duplication between two points
    Delay(delay::Arguments),
    /// Show the quality of each flow of a file or interface: loss, jitter, round trip, MOS
    Flows(flows::Arguments),
    /// Follow packets through this host, received or sent: driver, stack, socket, application
    Layers(layers::Arguments),
    /// Build, use and remove a test bed of network namespaces
    Lab(lab::Arguments),
    /// Measure a call, a video and a burst across a bottleneck, and check it against the truth
    Demo(demo::Arguments),
    /// Make the experiment of a paper again, and show it beside the paper's numbers
    Study(study::Arguments),
    #[command(flatten)]
    Mesh(mesh::Command),
    /// Make Wireshark and tshark list our interfaces, to capture with precise stamps from there
    Extcap(extcap::Arguments),
}

fn main() -> ExitCode {
    if let Some(answered) = extcap::answer(std::env::args_os()) {
        return status(answered);
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
        Command::Extcap(arguments) => extcap::run(&arguments, output),
    };
    status(result)
}

/// The exit status, after a line about what went wrong.
fn status(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        // Whoever read our output has seen enough of it, as in `wirestamp ... | head`.
        Err(error) if usage::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wirestamp: {error:#}");
            if usage::is_usage(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
