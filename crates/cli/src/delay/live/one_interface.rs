//! One interface and one capture, a file or a pipe, from elsewhere.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{Capture, Cores, Error, Filter, Stop};
use wirestamp_clock::{ClockService, Domain, Span};
use wirestamp_metrics::Point;
use wirestamp_session::{
    Correction, OutcomeRecorder, PairSession, PipeReport, Recording, TapReport, Terms,
};

use super::super::arguments::Arguments;
use super::super::clocks::{ClockError, Clocks, ONE_CLOCK, TOO_FEW};
use super::super::result::DelayResult;
use super::super::{matching, point};
use super::coverage::{Coverage, now};
use super::recorder::Recorder;
use super::session::{announce, no_packets_hint, open, pair_session, result};
use crate::clock;
use crate::interrupt::stop_on_signal;
use crate::metrics::delay::Exported;
use crate::output::Output;
use crate::usage::usage;

/// Measures live between a pipe, which is point `of_pipe`, and an interface.
pub(in super::super) fn with_pipe(
    arguments: &Arguments,
    of_pipe: Point,
    pipe: &Path,
    output: Output,
) -> anyhow::Result<DelayResult> {
    if arguments.align || arguments.remove_skew {
        return Err(usage(
            "--align and --remove-skew read both captures twice; capture into files and compare the files",
        ));
    }
    let filter = arguments.filter.as_deref().map(Filter::compile).transpose()?;
    let point_state = arguments.point_state();
    let terms = Terms {
        correlation: arguments.correlation(),
        partial: true,
        filter: filter.as_ref(),
        correction: Correction { offset: arguments.offset.unwrap_or(Span::ZERO), skew: None },
        state: Some(&point_state),
    };
    let (name, domain) = interface(arguments, of_pipe)?;
    let clock = clock::start_service(None)?;
    let stop = stop_on_signal()?;
    let cores = Cores::choose(1).into_iter().next();
    let capture = open(arguments, name, cores, arguments.live.limit(), &clock)?;
    let coverage = Coverage::new(terms.correlation);
    coverage.begins(other(of_pipe), now(&clock));
    announce([&capture], &clock, output);
    let mut recorder =
        Recorder::new(arguments, &clock, &coverage, output, Exported::none(), false)?;
    let session = pair_session(arguments, terms.correlation, &mut recorder);
    let here = LiveCapture { capture, domain, clock: &clock, coverage: &coverage };
    let (tap, read) = run_both(here, of_pipe, pipe, &session, &terms, &stop);
    let choice = session.rule_choice();
    let points = session.finish();
    let flows = std::mem::replace(&mut recorder.flows, arguments.flow_table());
    let (tap, read) = (tap?, read?);
    let remarks = read.damage.iter().cloned().chain(no_packets_hint(arguments, &flows, name));
    let remarks = remarks.collect();
    let error = read.clock_error(&tap);
    let clocks = Clocks {
        skew: if error.is_ok() { Err(ONE_CLOCK) } else { recorder.skew.estimate().ok_or(TOO_FEW) },
        error: error.map_or_else(ClockError::Unknown, ClockError::Fixed),
        correction: terms.correction,
        aligned: false,
    };
    let found = result(arguments, flows, (vec![tap], points), clocks);
    let mut found = with_pipe_report(found, &read, of_pipe, remarks);
    if of_pipe == Point::A {
        found.suspect_direction(arguments);
    }
    recorder.finish(choice, &mut found);
    Ok(found)
}

/// Adds the pipe's capture losses and the remarks to a result.
fn with_pipe_report(
    found: DelayResult,
    read: &PipeReport,
    of_pipe: Point,
    remarks: Vec<String>,
) -> DelayResult {
    let [here, _] = found.capture_dropped;
    fn in_order<T>(of_pipe: Point, of_pipe_is: T, of_interface: T) -> [T; 2] {
        match of_pipe {
            Point::A => [of_pipe_is, of_interface],
            Point::B => [of_interface, of_pipe_is],
        }
    }
    DelayResult {
        capture_dropped: in_order(of_pipe, read.capture_lost, here),
        undated: in_order(of_pipe, read.undated, 0),
        remarks,
        ..found
    }
}

