//! Sends and receives the traffic across the test bed, and counts it.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_clock::ClockService;
use wirestamp_lab::{BottleneckCounters, MeshLab};
use wirestamp_traffic::{SendReport, Sender, ServiceClock, Sink, SinkReport};

use super::streams::{TaskStream, streams};

/// Timeout of the last packets: many times the delay of the full queue.
const LAST_PACKETS: Duration = Duration::from_secs(5);
/// Polling interval of the bottleneck's counters, which have no event; each poll starts a process.
const LAST_PACKETS_INTERVAL: Duration = Duration::from_millis(20);
/// Interval of calls to `watch`.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Reference counts: sender, receiving sockets and bottleneck.
pub(super) struct Reference {
    /// The sender's counts, in task order.
    pub(super) sent: SendReport,
    /// The counts of each receiving socket.
    pub(super) arrived: Vec<SinkReport>,
    /// Packets dropped by the bottleneck, by its own count.
    pub(super) dropped: u64,
}

/// Traffic before sending.
pub(super) struct Traffic<'a> {
    lab: &'a MeshLab,
    tasks: &'a [TaskStream],
    sinks: Vec<Sink>,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(lab: &'a MeshLab, tasks: &'a [TaskStream]) -> anyhow::Result<Self> {
        let bind = || tasks.iter().map(|it| Sink::bind(it.destination())).collect();
        let sinks: Result<_, _> = lab.sink().run(bind).context("cannot enter the lab")?;
        Ok(Self { lab, tasks, sinks: sinks? })
    }

    /// Opens a sender of test packets, before the traffic.
    pub(super) fn test_packets(&self) -> anyhow::Result<TestPackets<'a>> {
        let open = || UdpSocket::bind("0.0.0.0:0");
        let socket = self.lab.source().run(open).context("cannot enter the lab")??;
        Ok(TestPackets { tasks: self.tasks, socket, number: 0 })
    }

    /// Sends for a time, or until the stop is requested; calls `watch` repeatedly.
    pub(super) fn send(
        self,
        clock: &ClockService,
        lasting: Option<Duration>,
        stop: &Stop,
        watch: &mut dyn FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<Reference> {
        let streams = streams(self.tasks, lasting);
        let sender = self.lab.source().run(|| Sender::open(streams));
        let sender = sender.context("cannot enter the lab")??;
        let before = self.lab.bottleneck()?;
        let has_ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let ended = &has_ended;
            let sinks: Vec<_> =
                self.sinks.into_iter().map(|sink| scope.spawn(|| sink.run(ended))).collect();
            let sending =
                scope.spawn(|| sender.run(&mut ServiceClock::new(clock), stop.flag(), |_| {}));
            let watched = watch_while(&sending, watch);
            if watched.is_err() {
                stop.request();
            }
            let sent = join(sending);
            let left = await_last(self.lab, before, sent.sent());
            ended.store(true, Ordering::Release);
            let arrived = sinks.into_iter().map(join).collect::<Result<_, _>>();
            watched?;
            let dropped = left?.dropped_packets - before.dropped_packets;
            Ok(Reference { sent, arrived: arrived?, dropped })
        })
    }
}

fn watch_while<T>(
    thread: &ScopedJoinHandle<'_, T>,
    watch: &mut dyn FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    while !thread.is_finished() {
        watch()?;
        thread::park_timeout(WATCH_INTERVAL);
    }
    Ok(())
}

/// Waits until every packet has left the bottleneck or was dropped by it, or for the timeout.
fn await_last(
    lab: &MeshLab,
    before: BottleneckCounters,
    sent: u64,
) -> anyhow::Result<BottleneckCounters> {
    let passed = |it: BottleneckCounters| it.sent_packets + it.dropped_packets;
    let deadline = Instant::now() + LAST_PACKETS;
    loop {
        let now = lab.bottleneck()?;
        if passed(now) - passed(before) >= sent || Instant::now() > deadline {
            return Ok(now);
        }
        thread::park_timeout(LAST_PACKETS_INTERVAL);
    }
}

/// Test packets that show whether the tasks are running; not part of the results.
pub(super) struct TestPackets<'a> {
    tasks: &'a [TaskStream],
    socket: UdpSocket,
    number: u64,
}

impl TestPackets<'_> {
    /// Sends a unique packet for each task.
    pub(super) fn send(&mut self) -> anyhow::Result<()> {
        for task in self.tasks {
            self.number += 1;
            let sent = self.socket.send_to(&self.number.to_be_bytes(), task.destination());
            sent.context("cannot send in the lab")?;
        }
        Ok(())
    }
}

pub(super) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
