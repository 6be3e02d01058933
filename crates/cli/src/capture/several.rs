//! A capture of several interfaces at once, into one file.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, panic, thread};

use anyhow::Context as _;
use wirestamp_capture::file::{Provenance, Writer};
use wirestamp_capture::{
    Capture, CaptureLoss, CapturedPacket, Config, Cores, Error, Facts, Ledger, SharedCount, Sink,
    StampSource, Stop, pair,
};
use wirestamp_clock::{ClockService, Time, Utc};
use wirestamp_packet::LinkType;
use wirestamp_session::Recording;

use super::announce::{announce_one_of, show_calibration};
use super::open::open;
use super::print::{PrintedPacket, Printer};
use super::{Arguments, present};
use crate::clock;
use crate::interrupt::{report_on_signal, stop_on_signal};
use crate::output::{Output, to_stderr};
use crate::progress::LiveLine;
use crate::redirection;
use crate::target::Target;
use crate::usage::usage;

/// Output that the interfaces share.
struct Shared {
    writer: Option<Writer>,
    printer: Option<Printer>,
}

/// The packets of one interface.
struct InterfaceSink<'a> {
    /// Number of the interface in the file.
    number: usize,
    name: String,
    link: LinkType,
    /// Figures of this interface. It writes no file.
    recording: Recording<'a>,
    shared: &'a Mutex<Shared>,
}

impl InterfaceSink<'_> {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(self.shared)
    }
}

impl Sink for InterfaceSink<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        let mut shared = lock(self.shared);
        if let Some(writer) = &mut shared.writer {
            writer.packet_of(self.number, packet)?;
        }
        self.recording.packet(packet)?;
        let Some(printer) = &mut shared.printer else { return Ok(()) };
        let printed = PrintedPacket::of(packet, self.link);
        printer.packet(&printed.line(printer.style()), Some(&self.name))
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        let mut shared = self.shared();
        if let Some(writer) = &mut shared.writer {
            writer.missed_of(self.number, missed)?;
        }
        let Some(printer) = &mut shared.printer else { return Ok(()) };
        printer.missed(missed, Some(&self.name))
    }

    fn complete(&mut self, until: Time<Utc>) -> Result<(), Error> {
        self.recording.complete(until)
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.recording.pause()?;
        self.shared().writer.as_mut().map_or(Ok(()), Writer::pause)
    }

    fn end(&mut self) -> Result<(), Error> {
        self.recording.end()?;
        self.shared().writer.as_mut().map_or(Ok(()), Writer::end)
    }

    fn lost(&self) -> u64 {
        self.shared().writer.as_ref().map_or(0, |writer| writer.lost_of(self.number).0)
    }
}

/// The output, also after a panic of another interface's thread.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A finished capture of an interface.
type Captured<'a> = (InterfaceSink<'a>, Ledger, Result<(), Error>);

