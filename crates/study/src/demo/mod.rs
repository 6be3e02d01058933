//! The demo: a phone call, a video and a burst across a bottleneck, measured at two taps by the
//! raw-stamp pipeline, and checked against everything that is known of the run.

mod bed;
mod present;
mod recorder;
mod truth;
mod witness;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use wirestamp_capture::file::{Provenance, Writer};
use wirestamp_capture::{
    Capture, Config, Facts, Ledger, Method, StampSource, Stop, Wait, allowed_cores,
};
use wirestamp_clock::{ClockService, ClockStatus, Counter, Time, Utc};
use wirestamp_lab::{Netns, PathLab, TAP_A, TAP_B};
use wirestamp_metrics::{Config as Correlation, Point, Quality};
use wirestamp_traffic::{SendReport, Sender, ServiceClock, Sink, SinkReport};

use crate::report::{self, Check};
use crate::{Meeting, Tap, TapReport};
use bed::ROLES;
use recorder::Recorder;
use truth::Truth;
use witness::Witness;

/// How long the packets that are under way at the end may take to arrive. The queue holds 44 ms.
const LAST_PACKETS: Duration = Duration::from_secs(5);
/// How often progress is reported.
const PROGRESS: Duration = Duration::from_millis(100);

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long packets are sent.
    pub duration: Duration,
    /// Where the report and the captures go. Made if it does not exist.
    pub folder: PathBuf,
    /// Whether the packets are IPv6 rather than IPv4.
    pub ipv6: bool,
}

/// How far the run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// Another step has begun.
    Step(&'static str),
    /// This share of the packets is sent, 0 to 1.
    Sending(f64),
}

/// What came of it. Serialises as the document of `wirestamp demo --json`.
#[derive(Debug, Serialize)]
pub struct Findings {
    /// Whether it was stopped before everything was sent.
    pub interrupted: bool,
    /// The clock behind the stamps.
    pub clock: ClockStatus,
    /// Each stream, and what the path did to it.
    pub streams: Vec<Found>,
    /// All streams together.
    pub total: Quality,
    /// What was compared with the truth.
    pub checks: Vec<Check>,
    /// The two taps, A and B.
    pub taps: Vec<TapFindings>,
    /// Where the truth is missing a part, in words.
    pub notes: Vec<&'static str>,
    /// The report.
    pub report: PathBuf,
    /// The captures at tap A and B.
    pub captures: [PathBuf; 2],
}

/// What was found of one stream.
#[derive(Debug, Serialize)]
pub struct Found {
    /// What it stands for.
    pub name: &'static str,
    /// Its rhythm, in words.
    pub pattern: String,
    /// Its UDP destination port.
    pub port: u16,
    /// What the path did to it.
    #[serde(flatten)]
    pub quality: Quality,
}

/// What one tap captured.
#[derive(Debug, Serialize)]
pub struct TapFindings {
    /// The capture's set-up.
    pub facts: Facts,
    /// Where its packets went.
    pub ledger: Ledger,
    /// What it saw.
    #[serde(flatten)]
    pub report: TapReport,
}

