//! `wirestamp delay`.

mod beyond;
mod clocks;
mod direction;
mod files;
mod findings;
mod layers;
mod live;
mod media;
mod page;
mod point;
mod reservations;
mod round_trip;
mod sample;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use wirestamp_clock::Span;
use wirestamp_metrics::emodel::Codec;
use wirestamp_metrics::flow::FlowConfig;
use wirestamp_metrics::{self as metrics, FlowTable, Sampling};
use wirestamp_session::PointState;

use self::live::Live;
use self::point::Point;
use crate::files::check_outputs;
use crate::output::Output;
use crate::usage::usage;

/// Flows that are reported one by one; those beyond are added up.
const FLOWS: usize = 1000;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    wirestamp delay a.pcapng b.pcapng --codec g711 --report delay.html\n  \
    wirestamp delay tap-a@wirestamp-router tap-b@wirestamp-sink --duration 10 --layers\n  \
    wirestamp delay eth0 eth1 -Q inout --sample 1/16\n  \
    ssh there wirestamp capture -i eth0 -w - udp | wirestamp delay - eth0 --filter udp\n  \
    wirestamp delay here.pcapng there.pcapng --align --remove-skew")]
pub(crate) struct Arguments {
    /// The first point: a capture file, a pipe (- for standard input), an interface, or
    /// interface@namespace
    a: String,
    /// The second point
    b: String,
    /// A packet counts as lost when it has not arrived after so many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    timeout: u32,
    /// Only packets that pass this filter in pcap-filter(7) syntax
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Measure a part of the packets only, as 1/16 or 0.0625: chosen by hash, so that both points
    /// choose the same
    #[arg(long, value_name = "SHARE")]
    sample: Option<Sampling>,
    /// Rate every flow as a phone call with this codec, and not only RTP with that of its payload
    /// type: g711, g711-plc, g723.1-5.3, g723.1-6.3, g729, g729a, gsm-fr or
    /// gsm-efr
    #[arg(long, value_name = "CODEC")]
    codec: Option<Codec>,
    /// Write a page about the measurement, with figures
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Take so many seconds off the stamps of the second point, whose clock is so far ahead
    #[arg(long, value_name = "SECONDS", value_parser = clocks::offset, allow_hyphen_values = true,
          conflicts_with = "align", help_heading = "For two clocks")]
    offset: Option<Span>,
    /// Compare two files whose clocks differ by any amount: delays are relative to the least
    #[arg(long, help_heading = "For two clocks")]
    align: bool,
    /// Take out of the delays by how much the clocks of two files come apart
    #[arg(long, help_heading = "For two clocks")]
    remove_skew: bool,
    /// Use a damaged file up to the damage
    #[arg(long, help_heading = "For files")]
    partial: bool,
    #[command(flatten)]
    live: Live,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let [a, b] = [&arguments.a, &arguments.b].map(|name| Point::named(name));
    if [&arguments.a, &arguments.b].into_iter().all(|name| name == "-") {
        return Err(usage(
            "only one point can be standard input: read the other from a file or FIFO",
        ));
    }
    let captures: Vec<_> = [&a, &b].into_iter().filter_map(Point::capture).collect();
    check_outputs(&[("--report", arguments.report.as_deref())], &captures)?;
    let findings = match (&a, &b) {
        (Point::Interface, Point::Interface) => live::interfaces(arguments, output)?,
        (Point::Pipe(pipe), Point::Interface) => {
            live::beside_pipe(arguments, metrics::Point::A, pipe, output)?
        }
        (Point::Interface, Point::Pipe(pipe)) => {
            live::beside_pipe(arguments, metrics::Point::B, pipe, output)?
        }
        (Point::File(_), Point::Interface) => {
            live::beside_file(arguments, metrics::Point::A, &a, output)?
        }
        (Point::Interface, Point::File(_)) => {
            live::beside_file(arguments, metrics::Point::B, &b, output)?
        }
        (Point::File(_) | Point::Pipe(_), Point::File(_) | Point::Pipe(_)) => {
            arguments.live.refuse()?;
            files::compared(arguments, [&a, &b])?
        }
    };
    findings.remarks.iter().for_each(|remark| output.remark(remark));
    let report = arguments.report.as_deref();
    let written = report.map_or(Ok(()), |path| page::write(path, &findings, arguments));
    // A full disk costs the page, and not the figures too.
    output.result(&findings.document()?, |_| findings.text(output.verbose))?;
    written?;
    report.iter().for_each(|path| output.remark(format!("report: {}", path.display())));
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// What the correlator goes by.
    fn correlation(&self) -> metrics::Config {
        metrics::Config {
            timeout: Span::from_millis(self.timeout.into()),
            ..metrics::Config::default()
        }
    }

    /// How long a packet is waited for.
    fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout.into())
    }

    /// Which part of the packets is measured, up to 1.
    fn share(&self) -> f64 {
        self.sample.as_ref().map_or(1.0, Sampling::part)
    }

    /// A point that has seen nothing yet.
    fn sight(&self) -> PointState {
        PointState::new(self.sample.as_ref()).watching(FlowConfig::default())
    }
}

/// A table for as many flows as are reported.
fn flow_table() -> FlowTable {
    FlowTable::new(FLOWS)
}
