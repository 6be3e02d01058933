//! Live measurement: two interfaces of this host, or one and a capture.

mod coverage;
mod one_interface;
mod recorder;
mod session;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::{Capture, Cores, Error, Limit, Stop};
use wirestamp_clock::Domain;
use wirestamp_metrics::Point;
use wirestamp_session::{Figures, OutcomeRecorder, PairSession, Recording, TapReport};

pub(super) use self::one_interface::{with_file, with_pipe};

use self::coverage::{Coverage, now};
use self::recorder::Recorder;
use self::session::{announce, no_packets_hint, open, pair_session, result};
use super::arguments::Arguments;
use super::clocks::{ClockError, Clocks};
use super::layers;
use super::result::DelayResult;
use crate::clock;
use crate::interrupt::stop_on_signal;
use crate::metrics::delay::Exported;
use crate::output::Output;
use crate::usage::usage;

/// Measures between two interfaces.
pub(super) fn interfaces(arguments: &Arguments, output: Output) -> anyhow::Result<DelayResult> {
    reject_file_options(arguments)?;
    let (method, stamp) = arguments.live.pair()?;
    let domain = stamp.domain();
    if domain == Domain::Nic {
        return Err(usage(
            "--stamp hardware: each network card has its own clock; write both points to files with \
             `wirestamp capture`, and compare the files",
        ));
    }
    let clock = Arc::new(clock::start_service(None)?);
    let stop = stop_on_signal()?;
    let mut cores = Cores::choose(2).into_iter();
    let followed = layers::open(arguments, method, &clock, output)?;
    // B first, so that it captures every packet that A captures.
    let (cores_a, cores_b) = (cores.next(), cores.next());
    let b = open(arguments, &arguments.b, cores_b, Limit::default(), &clock)?;
    let a = open(arguments, &arguments.a, cores_a, Limit::default(), &clock)?;
    let coverage = Coverage::new(arguments.correlation());
    coverage.begins(Point::A, now(&clock));
    let exported = Exported::serve(
        &arguments.live.endpoint,
        [&a, &b],
        arguments.share(),
        arguments.live.direction.is_none(),
        &clock,
        output,
    )?;
    announce([&a, &b], &clock, output);
    let recordings =
        exported.figures().map(|figures| Recording::new(&clock, domain, None).show_in(figures));
    let mut recorder = Recorder::new(arguments, &clock, &coverage, output, exported, true)?;
    let session = pair_session(arguments, arguments.correlation(), &mut recorder);
    let end = || {
        stop.wait(arguments.live.duration().unwrap_or(Duration::MAX));
        coverage.ends(Point::A, now(&clock));
    };
    let timeout = arguments.timeout();
    let measure = || run_captures([a, b], recordings, &session, timeout, &stop, end);
    let (taps, layers) = layers::during(followed, &stop, measure);
    let choice = session.rule_choice();
    let points = session.finish();
    let [a, b] = taps?;
    let taps = [a?, b?];
    let error = clock_error(taps.each_ref().map(|tap| &tap.figures));
    let flows = std::mem::replace(&mut recorder.flows, arguments.flow_table());
    let mut measured = result(arguments, flows, (taps.into(), points), Clocks::of_one_host(error));
    measured.layers = layers?;
    measured.suspect_direction(arguments);
    recorder.finish(choice, &mut measured);
    if let Some(remark) = no_packets_hint(arguments, &measured.flows, &arguments.a) {
        measured.remarks.push(remark);
    }
    Ok(measured)
}

fn reject_file_options(arguments: &Arguments) -> anyhow::Result<()> {
    let given = [
        ("--partial applies to files", arguments.partial),
        ("--align applies to files", arguments.align),
        ("--remove-skew applies to files", arguments.remove_skew),
        ("--offset applies to two clocks", arguments.offset.is_some()),
    ];
    match given.into_iter().find(|&(_, given)| given) {
        Some((what, _)) => Err(usage(format!("{what}, not to two interfaces of one host"))),
        None => Ok(()),
    }
}

/// Runs both captures: A until `end` returns, B longer by the timeout, for packets still on the way.
fn run_captures<R: OutcomeRecorder + Send>(
    [a, b]: [Capture; 2],
    [of_a, of_b]: [Recording<'_>; 2],
    session: &PairSession<R>,
    timeout: Duration,
    failed: &Stop,
    end: impl FnOnce(),
) -> anyhow::Result<[Result<TapReport, Error>; 2]> {
    let stops = [Stop::new(), Stop::new()].map(|stop| stop.context("cannot create the stop event"));
    let [stop_a, stop_b] = stops;
    let (stop_a, stop_b) = (stop_a?, stop_b?);
    let run = |point, capture, recording, stop: &Stop| {
        let report = session.capture(point, capture, recording, stop);
        // If one fails, the other must not wait for Ctrl-C.
        [failed, &stop_a, &stop_b].into_iter().filter(|_| report.is_err()).for_each(Stop::request);
        report
    };
    Ok(thread::scope(|scope| {
        let a = scope.spawn(|| run(Point::A, a, of_a, &stop_a));
        let b = scope.spawn(|| run(Point::B, b, of_b, &stop_b));
        end();
        stop_a.request();
        stop_b.wait(timeout);
        stop_b.request();
        [a, b].map(|tap| tap.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }))
}

/// Error bound of delays between stamps of this host.
fn clock_error(taps: [&Figures; 2]) -> ClockError {
    let steps = taps.map(|tap| tap.clock_steps).into_iter().max().unwrap_or(0);
    if steps > 0 && taps.iter().any(|tap| tap.steps_unbounded) {
        ClockError::Unknown(format!(
            "the system clock was stepped {steps} times during the measurement, which changes kernel \
             stamps; use --stamp raw"
        ))
    } else {
        ClockError::PerDelay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_unknown_after_a_step_that_stamps_do_not_include() {
        let is_unknown = |clock_steps, unbounded: [bool; 2]| {
            let [a, b] = unbounded.map(|steps_unbounded| Figures {
                clock_steps,
                steps_unbounded,
                ..Figures::default()
            });
            matches!(clock_error([&a, &b]), ClockError::Unknown(_))
        };
        assert!(is_unknown(1, [false, true]) && is_unknown(2, [true, false]));
        assert!(!is_unknown(1, [false, false]) && !is_unknown(0, [true, true]));
    }
}
