//! The command line, and the extent of the run that it selects.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::contenders::Contender;
use crate::rate::Rate;

/// Compares capture tools on this machine.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Where tables (CSV), figures (SVG) and the page go
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    /// A first look in less than two minutes, good for no conclusion
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// Rates of 64-byte frames, in frames a second, or max
    #[arg(long, value_delimiter = ',')]
    rate: Vec<Rate>,
    /// Only frames of these sizes in bytes, check sequence included: 64, 256, 1518
    #[arg(long, value_delimiter = ',')]
    size: Vec<u16>,
    /// How often each measurement is made
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Seconds that each load lasts
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: Option<u32>,
    /// Loss and CPU time of these tools only: tcpdump, dumpcap, netsniff-ng, netring, or ours as
    /// METHOD/STAMP, or METHOD/raw+spin
    #[arg(long, value_delimiter = ',', value_parser = Contender::named)]
    tool: Vec<Contender>,
    /// Keep the core that is left to the tools busy while loss is measured
    #[arg(long)]
    pub(crate) busy: bool,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Loss and CPU time against rate
    Loss,
    /// The error of stamps, idle and with a busy core
    Stamps,
    /// A TCP transfer with and without a capture
    Endpoint,
}

impl Arguments {
    pub(crate) fn parts(&self) -> Vec<Part> {
        if self.part.is_empty() { Part::value_variants().to_vec() } else { self.part.clone() }
    }

    /// The frame sizes, check sequence included, each with its rates. The short frames, at which
    /// tools differ most, get most of the time.
    pub(crate) fn loads(&self) -> Vec<(u16, Vec<Rate>)> {
        let thousands = |all: &[u64]| -> Vec<Rate> {
            let paced = all.iter().map(|thousand| Rate::Paced(thousand * 1000));
            paced.chain([Rate::Max]).collect()
        };
        let short = match (self.rate.as_slice(), self.quick) {
            ([], true) => thousands(&[200]),
            ([], false) => thousands(&[200, 400, 600, 800, 1000]),
            (given, _) => given.to_vec(),
        };
        let all = [(64, short), (256, thousands(&[200])), (1518, thousands(&[200]))];
        let is_wanted = |size: u16| match self.size.as_slice() {
            [] => size == 64 || !self.quick,
            sizes => sizes.contains(&size),
        };
        all.into_iter().filter(|(size, _)| is_wanted(*size)).collect()
    }

    /// The contenders of the loss part. `brief` keeps only the default stamp of each of our methods.
    pub(crate) fn contenders(&self, brief: bool) -> Vec<Contender> {
        if self.tool.is_empty() { Contender::all(brief) } else { self.tool.clone() }
    }

    pub(crate) fn repetitions(&self) -> u32 {
        self.repeat.unwrap_or(if self.quick { 1 } else { 3 })
    }

    pub(crate) fn load_time(&self) -> Duration {
        let default = if self.quick { 1.0 } else { 2.5 };
        Duration::from_secs_f64(self.seconds.map_or(default, f64::from))
    }
}
