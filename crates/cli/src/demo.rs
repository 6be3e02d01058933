//! `wirestamp demo`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use wirestamp_metrics::Quality;
use wirestamp_study::demo::{self, Findings, Options, Progress};

use crate::check::checks;
use crate::clock::seconds;
use crate::interrupt::stop_on_signal;
use crate::output::{Output, mean};
use crate::progress::{per_mille, progress_bar};
use crate::quality;
use crate::table::table;
use crate::tap;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Send for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    duration: f64,
    /// Where the report and the captures go
    #[arg(short, long, value_name = "FOLDER", default_value = "wirestamp-demo")]
    output: PathBuf,
    /// Send IPv6 rather than IPv4
    #[arg(short = '6', long)]
    ipv6: bool,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let options = Options {
        duration: Duration::from_secs_f64(arguments.duration),
        folder: arguments.output,
        ipv6: arguments.ipv6,
    };
    let stop = stop_on_signal()?;
    let bar = progress_bar(output);
    let findings = demo::run(&options, &stop, &mut |progress| match progress {
        Progress::Step(step) => bar.set_message(step),
        Progress::Sending(share) => bar.set_position(per_mille(share)),
    });
    bar.finish_and_clear();
    let findings = findings?;
    output.result(&findings, text)?;
    Ok(if findings.is_true() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(findings: &Findings) -> String {
    let error = |quality: &Quality| quality.clock_error().map(|error| error.max.as_nanos());
    let rows: Vec<_> = findings
        .streams
        .iter()
        .map(|found| quality::row(found.name.into(), &found.quality, error(&found.quality)))
        .collect();
    let mut text = String::new();
    if findings.interrupted {
        text.push_str("Interrupted: these are the figures of the part that ran.\n\n");
    }
    text.push_str(&table(&quality::HEADER, &rows));
    text.push('\n');
    for tap in &findings.taps {
        let _ = writeln!(text, "{}", tap::line(tap));
    }
    if let Some(delay) = findings.total.delay().summary() {
        let _ = writeln!(text, "mean one-way delay of all packets: {}", mean(delay.mean));
    }
    text.push('\n');
    text.push_str(&checks(&findings.checks));
    for note in &findings.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let [a, b] = &findings.captures;
    let _ = writeln!(
        text,
        "\nreport: {}\ncaptures: {}, {}",
        findings.report.display(),
        a.display(),
        b.display()
    );
    text
}
