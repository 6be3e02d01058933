//! `wirestamp study timers`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use wirestamp_study::timers::{self, Elsewhere, Findings, Options, READS_PER_ROUND};

use super::{header, titled};
use crate::interrupt::stop_on_signal;
use crate::output::{Output, count};
use crate::progress::{per_mille, progress_bar};

#[derive(Args)]
#[command(after_help = "Measures what Tables 1 and 2 and Figures 2 and 3 of the paper show. The \
    cost of a read is what passes between two reads in a row, in the source's own ticks. \
    A read is a peak, and filtered, if it costs more than the upper quartile by over three times \
    the distance between the quartiles; the paper does not say how it filters. The report tells \
    all that is done in another way than in the paper.\n\nExample:\n  \
    wirestamp study timers --rounds 10000 --output timers")]
pub(crate) struct Arguments {
    /// Read each source so many times ten thousand; the paper's number of reads is 10000 rounds
    #[arg(long, value_name = "COUNT", default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: u32,
    /// Show what this JSON document of the same study says of sources that this machine has not
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
    /// Write a report with figures into this folder
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let beside = arguments.beside.as_deref().map(Elsewhere::read).transpose()?;
    let options = Options { rounds: arguments.rounds, beside, folder: arguments.output };
    let stop = stop_on_signal()?;
    let bar = progress_bar(output);
    bar.set_message("reading every source");
    let findings = timers::run(&options, &stop, &mut |share| bar.set_position(per_mille(share)));
    bar.finish_and_clear();
    output.result(&findings?, text)?;
    Ok(ExitCode::SUCCESS)
}

fn text(findings: &Findings) -> String {
    let mut text = opening(findings);
    text.push_str(&titled(&findings.beside_the_paper()));
    text.push('\n');
    text.push_str(&titled(&findings.every_way()));
    for way in findings.ways.iter().filter(|way| !way.is_available()) {
        let _ = writeln!(text, "{}: not available here: {}", way.source, way.reason);
    }
    if let Some(beside) = &findings.beside {
        let _ = writeln!(text, "{}", beside.origin());
    }
    if let Some(report) = &findings.report {
        let _ = writeln!(text, "\nreport: {}", report.display());
    }
    text
}

/// What was measured, on what, and how often.
fn opening(findings: &Findings) -> String {
    let title = format!("What it costs to read the time, after {}", findings.paper);
    let reads = u64::from(findings.rounds) * u64::from(READS_PER_ROUND);
    let interrupted = if findings.interrupted { "interrupted: " } else { "" };
    format!(
        "{}{interrupted}{} reads in each way, in {} turns of {}\n\n",
        header(&title, &findings.circumstances),
        count(reads),
        count(findings.rounds.into()),
        count(READS_PER_ROUND.into()),
    )
}
