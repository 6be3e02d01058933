//! The error of stamps against the sender's own counter, idle and with a busy core.
//!
//! The stress is that of Grigorjew et al. 2023 (section III, table I): a core that computes all the
//! time. The captures are pinned to this core. The sender runs on the other one, as does the veth's softIRQ. A spinning
//! capture has its acquisition thread there, and its other threads on the sender's core.

mod errors;
mod flow;
mod report;
mod verdicts;

use serde::Serialize;
use wirestamp_capture::capabilities::works_without_card;
use wirestamp_capture::{Method, StampSource};
use wirestamp_clock::Span;
use wirestamp_studies::tester::{CAPTURE_CORE, SENDING_CORE, Spinner};

use self::errors::Errors;
use self::flow::{Departures, Flow};
use crate::arguments::Arguments;
use crate::bench::Bench;
use crate::contenders::Contender;
use crate::process::Running;

/// Captures that run at the same time, and whether they spin. AF_XDP runs alone, because it redirects the packets, and
/// a spinning capture, because it needs a core of its own.
const TOGETHER: [&[(Method, StampSource, bool)]; 3] = [
    &[
        (Method::Ring, StampSource::Kernel, false),
        (Method::Ring, StampSource::Raw, false),
        (Method::Recvmsg, StampSource::Raw, false),
        (Method::XdpPass, StampSource::Xdp, false),
        (Method::TracePass, StampSource::Raw, false),
    ],
    &[(Method::Ring, StampSource::Raw, true)],
    &[(Method::Xdp, StampSource::Xdp, false)],
];

/// One capture of one run. Times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
struct Row {
    contender: String,
    flow: &'static str,
    busy_core: bool,
    repetition: u32,
    sent: u64,
    /// Packets of the flow in the file.
    captured: u64,
    /// Packets sent more than the bound after the earliest possible time.
    late: u64,
    /// Other packets whose send call took longer than the bound.
    held: u64,
    /// Packets with an error: captured, and neither late nor held.
    counted: u64,
    error_p50: i64,
    error_p99: i64,
    /// `error_p99` minus `error_p50`.
    error_spread: i64,
    error_stddev: f64,
    error_min: i64,
    error_max: i64,
    /// Absolute difference between the interval of two stamps and the interval of the two send times.
    interval_p50: i64,
    interval_p99: i64,
    interval_stddev: f64,
}

pub(crate) fn run(bench: &mut Bench, arguments: &Arguments) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    'all: for repetition in 1..=arguments.repetitions() {
        for flow in flows(arguments.quick)? {
            for busy in [false, true] {
                for together in TOGETHER {
                    if bench.interrupted() {
                        break 'all;
                    }
                    match measure(bench, &flow, busy, together) {
                        Ok(of_run) => {
                            rows.extend(of_run.into_iter().map(|row| Row { repetition, ..row }));
                        }
                        Err(error) => bench.results.say(&format!(
                            "a packet every {} is left out once: {error:#}",
                            flow.name
                        )),
                    }
                }
            }
        }
    }
    bench.results.csv("stamps.csv", &rows)?;
    report::print(&rows, &mut bench.results);
    report::draw(&rows, &mut bench.results)?;
    verdicts::give(&rows, &mut bench.results);
    Ok(())
}

/// A flow with the interval of a call, and one with an interval below the wake-up latency of a thread.
fn flows(quick: bool) -> anyhow::Result<[Flow; 2]> {
    let millis = |full, less| Span::from_millis(if quick { less } else { full });
    Ok([
        Flow::new("20 ms", Span::from_millis(20), millis(8_000, 1_000))?,
        Flow::new("10 us", Span::from_micros(10), millis(2_000, 500))?,
    ])
}

/// Sends the flow once, with several captures at work.
fn measure(
    bench: &Bench,
    flow: &Flow,
    busy: bool,
    together: &[(Method, StampSource, bool)],
) -> anyhow::Result<Vec<Row>> {
    let mut captures = Vec::new();
    for &(method, stamp, spins) in together {
        // Not every kernel reads the counter in a tracing program.
        if !works_without_card(wirestamp_capture::pair(method, stamp)?) {
            continue;
        }
        let contender = Contender::ours(method, stamp, spins)?;
        // Only the acquisition thread of a spinning capture has the core; the others would wait for it.
        let others = if spins { SENDING_CORE } else { CAPTURE_CORE };
        let cores = format!("{CAPTURE_CORE},{others},{others}");
        // Enough bytes for the payload; small files, so that many captures fit in the page cache.
        let more = ["--cores", &cores, "--snaplen", "128"];
        let running = Running::start(contender, &more, &bench.programs, &bench.bed)?;
        captures.push((contender, running));
    }
    let spinner = busy.then(|| Spinner::on(CAPTURE_CORE));
    let departures = flow.send(bench)?;
    drop(spinner);
    let mut rows = Vec::new();
    for (contender, capture) in captures {
        capture.rest()?;
        let errors = Errors::of(capture.stop()?.path(), &departures)?;
        rows.push(row(contender, flow, busy, &departures, &errors));
    }
    Ok(rows)
}

fn row(
    contender: Contender,
    flow: &Flow,
    busy: bool,
    departures: &Departures,
    errors: &Errors,
) -> Row {
    let Errors { captured, error, interval, interval_size } = errors;
    Row {
        contender: contender.name(),
        flow: flow.name,
        busy_core: busy,
        repetition: 0,
        sent: departures.sent(),
        captured: *captured,
        late: departures.late,
        held: departures.held,
        counted: error.count,
        error_p50: error.p50,
        error_p99: error.p99,
        error_spread: error.p99 - error.p50,
        error_stddev: error.stddev,
        error_min: error.min,
        error_max: error.max,
        interval_p50: interval_size.p50,
        interval_p99: interval_size.p99,
        interval_stddev: interval.stddev,
    }
}
