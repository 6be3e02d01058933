//! One run: sender, captures at both taps, and reference captures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use wirestamp_capture::{Capture, Config, Direction, Method, StampSource, Stop};
use wirestamp_clock::{ClockService, Span};
use wirestamp_lab::{
    BottleneckCounters, LAST_EGRESS, MeshLab, Netns, SOURCE_INTERFACE, TAP_A, TAP_B,
};
use wirestamp_metrics::flow::FlowConfig;
use wirestamp_metrics::{self as metrics, Outcome, Point};
use wirestamp_traffic::{SendReport, Sender, ServiceClock, Sink, SinkReport, StreamReport};

use super::measured::{self, CaptureResult, Measured};
use super::reference_capture::{ReferenceCapture, ReferencePackets};
use super::setting::{PASSIVE, PORTS, Setting, at_the_sink};
use crate::tester::CpuUse;
use wirestamp_report::format::approximate;
use wirestamp_session::{PairSession, PointState, Recording, TapReport};

/// Max time for the last packets to leave the queue: many times the max queueing delay.
const LAST_PACKETS: Duration = Duration::from_secs(5);
/// Interval between checks whether the bottleneck is empty. It has no event to wait for, and each check
/// starts a process.
const LAST_PACKETS_INTERVAL: Duration = Duration::from_millis(20);

/// The ends of the path, and a function that waits for the last packet.
pub(super) struct Ends<'a> {
    pub(super) source: &'a Netns,
    pub(super) sink: &'a Netns,
    /// Waits for the last packet sent.
    pub(super) await_last: &'a mut dyn FnMut(&SendReport) -> anyhow::Result<()>,
}

/// Counts of sender and receiver.
pub(super) struct Traffic {
    sent: SendReport,
    arrived: Vec<SinkReport>,
}

/// Runs a setting once, or until `stop` is requested.
///
/// # Errors
/// When the lab, a capture or the sender is not available.
pub(super) fn run(
    setting: &Setting,
    clock: &ClockService,
    stop: &Stop,
) -> anyhow::Result<Measured> {
    let lab = MeshLab::new(&setting.impairments())?;
    let taps = [open(lab.router(), TAP_A, clock)?, open(lab.sink(), TAP_B, clock)?];
    let ends = [
        ReferenceCapture::open(lab.source(), SOURCE_INTERFACE, clock)?,
        ReferenceCapture::open(lab.last_router(), LAST_EGRESS, clock)?,
    ];
    let mut found = CaptureResult::default();
    // The longest of the delays is 0.4 s.
    let correlation = metrics::Config { timeout: Span::from_secs(2), ..metrics::Config::default() };
    let session = PairSession::new(correlation, |outcome| found.record(&outcome));
    let watched = PointState::new(None).watching(FlowConfig::default());
    let session = if setting.tasks > 1 { session.with_state(&watched) } else { session };

    let before = lab.bottleneck()?;
    let captures_stop = Stop::new().context("cannot make the stop event")?;
    let (traffic, seen, taps, cpu_use) = thread::scope(|scope| {
        let (session, stopped) = (&session, &captures_stop);
        let references = ends.map(|end| scope.spawn(move || end.watch(stopped)));
        let [a, b] = taps;
        let taps = [(a, Point::A), (b, Point::B)].map(|(capture, point)| {
            let capture = move || capture_point(session, point, capture, clock, stopped);
            scope.spawn(move || CpuUse::of(capture))
        });
        let await_last = &mut |sent: &SendReport| await_last(&lab, before, sent.sent());
        let ends = Ends { source: lab.source(), sink: lab.sink(), await_last };
        let traffic = traffic(setting, ends, clock, stop);
        captures_stop.request();
        let ([source, bottleneck], [(a, of_a), (b, of_b)]) = (references.map(join), taps.map(join));
        anyhow::Ok((traffic?, [source?, bottleneck?], [a?, b?], [of_a, of_b]))
    })?;
    session.finish();
    let mut measured = known(&traffic, since(before, lab.bottleneck()?));
    measured.seconds = approximate(setting.lasting.as_nanos()) / 1e9;
    measured.unknown = unknown(&traffic, &seen);
    measured.of_taps(&taps);
    measured.of_cpu(cpu_use);
    measured.of_packets(&found, &measured::true_delays(&seen.map(|seen| seen.departures)));
    Ok(measured)
}

