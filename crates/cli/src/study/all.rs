//! `wirestamp study all`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use wirestamp_studies::site::{self, Outcome};
use wirestamp_studies::{Options, STUDIES};

use super::{named, show};
use crate::interrupt::stop_on_signal;
use crate::output::{Output, plain, to_stderr};
use crate::progress::progress_bar;

pub(super) fn run(arguments: named::Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let options = arguments.options();
    let stop = stop_on_signal()?;
    let bar = progress_bar(output);
    bar.set_message("checking earlier results");
    let outcomes = site::run(STUDIES, &options, &stop, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    let outcomes = outcomes?;
    for outcome in &outcomes {
        if let Some(error) = outcome.error() {
            to_stderr(format_args!("wirestamp: study {} cannot be run: {error}", outcome.study));
        }
    }
    let Options { folder, .. } = &options;
    let index = folder.as_deref().map(|folder| site::write(folder, &outcomes)).transpose()?;
    output.result(&outcomes, |outcomes| text(outcomes, index.as_deref()))?;
    if stop.is_requested() && folder.is_some() {
        output.remark("interrupted: run the same command again to resume");
    }
    let has_failed = outcomes.iter().any(|outcome| outcome.error().is_some());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Verdicts of each study, in sentences.
fn text(outcomes: &Vec<Outcome>, index: Option<&Path>) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let Some(account) = outcome.account() else { continue };
        let interrupted = if account.making.interrupted { " (interrupted)" } else { "" };
        let _ = writeln!(text, "{}{interrupted}, after {}", account.title, account.paper);
        for claim in &account.claims {
            let _ = writeln!(text, "  {}", plain(&claim.sentence));
        }
        text.push('\n');
    }
    if let Some(index) = index {
        let _ = writeln!(text, "reports: {}", index.display());
    }
    text
}