impl Findings {
    /// Whether everything that was compared with the truth agrees with it.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

/// Runs the demo until everything is sent or `stop` is requested, and writes the report.
///
/// # Errors
/// When the lab, a capture, the sender or a file cannot be had; the message says what to do.
pub fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> anyhow::Result<Findings> {
    wirestamp_lab::check_privilege()?;
    fs::create_dir_all(&options.folder)
        .with_context(|| format!("cannot make the folder {}", options.folder.display()))?;
    progress(Progress::Step("building the path"));
    let clock = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let lab = PathLab::new(&bed::impairments())?;
    let witness = Witness::start(&lab, &options.folder)?;
    let mut run = Run { options, clock: &clock, lab: &lab, started: utc_now(&clock) };

    let mut recorder = Recorder::default();
    let (traffic, taps) = run.measure(stop, &mut recorder, progress)?;

    progress(Progress::Step("comparing with the truth"));
    let witness = witness.map(Witness::finish).transpose()?;
    let truth = Truth {
        sent: &traffic.sent,
        arrived: &traffic.arrived,
        bottleneck: lab.bottleneck()?,
        copies: lab.duplicated()?,
        path: lab.impairments(),
        witness: witness.as_ref(),
    };
    let checks = truth.checks(&recorder);
    let mut notes = Vec::new();
    if witness.is_none() {
        notes.push(
            "tcpdump is missing, so nobody else measured the delay; `make setup` installs it",
        );
    }
    if !truth.queue_was_full() {
        notes.push("the run was over before the queue was full, so the delays were not compared");
    }
    let findings = run.findings(&traffic, &recorder, checks, taps, notes);
    let page = report::html(&present::report(&findings, &recorder, run.started));
    fs::write(&findings.report, page)
        .with_context(|| format!("cannot write {}", findings.report.display()))?;
    Ok(findings)
}

/// What a run works with.
struct Run<'a> {
    options: &'a Options,
    clock: &'a ClockService,
    lab: &'a PathLab,
    started: Time<Utc>,
}

/// What the ends of the path know.
struct Traffic {
    sent: SendReport,
    arrived: Vec<SinkReport>,
}