/// The name of the interface among the two points, and its stamping clock.
fn interface(arguments: &Arguments, of_other: Point) -> anyhow::Result<(&str, Domain)> {
    let given =
        [("--metrics", arguments.live.endpoint.is_open()), ("--layers", arguments.live.layers)];
    if let Some((option, _)) = given.into_iter().find(|&(_, given)| given) {
        return Err(usage(format!(
            "{option} needs two interfaces, and one of the points is a capture"
        )));
    }
    let name = if of_other == Point::A { &arguments.b } else { &arguments.a };
    Ok((name, arguments.live.pair()?.1.domain()))
}

const fn other(point: Point) -> Point {
    match point {
        Point::A => Point::B,
        Point::B => Point::A,
    }
}

/// The live capture.
struct LiveCapture<'a> {
    capture: Capture,
    domain: Domain,
    clock: &'a ClockService,
    coverage: &'a Coverage,
}

/// Runs the capture and reads the pipe. When one of them ends, the other continues for the timeout, for
/// packets still on the way. Packets that the pipe may not have delivered, and when `stop` ends both, those of the last timeout,
/// are undetermined, unless they are matched.
fn run_both<R: OutcomeRecorder + Send>(
    here: LiveCapture<'_>,
    of_pipe: Point,
    pipe: &Path,
    session: &PairSession<R>,
    terms: &Terms<'_>,
    stop: &Stop,
) -> (Result<TapReport, Error>, Result<PipeReport, Error>) {
    let timeout = Duration::from_nanos(terms.correlation.timeout.as_nanos().unsigned_abs());
    let end = |failed: bool| {
        if !failed {
            stop.wait(timeout);
        }
        stop.request();
    };
    thread::scope(|scope| {
        let tap = scope.spawn(|| {
            let recording = Recording::new(here.clock, here.domain, None);
            let report = session.capture(other(of_pipe), here.capture, recording, stop);
            here.coverage.ends(other(of_pipe), now(here.clock));
            end(report.is_err());
            report
        });
        let read = Reader::follow(pipe, stop).and_then(|reader| {
            // The remote capture may start later than this one, as over ssh.
            let begin = now(here.clock);
            here.coverage.begins(of_pipe, begin);
            let report = session.read_pipe(of_pipe, reader, terms, stop)?;
            // Later packets may still be on the way to this process.
            here.coverage.ends(of_pipe, report.latest.unwrap_or(begin));
            Ok(report)
        });
        end(read.is_err());
        (tap.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), read)
    })
}

/// Measures between a file, which is point `of_file`, and an interface: captures into a temporary
/// file, then compares both files.
pub(in super::super) fn with_file(
    arguments: &Arguments,
    of_file: Point,
    file: &point::Point,
    output: Output,
) -> anyhow::Result<DelayResult> {
    // Report an unreadable file before the measurement.
    if let Some(path) = file.capture() {
        Reader::open(path)?;
    }
    let (name, domain) = interface(arguments, of_file)?;
    let clock = clock::start_service(None)?;
    let stop = stop_on_signal()?;
    let cores = Cores::choose(1).into_iter().next();
    let capture = open(arguments, name, cores, arguments.live.limit(), &clock)?;
    let spool = tempfile::Builder::new().prefix("wirestamp-delay-").suffix(".pcapng").tempfile();
    let spool = spool.context("cannot create a temporary file for the packets of the interface")?;
    let facts = capture.facts();
    let provenance = Provenance::now(facts, &clock, domain);
    let writer = Writer::create(spool.path(), facts, provenance)?;
    announce([&capture], &clock, output);
    let mut recording = Recording::new(&clock, domain, Some(writer));
    let (ledger, outcome) = capture.run(&clock, &stop, &mut recording);
    let (_, written) = recording.finish(&ledger);
    outcome.and(written)?;
    let here = point::Point::Captured(spool.path().to_owned());
    match of_file {
        Point::A => matching::compare(arguments, [file, &here], true),
        Point::B => matching::compare(arguments, [&here, file], true),
    }
}
