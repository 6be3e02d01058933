//! An interface beside a capture that was made, or is being made, elsewhere.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{Capture, Cores, Error, Filter, Stop};
use wirestamp_clock::{ClockService, Domain, Span};
use wirestamp_metrics::{ClockSkew, Outcome, Point};
use wirestamp_session::{Correction, PairSession, PipeReport, Recording, TapReport, Terms};

use super::super::clocks::{ClockError, Clocks, ONE_CLOCK, TOO_FEW};
use super::super::findings::Findings;
use super::super::{Arguments, files, flow_table, point};
use super::coverage::{Coverage, now};
use super::{begin, findings, open, silence, start_clock};
use crate::interrupt::stop_on_signal;
use crate::output::Output;
use crate::usage::usage;

/// Measures between a pipe, which is point `of_pipe`, and an interface, as packets come.
pub(in crate::delay) fn beside_pipe(
    arguments: &Arguments,
    of_pipe: Point,
    pipe: &Path,
    output: Output,
) -> anyhow::Result<Findings> {
    if arguments.align || arguments.remove_skew {
        return Err(usage(
            "--align and --remove-skew read both captures twice: capture into files, and compare those",
        ));
    }
    let filter = arguments.filter.as_deref().map(Filter::compile).transpose()?;
    let sight = arguments.sight();
    let terms = Terms {
        correlation: arguments.correlation(),
        partial: true,
        filter: filter.as_ref(),
        correction: Correction { offset: arguments.offset.unwrap_or(Span::ZERO), skew: None },
        sight: Some(&sight),
    };
    let (name, domain) = interface(arguments, of_pipe)?;
    let clock = start_clock()?;
    let stop = stop_on_signal()?;
    let cores = Cores::choose(1).into_iter().next();
    let capture = open(arguments, name, cores, arguments.live.limit(), &clock)?;
    let coverage = Coverage::new(terms.correlation);
    coverage.begins(other(of_pipe), now(&clock));
    begin([&capture], &clock, output);
    let (mut flows, mut skew) = (flow_table(), ClockSkew::default());
    let meeting = PairSession::new(terms.correlation, |outcome: Outcome| {
        let outcome = coverage.judge(outcome);
        if let Outcome::Matched { sent, delay, .. } = &outcome {
            skew.record(sent.stamp.utc, *delay);
        }
        flows.record(&outcome);
    })
    .seeing(&sight);
    let here = Here { capture, domain, clock: &clock };
    let (tap, read) = attend(here, of_pipe, pipe, &meeting, &terms, &stop);
    let sights = meeting.finish();
    let (tap, read) = (tap?, read?);
    let remarks = read.damage.iter().cloned().chain(silence(arguments, &flows, name));
    let remarks = remarks.collect();
    let error = read.clock_error(&tap);
    let clocks = Clocks {
        skew: if error.is_ok() { Err(ONE_CLOCK) } else { skew.estimate().ok_or(TOO_FEW) },
        error: error.map_or_else(ClockError::Unknown, ClockError::OfFiles),
        correction: terms.correction,
        aligned: false,
    };
    Ok(together(findings(arguments, flows, (vec![tap], sights), clocks), &read, of_pipe, remarks))
}

/// What was found, with what was read from the pipe.
fn together(found: Findings, read: &PipeReport, of_pipe: Point, remarks: Vec<String>) -> Findings {
    let [here, _] = found.capture_dropped;
    let in_order = |of_pipe_is: u64, of_interface: u64| match of_pipe {
        Point::A => [of_pipe_is, of_interface],
        Point::B => [of_interface, of_pipe_is],
    };
    Findings {
        capture_dropped: in_order(read.capture_lost, here),
        undated: in_order(read.undated, 0),
        remarks,
        ..found
    }
}

/// The interface of the two points, and the clock that stamps there.
fn interface(arguments: &Arguments, of_other: Point) -> anyhow::Result<(&str, Domain)> {
    let given =
        [("--metrics", arguments.live.endpoint.is_open()), ("--layers", arguments.live.layers)];
    if let Some((option, _)) = given.into_iter().find(|&(_, given)| given) {
        return Err(usage(format!(
            "{option} is for two interfaces, and one of these is a capture"
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

/// A capture that is to run here.
struct Here<'a> {
    capture: Capture,
    domain: Domain,
    clock: &'a ClockService,
}

/// Runs the capture and reads the pipe. When one of them ends, the other has the time-out left, so that
/// what is under way arrives.
fn attend<R: FnMut(Outcome) + Send>(
    here: Here<'_>,
    of_pipe: Point,
    pipe: &Path,
    meeting: &PairSession<R>,
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
            let report = meeting.attend(other(of_pipe), here.capture, recording, stop);
            end(report.is_err());
            report
        });
        let read = Reader::follow(pipe, stop)
            .and_then(|reader| meeting.attend_pipe(of_pipe, reader, terms, stop));
        end(read.is_err());
        (tap.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), read)
    })
}

/// Measures between a file, which is point `of_file`, and an interface: captures there, until the end,
/// and compares the file with that.
pub(in crate::delay) fn beside_file(
    arguments: &Arguments,
    of_file: Point,
    file: &point::Point,
    output: Output,
) -> anyhow::Result<Findings> {
    // Before the measurement, not after it.
    if let Some(path) = file.capture() {
        Reader::open(path)?;
    }
    let (name, domain) = interface(arguments, of_file)?;
    let clock = start_clock()?;
    let stop = stop_on_signal()?;
    let cores = Cores::choose(1).into_iter().next();
    let capture = open(arguments, name, cores, arguments.live.limit(), &clock)?;
    let spool = tempfile::Builder::new().prefix("wirestamp-delay-").suffix(".pcapng").tempfile();
    let spool = spool.context("cannot make a file for the packets of the interface")?;
    let facts = capture.facts();
    let provenance = Provenance::now(facts, &clock, domain);
    let writer = Writer::create(spool.path(), facts, provenance)?;
    begin([&capture], &clock, output);
    let mut recording = Recording::new(&clock, domain, Some(writer));
    let (ledger, outcome) = capture.run(&clock, &stop, &mut recording);
    let (_, written) = recording.finish(&ledger);
    outcome.and(written)?;
    let here = point::Point::File(spool.path().to_owned());
    match of_file {
        Point::A => files::compared(arguments, [file, &here]),
        Point::B => files::compared(arguments, [&here, file]),
    }
}
