//! The flows of an interface.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use wirestamp_capture::capabilities::card_clock;
use wirestamp_capture::{Capture, Config, Cores, Error, Limit, Stop, pair};
use wirestamp_clock::ClockService;
use wirestamp_session::flows::{FlowTap, Flows, SharedFlows};
use wirestamp_session::{Recording, TapReport};

use super::arguments::Arguments;
use super::document::{Document, Tap};
use super::parties::Parties;
use super::screen::{self, Data};
use crate::capture::show_calibration;
use crate::clock;
use crate::interrupt::stop_on_signal;
use crate::metrics;
use crate::output::Output;
use crate::redirection;
use crate::target::Target;

pub(super) fn run(
    target: &Target,
    arguments: &Arguments,
    output: Output,
) -> anyhow::Result<Document> {
    arguments.browses()?;
    let (method, stamp) = arguments.live.pair()?;
    let pair = pair(method, stamp)?;
    arguments.live.direction.map_or(Ok(()), |direction| direction.check(method))?;
    let filter = arguments.filter();
    arguments.live.consent.check(method, filter.as_deref())?;
    redirection::warn(method, filter.as_deref(), output);
    let clock =
        Arc::new(clock::start_service(target.enter(|| card_clock(pair, &target.interface))??)?);
    let stop = stop_on_signal()?;
    let capture = open(target, arguments, &clock)?;
    capture.facts().notes.iter().for_each(|note| output.remark(note));
    let flows =
        Arc::new(SharedFlows::from(Flows::new(arguments.config()).inside_tunnels(arguments.inner)));
    let endpoint = &arguments.live.endpoint;
    let figures = metrics::flows::serve(endpoint, &flows, &capture, &clock, output)?;
    output.remark(format_args!("measuring flows on {}; Ctrl-C ends it", target.interface));
    show_calibration(output, &clock);
    let tap = || {
        let recording = Recording::new(&clock, pair.domain, None).show_in(figures);
        FlowTap::new(&flows, recording)
    };
    let tap = if arguments.shows_screen(output) {
        run_with_screen(capture, tap, &flows, &arguments.parties, &stop)?
    } else {
        tap().capture(capture, &stop)?
    };
    let document = Document::of(&mut flows.lock(), Some(tap.ledger.lost()));
    Ok(Document { clock_error_ns: tap.figures.error_ns, tap: Some(Tap { tap }), ..document })
}

fn open(target: &Target, arguments: &Arguments, clock: &ClockService) -> anyhow::Result<Capture> {
    let (method, stamp) = arguments.live.pair()?;
    let config = Config {
        filter: arguments.filter(),
        direction: arguments.live.direction.map(Into::into).unwrap_or_default(),
        lanes: Cores::choose(1),
        limit: Limit {
            packets: arguments.count,
            duration: arguments.live.duration.map(Duration::from_secs_f64),
        },
        ..Config::new(&target.interface, method, stamp)
    };
    match target.enter(|| Capture::open(config, clock))? {
        Err(Error::NoSuchInterface(_)) => {
            bail!("no interface {}; list the interfaces with `ip link`", target.interface)
        }
        opened => Ok(opened?),
    }
}

/// Runs the capture and the screen, which shows the calls of `parties`; the end of one ends the other.
fn run_with_screen<'a>(
    capture: Capture,
    tap: impl FnOnce() -> FlowTap<'a> + Send,
    flows: &SharedFlows,
    parties: &Parties,
    stop: &Stop,
) -> anyhow::Result<TapReport> {
    let (facts, ledger) = (capture.facts(), capture.live_ledger());
    let (from, filter) = (facts.interface.clone(), facts.filter.clone());
    let data = Data { from, filter, live: true, capture_lost: Some(0), ..Data::default() };
    let refresh = |data: &mut Data| {
        data.reports = flows.reports();
        let monitor = &flows.lock().monitor;
        data.calls = monitor.calls_so_far(&data.reports);
        (data.packets, data.bytes) = (monitor.packets(), monitor.bytes());
        parties.keep(&mut data.calls, &mut data.reports);
        data.capture_lost = Some(ledger.snapshot().lost());
    };
    thread::scope(|scope| {
        let capturing = scope.spawn(move || {
            let report = tap().capture(capture, stop);
            stop.request();
            report
        });
        let shown = screen::show(data, refresh, stop);
        stop.request();
        let report = capturing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        shown.map(|()| report)
    })
}
