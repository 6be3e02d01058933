//! The run itself: sending, capturing and correlating at once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use wirestamp_capture::file::{Provenance, Writer};
use wirestamp_capture::{Capture, Config, Cores, Direction, Method, StampSource, Stop, Wait};
use wirestamp_clock::{ClockService, Time, Utc};
use wirestamp_lab::{Netns, PathLab, TAP_A, TAP_B};
use wirestamp_metrics::{Config as Correlation, Outcome, Point};
use wirestamp_traffic::{SendReport, Sender, ServiceClock, Sink, SinkReport};

use super::bed::{self, ROLES};
use super::recorder::Recorder;
use super::result::{DemoResult, Options, Progress, StreamResult};
use wirestamp_report::Check;
use wirestamp_session::{PairSession, Recording, TapReport};

/// Max time for the last packets to arrive: many times the queueing delay of the full queue.
const LAST_PACKETS: Duration = Duration::from_secs(5);
/// Interval between checks whether the bottleneck is empty. It has no event to wait for, and each
/// check starts a process.
const LAST_PACKETS_INTERVAL: Duration = Duration::from_millis(20);
/// Interval of progress reports.
const PROGRESS: Duration = Duration::from_millis(100);

/// Lab, clock and options of a run.
pub(super) struct Run<'a> {
    options: &'a Options,
    clock: &'a ClockService,
    lab: &'a PathLab,
    /// Begin of the run, by the clock of the stamps.
    pub(super) started: Time<Utc>,
}

/// Counts of sender, sockets and queue.
pub(super) struct Traffic {
    pub(super) sent: SendReport,
    pub(super) arrived: Vec<SinkReport>,
    /// Whether the last packet had left the bottleneck or been dropped.
    pub(super) all_arrived: bool,
}

/// Raw result of a run.
pub(super) struct Measured {
    pub(super) traffic: Traffic,
    pub(super) taps: Vec<TapReport>,
    /// Notes: permissions that were not granted.
    pub(super) notes: Vec<String>,
}

impl<'a> Run<'a> {
    pub(super) fn new(options: &'a Options, clock: &'a ClockService, lab: &'a PathLab) -> Self {
        let counter = clock.counter();
        let started = clock.timeline(counter.domain()).convert(counter.read()).utc;
        Self { options, clock, lab, started }
    }

