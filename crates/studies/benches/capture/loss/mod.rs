//! Loss and CPU time against rate.

mod load;
mod tables;
mod verdicts;

use serde::Serialize;
use serde_json::Value;
use wirestamp_studies::tester::{CAPTURE_CORE, Spinner};

use self::load::{Load, send};
use crate::arguments::Arguments;
use crate::bench::Bench;
use crate::contenders::Contender;
use crate::process::Running;
use crate::rate::Rate;
use crate::statistics::{micros, real};

/// Number of places by which the order of the contenders rotates after each repetition.
const ROTATION: usize = 4;

/// One run of one contender.
#[derive(Clone, Debug, Serialize)]
struct Row {
    contender: String,
    /// Check sequence included.
    frame_bytes: u16,
    /// Requested rate, in frames per second.
    rate: Rate,
    repetition: u32,
    busy_core: bool,
    seconds: f64,
    sent: u64,
    /// The rate that was sent. It is below `rate` if the tap, which runs in a softIRQ of the sending core,
    /// slows the sender.
    frames_per_second: f64,
    /// Packets in the file, by capinfos.
    written: u64,
    /// Packets in the file by the tool's own account; ours only.
    accounted: Option<u64>,
    loss: f64,
    /// Frames dropped by the receiving interface for lack of buffer space; part of the loss.
    interface_dropped: u64,
    cpu_seconds: f64,
    cpu_seconds_per_million: f64,
}

pub(crate) fn run(bench: &mut Bench, arguments: &Arguments) -> anyhow::Result<()> {
    let _spinner = arguments.busy.then(|| Spinner::on(CAPTURE_CORE));
    let mut rows = Vec::new();
    for (frame_bytes, rates) in arguments.loads() {
        for rate in rates {
            let load = Load::new(frame_bytes, rate, arguments.load_time());
            rows.extend(rounds(bench, arguments, load));
        }
    }
    bench.results.csv("loss.csv", &rows)?;
    tables::print(&rows, &mut bench.results);
    tables::draw(&rows, &mut bench.results)?;
    verdicts::give(&rows, &mut bench.results);
    Ok(())
}

/// Runs all contenders in turn, several times. Each repetition begins with another contender, so that a
/// disturbance, or the cache content of the previous run, does not always affect the same one.
fn rounds(bench: &mut Bench, arguments: &Arguments, load: Load) -> Vec<Row> {
    // Long frames compare methods only; 64-byte frames also compare stamps.
    let mut contenders = arguments.contenders(load.frame_bytes > 64);
    let mut rows = Vec::new();
    for repetition in 1..=arguments.repetitions() {
        for &contender in &contenders {
            if bench.interrupted() {
                return rows;
            }
            match measure(bench, contender, load) {
                Ok(row) => rows.push(Row { repetition, busy_core: arguments.busy, ..row }),
                Err(error) => {
                    let name = contender.name();
                    bench.results.say(&format!("{name} at {} is left out: {error:#}", load.rate));
                }
            }
        }
        let places = ROTATION.min(contenders.len());
        contenders.rotate_left(places);
    }
    rows
}

fn measure(bench: &Bench, contender: Contender, load: Load) -> anyhow::Result<Row> {
    let capture = Running::start(contender, &[], &bench.programs, &bench.bed)?;
    let before = capture.cpu_seconds()?;
    let report = send(bench, load)?;
    capture.rest()?;
    let cpu_seconds = capture.cpu_seconds()? - before;
    let finished = capture.stop()?;
    let written = finished.written()?;
    let accounted = match contender {
        Contender::Wirestamp(_) | Contender::Spinning(_) => {
            finished.json()?.pointer("/ledger/delivered").and_then(Value::as_u64)
        }
        _ => None,
    };
    let seconds = micros(report.elapsed.as_nanos()) / 1e6;
    Ok(Row {
        contender: contender.name(),
        frame_bytes: load.frame_bytes,
        rate: load.rate,
        repetition: 0,
        busy_core: false,
        seconds,
        sent: report.sent,
        frames_per_second: real(report.sent) / seconds,
        written,
        accounted,
        loss: 1.0 - real(written) / real(report.sent),
        interface_dropped: report.dropped,
        cpu_seconds,
        cpu_seconds_per_million: cpu_seconds / (real(written) / 1e6),
    })
}