/// Captures what arrives at a tap.
fn open(namespace: &Netns, interface: &str, clock: &ClockService) -> anyhow::Result<Capture> {
    let usual = Config::new(interface, Method::Ring, StampSource::Kernel);
    let config = Config { filter: Some("udp".into()), direction: Direction::In, ..usual };
    let open = || Capture::open(config, clock);
    Ok(namespace.run(open).context("cannot enter the lab")??)
}

/// Correlates the packets of a capture at a point until `stop` is requested.
pub(crate) fn capture_point<R: FnMut(Outcome) + Send>(
    session: &PairSession<R>,
    point: Point,
    capture: Capture,
    clock: &ClockService,
    stop: &Stop,
) -> anyhow::Result<TapReport> {
    let recording = Recording::new(clock, capture.domain(), None);
    Ok(session.capture(point, capture, recording, stop)?)
}

/// Sends everything, waits until it has left the bottleneck, and collects what the ends counted.
pub(super) fn traffic(
    setting: &Setting,
    Ends { source, sink, await_last }: Ends<'_>,
    clock: &ClockService,
    stop: &Stop,
) -> anyhow::Result<Traffic> {
    let listen = || PORTS.map(|port| Sink::bind(at_the_sink(port)));
    let sinks = sink.run(listen).context("cannot enter the lab")?;
    let streams = setting.streams()?;
    let sender = source.run(|| Sender::open(streams)).context("cannot enter the lab")??;
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let sinks = sinks.map(|sink| {
            let end = &end;
            scope.spawn(move || anyhow::Ok(sink?.run(end)?))
        });
        let send = || sender.run(&mut ServiceClock::new(clock), stop.flag(), |_| ());
        let sent = join(scope.spawn(send));
        let awaited = await_last(&sent);
        end.store(true, Ordering::Release);
        let arrived = sinks.into_iter().map(join).collect::<anyhow::Result<_>>()?;
        awaited?;
        Ok(Traffic { sent, arrived })
    })
}

/// Counters of a bottleneck since a reading.
pub(super) fn since(before: BottleneckCounters, now: BottleneckCounters) -> BottleneckCounters {
    BottleneckCounters {
        sent_packets: now.sent_packets - before.sent_packets,
        dropped_packets: now.dropped_packets - before.dropped_packets,
    }
}

/// Waits until every packet has left the bottleneck or was dropped by it.
fn await_last(lab: &MeshLab, before: BottleneckCounters, sent: u64) -> anyhow::Result<()> {
    let deadline = Instant::now() + LAST_PACKETS;
    loop {
        let since = since(before, lab.bottleneck()?);
        if since.sent_packets + since.dropped_packets >= sent || Instant::now() > deadline {
            return Ok(());
        }
        thread::park_timeout(LAST_PACKETS_INTERVAL);
    }
}

/// Reason why the truth is incomplete; `None` if complete.
pub(super) fn unknown(traffic: &Traffic, seen: &[ReferencePackets; 2]) -> Option<String> {
    let sockets = traffic.arrived.iter().all(SinkReport::is_complete);
    let sockets = (!sockets).then(|| "a receiving socket dropped packets".to_owned());
    seen.iter().find_map(ReferencePackets::unknown).or(sockets)
}

/// Counts of sender, receiver and bottleneck.
pub(super) fn known(
    Traffic { sent, arrived }: &Traffic,
    bottleneck: BottleneckCounters,
) -> Measured {
    let distinct = |id: u16| {
        let streams = arrived.iter().filter_map(|report| report.streams.get(&id));
        streams.map(|stream| stream.distinct).sum::<u64>()
    };
    let of_passive = |stream: &&StreamReport| stream.id == PASSIVE;
    let all: u64 = sent.streams.iter().map(|stream| distinct(stream.id)).sum();
    Measured {
        sent: sent.streams.iter().find(of_passive).map_or(0, |stream| stream.sent),
        arrived: distinct(PASSIVE),
        bottleneck_dropped: bottleneck.dropped_packets,
        missing: sent.sent().saturating_sub(all),
        ..Measured::default()
    }
}

/// Result of a thread; propagates its panic.
pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