    /// Sends, captures and correlates.
    pub(super) fn measure(
        &self,
        stop: &Stop,
        recorder: &mut Recorder,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<Measured> {
        let session = PairSession::new(Correlation::default(), |outcome| recorder.record(&outcome));
        let captures_stop = Stop::new().context("cannot make the stop event")?;
        let ([a, b], notes) = self.captures()?;
        let measured = thread::scope(|scope| {
            let (session, captures_stop) = (&session, &captures_stop);
            let taps = [(a, Point::A), (b, Point::B)].map(|(capture, point)| {
                scope.spawn(move || self.tap(capture, point, session, captures_stop))
            });
            let traffic = self.traffic(stop, progress);
            captures_stop.request();
            let taps: Vec<_> = taps.into_iter().map(join).collect::<anyhow::Result<_>>()?;
            anyhow::Ok(Measured { traffic: traffic?, taps, notes })
        });
        session.finish();
        measured
    }

    /// Captures at both taps, with notes. Stamps are taken in the softIRQ, which no scheduler delays; where
    /// XDP is not available, threads take raw stamps.
    ///
    /// Remarks of an XDP capture concern TCP, which the demo does not send.
    fn captures(&self) -> anyhow::Result<([Capture; 2], Vec<String>)> {
        let refused = match self.open(&xdp_stamps) {
            Ok(captures) => return Ok((captures, Vec::new())),
            Err(refused) => refused,
        };
        let captures = self.open(&raw_stamps)?;
        let mut notes = vec![format!(
            "stamps are taken by threads that the scheduler may delay, because there are none of the \
             softIRQ: {refused:#}"
        )];
        notes.extend(captures.iter().flat_map(|capture| capture.facts().notes.clone()));
        notes.dedup();
        Ok((captures, notes))
    }

    fn open(&self, config: &dyn Fn(&str) -> Config) -> anyhow::Result<[Capture; 2]> {
        let mut cores = Cores::choose(2).into_iter();
        let mut open = |namespace: &Netns, tap: &str| {
            let config = Config {
                filter: Some("udp".into()),
                direction: Direction::In,
                lanes: vec![cores.next().unwrap_or_default()],
                ..config(tap)
            };
            let open = || Capture::open(config, self.clock);
            anyhow::Ok(namespace.run(open).context("cannot enter the lab")??)
        };
        Ok([open(self.lab.router(), TAP_A)?, open(self.lab.sink(), TAP_B)?])
    }

    /// Runs the capture at one tap to its end.
    fn tap<R: FnMut(Outcome) + Send>(
        &self,
        capture: Capture,
        point: Point,
        session: &PairSession<R>,
        stop: &Stop,
    ) -> anyhow::Result<TapReport> {
        let facts = capture.facts();
        let domain = capture.domain();
        let provenance = Provenance::now(facts, self.clock, domain);
        let file = capture_file(&self.options.folder, point);
        let writer = Writer::create(&file, facts, provenance)?;
        let recording = Recording::new(self.clock, domain, Some(writer));
        Ok(session.capture(point, capture, recording, stop)?)
    }

    /// Sends everything, waits for the last packet to come out of the queue, and collects the counts of
    /// both ends of the path.
    fn traffic(&self, stop: &Stop, progress: &mut dyn FnMut(Progress)) -> anyhow::Result<Traffic> {
        let ipv6 = self.options.ipv6;
        let listen = || ROLES.map(|role| Sink::bind(bed::destination(role, ipv6)));
        let sinks = self.lab.sink().run(listen).context("cannot enter the lab")?;
        let streams = bed::streams(self.options.duration, ipv6)?;
        let total: u64 = streams.iter().map(|stream| stream.plan.packets).sum();
        let sender = self.lab.source().run(|| Sender::open(streams));
        let sender = sender.context("cannot enter the lab")??;

        let end_of_traffic = AtomicBool::new(false);
        thread::scope(|scope| {
            let sinks = sinks.map(|sink| {
                let end = &end_of_traffic;
                scope.spawn(move || anyhow::Ok(sink?.run(end)?))
            });
            let sent = self.send(sender, stop, total, progress);
            let all_arrived = self.await_last(&sent);
            end_of_traffic.store(true, Ordering::Release);
            let arrived = sinks.into_iter().map(join).collect::<anyhow::Result<_>>()?;
            Ok(Traffic { sent, arrived, all_arrived: all_arrived? })
        })
    }

    /// Sends on a thread of its own, so that showing progress does not delay packets.
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

    /// Waits until every packet sent has left the bottleneck or was dropped by it; false after the
    /// timeout.
    fn await_last(&self, sent: &SendReport) -> anyhow::Result<bool> {
        let deadline = Instant::now() + LAST_PACKETS;
        loop {
            let offered = sent.sent() + self.lab.duplicated()?;
            let counters = self.lab.bottleneck()?;
            if counters.sent_packets + counters.dropped_packets >= offered {
                return Ok(true);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
            thread::park_timeout(LAST_PACKETS_INTERVAL);
        }
    }

    pub(super) fn findings(
        &self,
        traffic: &Traffic,
        recorder: &Recorder,
        checks: Vec<Check>,
        taps: Vec<TapReport>,
        notes: Vec<String>,
    ) -> DemoResult {
        let patterns = bed::streams(self.options.duration, self.options.ipv6).unwrap_or_default();
        let streams = recorder.streams.iter().zip(&patterns).map(|(stream, sent)| StreamResult {
            name: stream.role.name,
            pattern: bed::describe(&sent.plan.pattern),
            port: stream.role.port,
            quality: stream.quality.clone(),
        });
        let folder = &self.options.folder;
        let path = &self.lab.impairments;
        DemoResult {
            interrupted: traffic.sent.stopped,
            clock: self.clock.status(),
            rate_bits_per_s: path.rate_bits_per_s,
            queue_bytes: path.queue_bytes,
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

fn xdp_stamps(tap: &str) -> Config {
    Config::new(tap, Method::XdpPass, StampSource::Xdp)
}

/// The capture threads poll without pause if enough cores remain for the other threads.
fn raw_stamps(tap: &str) -> Config {
    let wait = if Cores::can_spin(2) { Wait::Spin } else { Wait::Block { realtime: true } };
    Config { wait, ..Config::new(tap, Method::Ring, StampSource::Raw) }
}

fn capture_file(folder: &Path, point: Point) -> PathBuf {
    folder.join(match point {
        Point::A => "tap-a.pcapng",
        Point::B => "tap-b.pcapng",
    })
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[expect(clippy::cast_precision_loss, reason = "a share for a progress bar")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
