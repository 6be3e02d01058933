//! `wirestamp demo`: a phone call, a video and a burst across a bottleneck, measured at two taps with softIRQ stamps, and
//! checked against the sender, the receiving sockets, the queue and tcpdump.

mod bed;
mod measure;
mod present;
mod recorder;
mod result;
mod run;
mod tcpdump;
mod truth;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use wirestamp_metrics::Quality;

use crate::interrupt::stop_on_signal;
use crate::output::{Output, mean};
use crate::parse::seconds;
use crate::progress::{per_mille, progress_bar};
use crate::table::{QUALITY_HEADER, checks, quality_row, table};
use crate::tap;
use measure::measure;
pub(crate) use result::DemoResult;
use result::{Options, Progress};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Duration of sending, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    duration: f64,
    /// Folder of the report and the captures
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
    let result = measure(&options, &stop, &mut |progress| match progress {
        Progress::Step(step) => bar.set_message(step),
        Progress::Sending(share) => bar.set_position(per_mille(share)),
    });
    bar.finish_and_clear();
    let result = result?;
    output.result(&result, text)?;
    Ok(if result.agrees() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(result: &DemoResult) -> String {
    let error = |quality: &Quality| quality.clock_error().map(|error| error.max.as_nanos());
    let rows: Vec<_> = result
        .streams
        .iter()
        .map(|found| quality_row(found.name.into(), &found.quality, error(&found.quality)))
        .collect();
    let mut text = String::new();
    if result.interrupted {
        text.push_str("Interrupted: these are the figures of the part that ran.\n\n");
    }
    text.push_str(&table(&QUALITY_HEADER, &rows));
    text.push('\n');
    for tap in &result.taps {
        let _ = writeln!(text, "{}", tap::line(tap));
    }
    if let Some(delay) = result.total.delay().summary() {
        let _ = writeln!(text, "mean one-way delay of all packets: {}", mean(delay.mean));
    }
    text.push('\n');
    text.push_str(&checks(&result.checks));
    for note in &result.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let [a, b] = &result.captures;
    let _ = writeln!(
        text,
        "\nreport: {}\ncaptures: {}, {}",
        result.report.display(),
        a.display(),
        b.display()
    );
    text
}
