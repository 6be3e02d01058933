//! `wirestamp layers`.

mod csv;
mod present;
mod statistics;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use wirestamp_capture::layers::{Config, Direction, Facts, Journey, Layers, Reasons};
use wirestamp_capture::{Error, Limit, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_report::layers::html;

use self::csv::Csv;
use self::statistics::LayerStatistics;
use crate::files::check_outputs;
use crate::interrupt::stop_on_signal;
use crate::output::Output;
use crate::parse::seconds;
use crate::target::Target;

pub(crate) use present::Document;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    wirestamp layers -i eth0 -d 10 udp port 5004\n  \
    wirestamp layers -i eth0 -c 1000 --csv packets.csv tcp dst port 443\n  \
    wirestamp layers -i eth0 -d 10 --report layers.html\n  \
    wirestamp layers -i eth0@namespace --json ip6\n  \
    wirestamp layers -i eth0 -Q out -d 10 udp dst port 5004\n\n\
    Each received packet is measured at driver, stack, socket and application; each sent packet\n\
    at socket, queue, driver and sent (-v shows the places in the kernel). eBPF programs at\n\
    tracepoints read one clock at their start and end; their own run time is subtracted.\n\
    Requires root, and Linux 6.3 for sockets.")]
pub(crate) struct Arguments {
    /// The interface, or interface@namespace
    #[arg(short, long, value_name = "IF")]
    interface: Target,
    /// Direction: in, packets that the interface receives, or out, packets that it sends
    #[arg(short = 'Q', long, value_name = "DIRECTION", value_enum, default_value_t = DirectionArgument::In,
          hide_possible_values = true)]
    direction: DirectionArgument,
    /// End after this many packets
    #[arg(short, long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// Write a row for each packet to this file, with the time it spent in each layer
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write an HTML report with a figure to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// A filter in pcap-filter(7) syntax
    #[arg(value_name = "FILTER", trailing_var_arg = true)]
    filter: Vec<String>,
}

/// [`Direction`] as an argument.
#[derive(Clone, Copy, ValueEnum)]
enum DirectionArgument {
    In,
    Out,
}

impl From<DirectionArgument> for Direction {
    fn from(argument: DirectionArgument) -> Self {
        match argument {
            DirectionArgument::In => Self::In,
            DirectionArgument::Out => Self::Out,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let outputs = [("--csv", arguments.csv.as_deref()), ("--report", arguments.report.as_deref())];
    check_outputs(&outputs, &[])?;
    let clock = ClockService::start(Counter::select())?;
    let stop = stop_on_signal()?;
    let config = arguments.config();
    let create = |path| Csv::create(path, config.direction);
    let mut csv = arguments.csv.as_deref().map(create).transpose()?;
    let layers = arguments.interface.enter(|| Layers::open(config, &clock))??;
    announce(layers.facts(), output);
    let (document, mut outcome) = follow(layers, &stop, |journey, reasons| {
        csv.as_mut().map_or(Ok(()), |csv| csv.record(journey, reasons))
    });
    if let Some(csv) = csv {
        outcome = outcome.and(csv.finish());
    }
    output.result(&document, Document::text)?;
    outcome?;
    if let Some(path) = &arguments.report {
        write(path, &html(&document.findings()))?;
    }
    Ok(if document.is_balanced() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a measurement to its end; calls `each` for every packet.
pub(crate) fn follow(
    layers: Layers,
    stop: &Stop,
    mut each: impl FnMut(&Journey, &Reasons) -> Result<(), Error>,
) -> (Document, Result<(), Error>) {
    let (facts, reasons) = (layers.facts().clone(), layers.reasons().clone());
    let mut statistics = LayerStatistics::new(&facts);
    let (ledger, outcome) = layers.run(stop, &mut |journey: Journey| {
        statistics.record(&journey, &reasons);
        each(&journey, &reasons)
    });
    (Document::new(facts, &statistics, ledger), outcome)
}

fn write(path: &Path, page: &str) -> Result<(), Error> {
    fs::write(path, page).map_err(|cause| Error::Write { path: path.to_owned(), cause })
}

fn announce(facts: &Facts, output: Output) {
    facts.notes.iter().for_each(|note| output.remark(note));
    let verb = match facts.direction {
        Direction::In => "receives",
        Direction::Out => "sends",
    };
    let interface = &facts.interface;
    output.remark(format_args!("measuring packets that {interface} {verb}; Ctrl-C ends it"));
    for observed in &facts.points {
        output.detail(format_args!("{}: {}", observed.point.name(), observed.places.join(", ")));
    }
}

impl Arguments {
    fn config(&self) -> Config {
        let filter = self.filter.join(" ");
        let duration = self.duration.map(Duration::from_secs_f64);
        Config {
            interface: self.interface.interface.clone(),
            direction: self.direction.into(),
            filter: (!filter.trim().is_empty()).then_some(filter),
            limit: Limit { packets: self.count, duration },
        }
    }
}
