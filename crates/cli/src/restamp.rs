//! `wirestamp restamp`.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;
use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_capture::Stop;
use wirestamp_capture::file::{Conversion, Restamp, Restamped, read_anchors};
use wirestamp_clock::AnchorFile;
use wirestamp_metrics::Distribution;

use crate::files::{are_one, is_pipe};
use crate::interrupt::stop_on_signal;
use crate::output::{Output, time};
use crate::progress::{per_mille, progress_bar};
use crate::usage::usage;

/// A live capture converts each stamp from the anchors before it only. With the anchors after it,
/// the same raw value gives a more accurate time.
///
/// Until it is complete, FILE is named FILE.partial.
#[derive(Args)]
#[command(after_help = "Example:\n  \
    wirestamp capture -i eth0 --stamp raw -w calls.pcapng --anchors calls.csv\n  \
    wirestamp restamp calls.pcapng --anchors calls.csv -w better.pcapng")]
pub(crate) struct Arguments {
    /// The capture, written with `wirestamp capture --anchors`
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The anchors saved with the capture
    #[arg(long, value_name = "FILE")]
    anchors: PathBuf,
    /// Write the packets with their new times to this pcapng file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments { capture, anchors, write } = arguments;
    let to_stdout = write == Path::new("-");
    if to_stdout && output.json {
        return Err(usage("-w - and --json both use standard output; write the packets to a file"));
    }
    if [capture, anchors].into_iter().any(|input| are_one(input, write)) {
        return Err(usage("-w would overwrite an input file; write to another file"));
    }
    if is_pipe(capture) {
        return Err(usage(
            "cannot restamp a pipe: the capture is read twice; write it to a file first",
        ));
    }
    let anchors = read_anchors(anchors)?;
    let stop = stop_on_signal()?;
    let bar = progress_bar(output);
    let summary = restamp(arguments, &anchors, &stop, &bar);
    bar.finish_and_clear();
    let summary = summary?;
    if to_stdout {
        output.remark(summary.text().trim_end());
    } else {
        output.result(&summary, Summary::text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn restamp(
    arguments: &Arguments,
    anchors: &AnchorFile,
    stop: &Stop,
    bar: &ProgressBar,
) -> anyhow::Result<Summary> {
    let Arguments { capture, write, .. } = arguments;
    let watch = |done: f64| {
        // The capture is read twice.
        move |share: f64| {
            bar.set_position(per_mille(done + share / 2.0));
            if stop.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    };
    let mut changes = Changes::default();
    bar.set_message("reading the capture");
    let mut record = |packet: &Conversion| changes.record(packet);
    let restamp = Restamp::survey(capture, anchors, &mut watch(0.0), &mut record)?;
    bar.set_message("writing the new times");
    restamp.write(write, &mut watch(0.5))?;
    Ok(Summary::new(restamp.counts(), changes, anchors, write))
}

/// Changes by the new conversion.
#[derive(Default, Serialize, JsonSchema)]
struct Changes {
    /// New time minus old time, in nanoseconds.
    moved_ns: Distribution,
    /// Absolute difference of new and old time.
    #[serde(skip)]
    distance: Distribution,
    /// Error bounds before, in nanoseconds.
    error_before_ns: Distribution,
    /// Error bounds of the new times, in nanoseconds.
    error_after_ns: Distribution,
    /// Packets that moved by more than the sum of both errors.
    beyond_errors: u64,
}

impl Changes {
    fn record(&mut self, packet: &Conversion) {
        let moved = packet.after - packet.before;
        self.moved_ns.record(moved);
        self.distance.record(moved.abs());
        self.error_before_ns.record(packet.error_before);
        self.error_after_ns.record(packet.error_after);
        let beyond = moved.abs() > packet.error_before + packet.error_after;
        self.beyond_errors += u64::from(beyond);
    }
}

/// Packets of a capture file that were stamped again from its anchors.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Summary {
    #[serde(flatten)]
    counts: Restamped,
    #[serde(flatten)]
    changes: Changes,
    /// Clock of the anchors.
    clock: String,
    /// Anchors used.
    anchors: usize,
    /// The file written.
    file: PathBuf,
}

impl Summary {
    fn new(counts: Restamped, changes: Changes, anchors: &AnchorFile, file: &Path) -> Self {
        let (clock, file) = (anchors.clock().to_owned(), file.to_owned());
        Self { counts, changes, clock, anchors: anchors.timeline().anchors().len(), file }
    }

    fn text(&self) -> String {
        let Self { counts, changes, clock, anchors, .. } = self;
        let mut text = format!(
            "{} of {} packets stamped again with {anchors} anchors of {clock}\n",
            counts.restamped, counts.packets
        );
        let moved = [&changes.distance, &changes.moved_ns].map(Distribution::summary);
        if let [Some(distance), Some(moved)] = moved {
            let _ = writeln!(
                text,
                "moved by {} (median), p99 {}; min {}, max {}",
                time(distance.p50),
                time(distance.p99),
                time(moved.min),
                time(moved.max)
            );
        }
        let errors = [&changes.error_before_ns, &changes.error_after_ns];
        if let [Some(before), Some(after)] = errors.map(Distribution::summary) {
            let bounds = |of: i64, max: i64| format!("{} (median), {} (max)", time(of), time(max));
            let _ = writeln!(text, "error bound before: {}", bounds(before.p50, before.max));
            let _ = writeln!(text, "error bound now: {}", bounds(after.p50, after.max));
        }
        text + &self.remarks()
    }

    /// Exceptions, a line each.
    fn remarks(&self) -> String {
        let Restamped { without_raw, other_clock, outside, by_name, .. } = self.counts;
        let remarks = [
            (
                self.changes.beyond_errors,
                "moved by more than the sum of both errors: the system clock was \
              stepped or slewed unusually fast, which the capture could not know yet",
            ),
            (
                by_name,
                "matched by clock name only: the capture or the anchors do not identify their boot",
            ),
            (without_raw, "keep their time: no raw value"),
            (other_clock, "keep their time: stamped by another clock"),
            (outside, "keep their time: no anchors before and after"),
        ];
        let present = remarks.iter().filter(|(count, _)| *count > 0);
        present.map(|(count, what)| format!("{count} {what}\n")).collect()
    }
}