/// Captures at the interfaces of `targets` until the stop, a limit, or the end of one of them.
pub(super) fn run(
    arguments: &Arguments,
    targets: &[Target],
    filter: Option<&str>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    check(arguments, targets)?;
    let configs = configs(arguments, targets, filter);
    let config = configs.first().context("no interface given")?;
    let domain = pair(config.method, config.stamp)?.domain;
    let clock = Arc::new(clock::start_service(None)?);
    let stop = stop_on_signal()?;
    let destination = &arguments.destination;
    destination.check(domain, output.json)?;
    let opened = targets.iter().zip(&configs);
    let captures: Vec<_> = opened
        .map(|(target, config)| open(arguments, target, config, &clock, &stop, output))
        .collect::<anyhow::Result<_>>()?;
    let facts: Vec<_> = targets.iter().zip(&captures).map(named_facts).collect();
    redirection::warn(config.method, config.filter.as_deref(), output);
    let interfaces =
        facts.iter().map(|facts| (facts.clone(), Provenance::now(facts, &clock, domain)));
    let writer = destination.writer(interfaces.collect())?;
    let files = writer.as_ref().map_or(&[][..], Writer::paths);
    arguments.privileges.drop_now(files.last().map(PathBuf::as_path), destination.rotates())?;
    let prints = arguments.print.are_requested();
    let printer = prints.then(|| arguments.print.printer(output.verbose, false));
    let shared = Mutex::new(Shared { writer, printer });
    let live: Vec<_> = facts
        .iter()
        .zip(&captures)
        .map(|(of, it)| (of.interface.clone(), it.live_ledger()))
        .collect();
    let reported = live.clone();
    report_on_signal(move || {
        for (interface, ledger) in &reported {
            to_stderr(format_args!("{interface}: {}", present::counts(&ledger.snapshot())));
        }
    })?;
    facts.iter().for_each(|facts| announce_one_of(facts, output));
    show_calibration(output, &clock);
    output.remark(format_args!("capturing on {} interfaces; Ctrl-C ends it", facts.len()));
    let sinks = facts.iter().enumerate().map(|(number, facts)| InterfaceSink {
        number,
        name: facts.interface.clone(),
        link: facts.link,
        recording: Recording::new(&clock, domain, None),
        shared: &shared,
    });
    let progress = move || present::progress(live.iter().map(|(_, ledger)| ledger.snapshot()));
    let line = arguments.shows_counts(output).then(|| LiveLine::start(progress)).transpose()?;
    let captured = capture_all(captures, sinks, &clock, &stop)?;
    drop(line);
    let (summaries, ledgers, outcomes) = finish(captured, facts);
    let writer = lock(&shared).writer.take();
    let files = writer.as_ref().map_or_else(Vec::new, |writer| writer.paths().to_vec());
    let written = writer.map_or(Ok(()), |writer| writer.finish_all(&ledgers));
    let summary = present::Total::new(summaries, &ledgers, destination.path(), files);
    if destination.is_stdout() || prints {
        output.remark(summary.text().trim_end());
    } else {
        output.result(&summary, present::Total::text)?;
    }
    outcomes.into_iter().collect::<Result<(), _>>().and(written)?;
    let balances = ledgers.iter().all(Ledger::balances);
    Ok(if balances { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Rejects what several interfaces cannot have.
fn check(arguments: &Arguments, targets: &[Target]) -> anyhow::Result<()> {
    if targets.iter().any(|target| target.interface == "any") {
        return Err(usage("-i any captures at all interfaces already; leave the other -i out"));
    }
    let is_repeated =
        |at: usize, target: &Target| targets.iter().take(at).any(|other| other == target);
    let repeated = targets.iter().enumerate().find(|&(at, target)| is_repeated(at, target));
    if let Some((_, target)) = repeated {
        return Err(usage(format!("-i {target} is given twice; leave one out")));
    }
    if arguments.destination.is_classic() {
        return Err(usage("several -i: pcap files have one interface only; use --format pcapng"));
    }
    let needs_one = [
        (arguments.list, "--list"),
        (arguments.tune.is_some(), "--tune"),
        (arguments.events.are_requested(), "--events"),
        (arguments.endpoint.is_open(), "--metrics"),
        (arguments.destination.keeps_anchors(), "--anchors"),
        (arguments.stamp == Some(StampSource::Hardware), "--stamp hardware"),
        (arguments.threads.is_some(), "--threads"),
        (!arguments.cores.is_empty(), "--cores"),
    ];
    match needs_one.into_iter().find(|(is_requested, _)| *is_requested) {
        Some((_, what)) => Err(usage(format!(
            "several -i: {what} can have one interface only; leave it out, or start a capture for each interface"
        ))),
        None => Ok(()),
    }
}

/// The settings of each interface's capture, with cores of its own, and a common count of packets.
fn configs(arguments: &Arguments, targets: &[Target], filter: Option<&str>) -> Vec<Config> {
    let shared_count = arguments.count.map(SharedCount::new);
    let cores = Cores::choose(targets.len()).into_iter().chain(std::iter::repeat(Cores::default()));
    let config = |(target, cores): (&Target, Cores)| {
        let mut config = arguments.config(&target.interface, filter.map(str::to_owned));
        config.lanes = vec![cores];
        config.limit.packets = None;
        config.shared_count.clone_from(&shared_count);
        config
    };
    targets.iter().zip(cores).map(config).collect()
}

/// The facts of a capture, whose interface is named as on the command line: names of several namespaces may be equal.
fn named_facts((target, capture): (&Target, &Capture)) -> Facts {
    Facts { interface: target.to_string(), ..capture.facts().clone() }
}

/// Runs each capture on a thread of its own, until all have ended.
fn capture_all<'a>(
    captures: Vec<Capture>,
    sinks: impl Iterator<Item = InterfaceSink<'a>>,
    clock: &ClockService,
    stop: &Stop,
) -> anyhow::Result<Vec<Captured<'a>>> {
    thread::scope(|scope| {
        let start = |(capture, mut sink): (Capture, InterfaceSink<'a>)| {
            thread::Builder::new().name("ws-interface".into()).spawn_scoped(scope, move || {
                let (ledger, outcome) = capture.run(clock, stop, &mut sink);
                // The end of one capture, for example because its interface is gone, ends all.
                stop.request();
                (sink, ledger, outcome)
            })
        };
        let started: io::Result<Vec<_>> = captures.into_iter().zip(sinks).map(start).collect();
        let started = started.inspect_err(|_| stop.request());
        let threads = started.context("cannot start a thread for the capture")?;
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
        };
        Ok(threads.into_iter().map(join).collect())
    })
}

/// The summary, the ledger and the outcome of each interface.
fn finish(
    captured: Vec<Captured<'_>>,
    facts: Vec<Facts>,
) -> (Vec<present::Summary>, Vec<Ledger>, Vec<Result<(), Error>>) {
    let (mut summaries, mut ledgers, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
    for ((sink, ledger, outcome), facts) in captured.into_iter().zip(facts) {
        let InterfaceSink { number, recording, shared, .. } = sink;
        let (mut figures, recorded) = recording.finish(&ledger);
        let lost = lock(shared).writer.as_ref().map_or(0, |writer| writer.lost_of(number).1);
        figures.bytes = figures.bytes.saturating_sub(lost);
        summaries.push(present::Summary::new(facts, figures, ledger, None));
        ledgers.push(ledger);
        outcomes.push(outcome.and(recorded));
    }
    (summaries, ledgers, outcomes)
}
