//! `wirestamp study timers`, which has more options than the others.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use wirestamp_studies::{Elsewhere, timers_beside};

use super::named;
use crate::output::Output;

#[derive(Args)]
#[group(skip)]
#[command(after_help = "Reproduces Tables 1 and 2 and Figures 2 and 3 of the paper. The \
    cost of a read is the time between two consecutive reads, in the source's own ticks. \
    A read is a peak, and filtered, if it costs more than the upper quartile by over three times \
    the distance between the quartiles; the paper does not say how it filters. The report lists \
    all departures from the paper.\n\nExample:\n  \
    wirestamp study timers --output timers")]
pub(crate) struct Arguments {
    #[command(flatten)]
    as_all: named::Arguments,
    /// Reads of each source, in units of 10,000 [default: 10000, as the paper; 1000 with --quick]
    #[arg(long, value_name = "COUNT", conflicts_with = "quick",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: Option<u32>,
    /// JSON document of the same study on another machine, for sources that this machine lacks
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
}

pub(super) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments { as_all, rounds, beside } = arguments;
    let beside = beside.as_deref().map(Elsewhere::read).transpose()?;
    named::measure(as_all, output, |options, stop, progress| {
        timers_beside(rounds, beside.as_ref(), options, stop, progress)
    })
}
