//! Traffic across the test bed: a call, and bursts above the bottleneck's rate.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Span};
use wirestamp_lab::{BottleneckCounters, Impairments, MeshLab, SINK_V4, TAP_A, TAP_B};
use wirestamp_traffic::{
    Pattern, PatternError, SendReport, Sender, ServiceClock, Sink, SinkReport, Stream, StreamPlan,
};

/// The tasks, each with the UDP destination port of the stream that it measures.
pub(super) const TASKS: [(&str, u16); 2] = [("call", 5004), ("load", 5008)];

/// The task file of the controller.
pub(super) fn tasks() -> String {
    let task = |(name, port)| {
        format!(
            "[[task]]\nname = \"{name}\"\nmeasure = \"passive-delay\"\n\
             from = \"roof/{TAP_A}\"\nto = \"cellar/{TAP_B}\"\n\
             filter = \"udp and dst port {port}\"\n\n"
        )
    };
    TASKS.map(task).concat()
}

/// Frame size of the load. Its rate is a quarter above that of the bottleneck.
const FRAME_BYTES: u16 = 1000;
const EXCESS: u64 = 4;

/// Time with a full queue in each burst, and the pause after it.
const FULL_TIME: Span = Span::from_millis(500);
const PAUSE: Span = Span::from_millis(1500);

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
    sinks: Vec<Sink>,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(lab: &'a MeshLab) -> anyhow::Result<Self> {
        let bind = || TASKS.iter().map(|it| Sink::bind(destination(*it))).collect();
        let sinks: Result<_, _> = lab.sink().run(bind).context("cannot enter the lab")?;
        Ok(Self { lab, sinks: sinks? })
    }

    /// Opens a sender of test packets, before the traffic.
    pub(super) fn test_packets(&self) -> anyhow::Result<TestPackets> {
        let open = || UdpSocket::bind("0.0.0.0:0");
        let socket = self.lab.source().run(open).context("cannot enter the lab")??;
        Ok(TestPackets { socket, number: 0 })
    }

    /// Sends for a time, or until the stop is requested; calls `watch` repeatedly.
    pub(super) fn send(
        self,
        clock: &ClockService,
        lasting: Option<Duration>,
        stop: &Stop,
        watch: &mut dyn FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<Reference> {
        let streams = streams(&self.lab.impairments, lasting)?;
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
pub(super) struct TestPackets {
    socket: UdpSocket,
    number: u64,
}

impl TestPackets {
    /// Sends a unique packet for each task.
    pub(super) fn send(&mut self) -> anyhow::Result<()> {
        for task in TASKS {
            self.number += 1;
            let sent = self.socket.send_to(&self.number.to_be_bytes(), destination(task));
            sent.context("cannot send in the lab")?;
        }
        Ok(())
    }
}

fn destination((_, port): (&str, u16)) -> SocketAddr {
    (SINK_V4, port).into()
}

/// A call, endless without a duration, and the load that fills the bottleneck.
fn streams(path: &Impairments, lasting: Option<Duration>) -> Result<Vec<Stream>, PatternError> {
    let patterns = [Pattern::voip(), load(path)?];
    // The call runs alone before the load begins.
    let starts = [Span::ZERO, PAUSE];
    let streams = TASKS.iter().zip(1..).zip(patterns).zip(starts);
    Ok(streams
        .map(|(((task, id), pattern), start)| {
            let packets = lasting.map_or(u64::MAX, |lasting| {
                let lasting = i64::try_from(lasting.as_nanos()).unwrap_or(i64::MAX);
                pattern.packets_in(Span::from_nanos(lasting) - start)
            });
            Stream::new(id, StreamPlan { pattern, start, packets }, destination(*task))
        })
        .collect())
}

/// Bursts that fill the queue, keep it full, and then let it run empty.
fn load(path: &Impairments) -> Result<Pattern, PatternError> {
    let bits = u64::from(FRAME_BYTES) * 8;
    let frame = span(bits, path.rate_bits_per_s);
    let spacing = span(bits, path.rate_bits_per_s + path.rate_bits_per_s / EXCESS);
    let filling = span(u64::from(path.queue_bytes) * 8, path.rate_bits_per_s / EXCESS);
    let bursting = filling + FULL_TIME;
    let packets = bursting.as_nanos() / spacing.as_nanos().max(1) + 1;
    let packets = u32::try_from(packets).unwrap_or(u32::MAX);
    Pattern::new("load", FRAME_BYTES, bursting + frame + PAUSE)?.with_burst(packets, spacing)
}

/// The delay of the full queue.
pub(super) fn full_queue(path: &Impairments) -> Span {
    span(u64::from(path.queue_bytes) * 8, path.rate_bits_per_s)
}

/// Transmission time of bits at a rate.
fn span(bits: u64, bits_per_s: u64) -> Span {
    let nanos = u128::from(bits) * 1_000_000_000 / u128::from(bits_per_s.max(1));
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

pub(super) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use wirestamp_mesh::task::read_file;

    use super::*;

    #[test]
    fn task_file_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tasks.toml");
        std::fs::write(&file, tasks()).unwrap();
        assert_eq!(read_file(&file).unwrap().len(), TASKS.len());
    }

    #[test]
    fn load_keeps_the_queue_full_for_half_a_second() {
        let path = Impairments::bottleneck(10_000_000, 50_000);
        assert_eq!(full_queue(&path), Span::from_millis(40));
        let load = load(&path).unwrap();
        // 160 ms until it is full, and 500 ms more.
        let packets = load.packets_in(Span::from_secs(1));
        assert_eq!(packets, 660_000 / 640 + 1);
        let brought = i64::try_from(packets).unwrap() * 1000;
        let carried = 660 * 10_000 / 8;
        assert!(brought - carried > 2 * 50_000, "{brought} {carried}");
        assert!(load.interval() > Span::from_millis(660 + 1500));
    }

    #[test]
    fn load_can_fill_any_path() {
        for rate in [1_000_000, 1_000_000_000] {
            for queue in [1514, 1 << 20, u32::MAX] {
                load(&Impairments::bottleneck(rate, queue)).unwrap();
            }
        }
    }
}
