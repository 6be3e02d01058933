//! `wirestamp study overhead`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use wirestamp_study::overhead::{self, Findings, Options, Size};

use super::{header, show, titled};
use crate::interrupt::stop_on_signal;
use crate::output::{Output, plain};
use crate::progress::progress_bar;

#[derive(Args)]
#[command(
    after_help = "Measures what Tables I and II and Figures 2 and 4 of the paper show, packet \
    by packet of its two patterns over the loopback interface (20 minutes), and what a stamp adds to \
    a BPF program in the softIRQ (as root). The report tells all that is done in another way than in \
    the paper. With --output every raw result is kept, and what was interrupted goes on where it \
    stopped when the same command is given again.\n\nExample:\n  \
    wirestamp study overhead --quick --output overhead"
)]
pub(crate) struct Arguments {
    /// Send fewer packets, in 40 seconds
    #[arg(long)]
    quick: bool,
    /// Order the runs by this number
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Keep raw results and write a report with figures into this folder
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let size = if arguments.quick { Size::QUICK } else { Size::FULL };
    let options = Options { size, folder: arguments.output, seed: arguments.seed };
    let stop = stop_on_signal()?;
    let bar = progress_bar(output);
    let findings = overhead::run(&options, &stop, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    output.result(&findings?, text)?;
    Ok(ExitCode::SUCCESS)
}

fn text(findings: &Findings) -> String {
    let title = format!("What it costs to stamp a packet, after {}", findings.paper);
    let mut text = header(&title, &findings.circumstances);
    let interrupted = if findings.interrupted { "interrupted: " } else { "" };
    let _ = writeln!(text, "{interrupted}{} repetitions of every cell\n", findings.repetitions);
    for table in [findings.beside_the_paper(), findings.distributions(), findings.effects()] {
        let _ = writeln!(text, "{}", titled(&table));
    }
    text.push_str(&titled(&findings.in_the_softirq()));
    for line in findings.not_in_the_softirq() {
        let _ = writeln!(text, "{line}");
    }
    text.push('\n');
    for claim in &findings.claims {
        let _ = writeln!(text, "{}", plain(&claim.sentence));
    }
    if let Some(report) = &findings.report {
        let _ = writeln!(text, "\nreport: {}", report.display());
    }
    text
}
