//! A study that is run by its name.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use wirestamp_capture::Stop;
use wirestamp_studies::experiment::Progress;
use wirestamp_studies::{Account, Entry, Making, Options, Part, Section};

use super::{header, show, titled};
use crate::interrupt::stop_on_signal;
use crate::output::{Output, plain, things};
use crate::progress::progress_bar;

#[derive(Args)]
#[command(
    after_help = "With --output all raw results are kept; run the same command again to resume an \
    interrupted study. The report lists all departures from the paper."
)]
pub(crate) struct Arguments {
    /// Run a short version, less than two minutes a study
    #[arg(long)]
    quick: bool,
    /// Seed for the order of the runs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Keep raw results and write a report with figures into this folder
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

impl Arguments {
    pub(super) fn options(self) -> Options {
        let Self { quick, seed, output: folder } = self;
        Options { quick, seed, folder }
    }
}

pub(super) fn run(name: &str, arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let study = Entry::named(name).with_context(|| format!("there is no study {name}"))?;
    measure(arguments, output, |options, stop, progress| study.run(options, stop, progress))
}

/// Calls `run` and prints the result.
pub(super) fn measure(
    arguments: Arguments,
    output: Output,
    run: impl FnOnce(&Options, &Stop, &mut dyn FnMut(&Progress)) -> anyhow::Result<Account>,
) -> anyhow::Result<ExitCode> {
    let options = arguments.options();
    let stop = stop_on_signal()?;
    let bar = progress_bar(output);
    let account = run(&options, &stop, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    output.result(&account?, text)?;
    Ok(ExitCode::SUCCESS)
}

fn text(account: &Account) -> String {
    let Making { circumstances, interrupted, repetitions, .. } = &account.making;
    let mut text = header(&format!("{}, after {}", account.title, account.paper), circumstances);
    let (before, after) = match (interrupted, &account.report) {
        (false, _) => ("", ""),
        (true, None) => ("interrupted: ", ""),
        (true, Some(_)) => ("interrupted: ", "; run the same command again to resume"),
    };
    let repetitions = things((*repetitions).into(), "repetition");
    let _ = writeln!(text, "{before}{repetitions} of every cell{after}\n");
    text.extend(account.sections.iter().map(of_section));
    for claim in &account.claims {
        let _ = writeln!(text, "{}", plain(&claim.sentence));
    }
    if let Some(report) = &account.report {
        let _ = writeln!(text, "\nreport: {}", report.display());
    }
    text
}

/// The text part of a section.
fn of_section(section: &Section) -> String {
    let part = |part: &Part| match part {
        Part::Table(table) if table.rows.is_empty() => String::new(),
        Part::Table(table) => titled(table) + "\n",
        Part::Remark(remark) => format!("{}\n\n", plain(remark)),
        Part::Figure(_) => String::new(),
    };
    section.parts.iter().map(part).collect()
}