impl Run<'_> {
    /// Sends, captures and correlates.
    fn measure(
        &mut self,
        stop: &Stop,
        recorder: &mut Recorder,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<(Traffic, Vec<TapFindings>)> {
        let meeting = Meeting::new(Correlation::default(), |outcome| recorder.record(&outcome));
        let captures_stop = Stop::new().context("cannot make the stop event")?;
        let a = self.open(self.lab.router(), TAP_A)?;
        let b = self.open(self.lab.sink(), TAP_B)?;
        let measured = thread::scope(|scope| {
            let (meeting, stopper) = (&meeting, &captures_stop);
            let (clock, options) = (self.clock, self.options);
            let taps = [(a, Point::A), (b, Point::B)].map(|(capture, point)| {
                let file = capture_file(&options.folder, point);
                scope.spawn(move || tap(capture, point, &file, clock, meeting, stopper))
            });
            let traffic = self.traffic(stop, progress);
            captures_stop.request();
            let taps: Vec<_> = taps.into_iter().map(join).collect::<anyhow::Result<_>>()?;
            anyhow::Ok((traffic?, taps))
        });
        meeting.finish();
        measured
    }

    /// A capture with raw stamps. Where there are cores to spare, it spins for its packets.
    fn open(&self, namespace: &Netns, tap: &str) -> anyhow::Result<Capture> {
        let spare = allowed_cores().len() >= 4;
        let config = Config {
            filter: Some("udp".into()),
            outgoing: false,
            wait: if spare { Wait::Spin } else { Wait::Block { realtime: true } },
            ..Config::new(tap, Method::Ring, StampSource::Raw)
        };
        let open = || Capture::open(config, self.clock);
        Ok(namespace.run(open).context("cannot enter the lab")??)
    }

    /// Sends everything, waits for the last packet to come out of the queue, and collects what the
    /// ends of the path counted.
    fn traffic(&self, stop: &Stop, progress: &mut dyn FnMut(Progress)) -> anyhow::Result<Traffic> {
        let ipv6 = self.options.ipv6;
        let listen = || ROLES.map(|role| Sink::bind(bed::destination(role, ipv6)));
        let sinks = self.lab.sink().run(listen).context("cannot enter the lab")?;
        let streams = bed::streams(self.options.duration, ipv6)?;
        let total: u64 = streams.iter().map(|stream| stream.plan.packets).sum();
        let sender = self.lab.source().run(|| Sender::open(streams));
        let sender = sender.context("cannot enter the lab")??;

        let arrived_all = AtomicBool::new(false);
        thread::scope(|scope| {
            let sinks = sinks.map(|sink| {
                let all = &arrived_all;
                scope.spawn(move || anyhow::Ok(sink?.run(all)?))
            });
            let sent = self.send(sender, stop, total, progress);
            let waited = self.await_last(&sent);
            arrived_all.store(true, Ordering::Release);
            let arrived = sinks.into_iter().map(join).collect::<anyhow::Result<_>>()?;
            waited.map(|()| Traffic { sent, arrived })
        })
    }

    /// Sends on a thread of its own, so that showing progress costs no packet its deadline.
    fn send(
        &self,
        sender: Sender,
        stop: &Stop,
        total: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> SendReport {
        progress(Progress::Step("sending"));
        let sent = AtomicU64::new(0);
        thread::scope(|scope| {
            let (watcher, sent) = (thread::current(), &sent);
            let sending = scope.spawn(move || {
                let count = |_: &_| {
                    sent.fetch_add(1, Ordering::Relaxed);
                };
                let report = sender.run(&mut ServiceClock::new(self.clock), stop.flag(), count);
                watcher.unpark();
                report
            });
            while !sending.is_finished() {
                thread::park_timeout(PROGRESS);
                progress(Progress::Sending(share(sent.load(Ordering::Relaxed), total)));
            }
            join(sending)
        })
    }

    /// Waits until every packet sent has left the bottleneck or been dropped by it.
    fn await_last(&self, sent: &SendReport) -> anyhow::Result<()> {
        let deadline = Instant::now() + LAST_PACKETS;
        loop {
            let offered = sent.sent() + self.lab.duplicated()?;
            let counters = self.lab.bottleneck()?;
            if counters.sent_packets + counters.dropped_packets >= offered
                || Instant::now() > deadline
            {
                return Ok(());
            }
        }
    }

    fn findings(
        &self,
        traffic: &Traffic,
        recorder: &Recorder,
        checks: Vec<Check>,
        taps: Vec<TapFindings>,
        notes: Vec<&'static str>,
    ) -> Findings {
        let patterns = bed::streams(self.options.duration, self.options.ipv6).unwrap_or_default();
        let streams = recorder.streams.iter().zip(&patterns).map(|(stream, sent)| Found {
            name: stream.role.name,
            pattern: bed::describe(&sent.plan.pattern),
            port: stream.role.port,
            quality: stream.quality.clone(),
        });
        let folder = &self.options.folder;
        Findings {
            interrupted: traffic.sent.stopped,
            clock: self.clock.status(),
            streams: streams.collect(),
            total: recorder.total.clone(),
            checks,
            taps,
            notes,
            report: folder.join("report.html"),
            captures: [Point::A, Point::B].map(|point| capture_file(folder, point)),
        }
    }
}

/// Runs the capture at one tap to its end.
fn tap<R: FnMut(wirestamp_metrics::Outcome) + Send>(
    capture: Capture,
    point: Point,
    file: &Path,
    clock: &ClockService,
    meeting: &Meeting<R>,
    stop: &Stop,
) -> anyhow::Result<TapFindings> {
    let facts = capture.facts().clone();
    let error = clock.status().error_ns;
    let writer = Writer::create(file, &facts, Provenance::of(&facts, error))?;
    let domain = StampSource::Raw.domain();
    let mut tap = Tap::new(point, meeting, clock, domain, Some(writer));
    let (ledger, outcome) = capture.run(clock, stop, &mut tap);
    outcome?;
    let report = tap.finish(&ledger)?;
    Ok(TapFindings { facts, ledger, report })
}

fn capture_file(folder: &Path, point: Point) -> PathBuf {
    folder.join(match point {
        Point::A => "tap-a.pcapng",
        Point::B => "tap-b.pcapng",
    })
}

fn utc_now(clock: &ClockService) -> Time<Utc> {
    let counter = clock.counter();
    clock.timeline(counter.domain()).convert(counter.read()).utc
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[expect(clippy::cast_precision_loss, reason = "a share for a progress bar")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Nanoseconds in milliseconds, for people.
#[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns, which is 104 days")]
fn millis(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}
