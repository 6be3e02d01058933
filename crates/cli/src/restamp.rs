//! `wirestamp restamp`.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;
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

/// A packet is stamped while it is fresh, when only the anchors before it are known. With those
/// that came after it the same raw value gives a better time.
///
/// FILE gets its name when it is whole, and is FILE.partial until then.
#[derive(Args)]
#[command(after_help = "Example:\n  \
    wirestamp capture -i eth0 --stamp raw -w calls.pcapng --anchors calls.csv\n  \
    wirestamp restamp calls.pcapng --anchors calls.csv -w better.pcapng")]
pub(crate) struct Arguments {
    /// The capture, made with `wirestamp capture --anchors`
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The anchors kept beside it
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
        return Err(usage("-w - puts the packets where --json would print: write to a file"));
    }
    if [capture, anchors].into_iter().any(|input| are_one(input, write)) {
        return Err(usage("-w would overwrite what is read: write to another file"));
    }
    if is_pipe(capture) {
        return Err(usage(
            "a pipe cannot be restamped, because the capture is read twice: write it to a file first",
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
    bar.set_message("looking through the capture");
    let mut record = |packet: &Conversion| changes.record(packet);
    let restamp = Restamp::survey(capture, anchors, &mut watch(0.0), &mut record)?;
    bar.set_message("writing it again");
    restamp.write(write, &mut watch(0.5))?;
    Ok(Summary::new(restamp.counts(), changes, anchors, write))
}

/// What the conversions changed. Serialises with these names.
#[derive(Default, Serialize)]
struct Changes {
    /// How much later the new time is.
    moved_ns: Distribution,
    /// How much later or earlier it is.
    #[serde(skip)]
    distance: Distribution,
    error_before_ns: Distribution,
    error_after_ns: Distribution,
    /// Packets that moved by more than both errors together.
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

/// The document of `restamp --json`.
#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    counts: Restamped,
    #[serde(flatten)]
    changes: Changes,
    clock: String,
    anchors: usize,
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
                "moved by {} (median), 99 % by at most {}, between {} and {}",
                time(distance.p50),
                time(distance.p99),
                time(moved.min),
                time(moved.max)
            );
        }
        let errors = [&changes.error_before_ns, &changes.error_after_ns];
        if let [Some(before), Some(after)] = errors.map(Distribution::summary) {
            let said =
                |of: i64, max: i64| format!("{} (median), {} (largest)", time(of), time(max));
            let _ = writeln!(text, "within {} of system time before", said(before.p50, before.max));
            let _ = writeln!(text, "within {} of system time now", said(after.p50, after.max));
        }
        text + &self.remarks()
    }

    /// What did not go as it does mostly, a line each.
    fn remarks(&self) -> String {
        let Restamped { without_raw, other_clock, outside, by_name, .. } = self.counts;
        let remarks = [
            (
                self.changes.beyond_errors,
                "moved by more than both errors: the system clock was \
              stepped, or slewed as never before, and that was not known yet",
            ),
            (
                by_name,
                "matched by the name of their clock alone: the capture or the anchors do not say \
                 of which boot they are",
            ),
            (without_raw, "keep their time: they carry no raw value"),
            (other_clock, "keep their time: another clock stamped them"),
            (outside, "keep their time: no anchors surround them"),
        ];
        let told = remarks.iter().filter(|(count, _)| *count > 0);
        told.map(|(count, what)| format!("{count} {what}\n")).collect()
    }
}
