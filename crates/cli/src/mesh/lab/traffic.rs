//! What is sent across the bed: a call, and now and then more than the bottleneck carries.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Span};
use wirestamp_lab::{BottleneckCounters, Impairments, MeshLab, SINK_V4, TAP_A, TAP_B};
use wirestamp_traffic::{
    Pattern, PatternError, Plan, SendReport, Sender, ServiceClock, Sink, SinkReport, Stream,
};

/// The tasks, each with the UDP destination port of the stream that it measures.
pub(super) const TASKS: [(&str, u16); 2] = [("call", 5004), ("load", 5008)];

/// The same as the controller reads them.
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

/// The load's frames. It comes a quarter faster than they can leave.
const FRAME_BYTES: u16 = 1000;
const EXCESS: u64 = 4;

/// How long the queue is full each time, and how long it is left alone.
const FULL: Span = Span::from_millis(500);
const ALONE: Span = Span::from_millis(1500);

/// How long the packets that are under way at the end may take to arrive: many times what the
/// full queue holds.
const LAST_PACKETS: Duration = Duration::from_secs(5);
/// How often the bottleneck is asked whether it has let them all out. It has no event to wait for,
/// and asking starts a process.
const LAST_PACKETS_INTERVAL: Duration = Duration::from_millis(20);
/// How often whoever watches is called.
const WATCH: Duration = Duration::from_millis(200);

/// What the ends of the path and the bottleneck know.
pub(super) struct Truth {
    /// The sender's account, in the order of the tasks.
    pub(super) sent: SendReport,
    /// What each stream's socket received.
    pub(super) arrived: Vec<SinkReport>,
    /// Packets that the bottleneck dropped, by its own count.
    pub(super) dropped: u64,
}

/// Traffic that is ready to be sent.
pub(super) struct Traffic<'a> {
    lab: &'a MeshLab,
    sinks: Vec<Sink>,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(lab: &'a MeshLab) -> anyhow::Result<Self> {
        let bind = || TASKS.iter().map(|it| Sink::bind(destination(*it))).collect();
        let sinks: Result<_, _> = lab.cellar().run(bind).context("cannot enter the lab")?;
        Ok(Self { lab, sinks: sinks? })
    }

    /// Sends a packet of no account to each task.
    pub(super) fn try_out(&self) -> anyhow::Result<TryOut> {
        let open = || UdpSocket::bind("0.0.0.0:0");
        let socket = self.lab.source().run(open).context("cannot enter the lab")??;
        Ok(TryOut { socket, number: 0 })
    }

    /// Sends for so long, or until somebody asks to stop, and calls `watch` meanwhile.
    pub(super) fn send(
        self,
        clock: &ClockService,
        lasting: Option<Duration>,
        stop: &Stop,
        watch: &mut dyn FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<Truth> {
        let streams = streams(self.lab.impairments(), lasting)?;
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
            Ok(Truth { sent, arrived: arrived?, dropped })
        })
    }
}

fn watch_while<T>(
    thread: &ScopedJoinHandle<'_, T>,
    watch: &mut dyn FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    while !thread.is_finished() {
        watch()?;
        thread::park_timeout(WATCH);
    }
    Ok(())
}

/// Waits until every packet sent has left the bottleneck or been dropped by it, as long as they may take.
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

/// Packets that show whether the tasks are measured yet, and count for nothing.
pub(super) struct TryOut {
    socket: UdpSocket,
    number: u64,
}

impl TryOut {
    /// Sends one for each task, unlike all before.
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

/// A call for so long or for ever, and what fills the bottleneck beside it.
fn streams(path: &Impairments, lasting: Option<Duration>) -> Result<Vec<Stream>, PatternError> {
    let patterns = [Pattern::voip(), load(path)?];
    // The call is heard alone before the load begins.
    let starts = [Span::ZERO, ALONE];
    let streams = TASKS.iter().zip(1..).zip(patterns).zip(starts);
    Ok(streams
        .map(|(((task, id), pattern), start)| {
            let packets = lasting.map_or(u64::MAX, |lasting| {
                let lasting = i64::try_from(lasting.as_nanos()).unwrap_or(i64::MAX);
                pattern.packets_in(Span::from_nanos(lasting) - start)
            });
            Stream::new(id, Plan { pattern, start, packets }, destination(*task))
        })
        .collect())
}

/// Bursts that fill the queue, keep it full for a while, and let it run empty.
fn load(path: &Impairments) -> Result<Pattern, PatternError> {
    let bits = u64::from(FRAME_BYTES) * 8;
    let frame = span(bits, path.rate_bits_per_s);
    let spacing = span(bits, path.rate_bits_per_s + path.rate_bits_per_s / EXCESS);
    let filling = span(u64::from(path.queue_bytes) * 8, path.rate_bits_per_s / EXCESS);
    let bursting = filling + FULL;
    let packets = bursting.as_nanos() / spacing.as_nanos().max(1) + 1;
    let packets = u32::try_from(packets).unwrap_or(u32::MAX);
    Pattern::new("load", FRAME_BYTES, bursting + frame + ALONE)?.with_burst(packets, spacing)
}

/// How long the longest delay is that the queue gives.
pub(super) fn full_queue(path: &Impairments) -> Span {
    span(u64::from(path.queue_bytes) * 8, path.rate_bits_per_s)
}

/// How long so many bits take at a rate.
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
    fn the_tasks_are_tasks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tasks.toml");
        std::fs::write(&file, tasks()).unwrap();
        assert_eq!(read_file(&file).unwrap().len(), TASKS.len());
    }

    #[test]
    fn the_load_fills_the_queue_for_half_a_second_and_lets_it_run_empty() {
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
    fn any_path_that_can_be_built_can_be_filled() {
        for rate in [1_000_000, 1_000_000_000] {
            for queue in [1514, 1 << 20, u32::MAX] {
                load(&Impairments::bottleneck(rate, queue)).unwrap();
            }
        }
    }
}
