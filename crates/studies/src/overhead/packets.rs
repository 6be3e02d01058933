//! Cost of a stamp in user space, packet by packet: a stream over the loopback interface, each
//! packet of which is stamped by the thread that receives it.

use std::hint::black_box;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use wirestamp_capture::{Cores, Stop};
use wirestamp_clock::{ClockService, Counter, Span, survey};
use wirestamp_traffic::{Pattern, Payload, Sender, ServiceClock, Stream, StreamPlan};

use super::paper::{Method, Traffic};
use crate::experiment::{Cell, Design, Factor, Study};
use wirestamp_report::format::{approximate, real};

/// Max time to wait for a packet: many times the longest gap of the patterns.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(500);

/// How many packets a run of each of the paper's patterns has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverheadScale {
    /// How often each cell is run.
    pub(crate) repetitions: u32,
    /// Packets of a run of pattern 1, and of pattern 2.
    pub(crate) packets: [u32; 2],
}

impl OverheadScale {
    /// 20 000 packets of pattern 1 and 200 000 of pattern 2, in 22 minutes; the paper does not state its number.
    pub(crate) const FULL: Self = Self { repetitions: 10, packets: [2_000, 20_000] };
    /// As many packets as fit in 90 seconds, with all parts of the study.
    pub(crate) const QUICK: Self = Self { repetitions: 5, packets: [100, 1_000] };

    /// Packets of a run of this pattern.
    pub(crate) const fn packets_of(self, traffic: Traffic) -> u32 {
        let [first, second] = self.packets;
        match traffic {
            Traffic::Call => first,
            Traffic::Video => second,
        }
    }

    /// Duration of a run of this pattern.
    pub(super) fn lasts(self, traffic: Traffic) -> Duration {
        let gap = u64::try_from(traffic.pattern().interval().as_nanos()).unwrap_or(0);
        Duration::from_nanos(gap) * self.packets_of(traffic)
    }
}

/// The design of an experiment with each method and pattern.
pub(super) fn design(name: &str, OverheadScale { repetitions, packets }: OverheadScale) -> Design {
    let constant = |(traffic, packets): (Traffic, u32)| {
        (format!("packets of {}", traffic.name()), packets.to_string())
    };
    Design {
        name: name.to_owned(),
        factors: vec![
            Factor::new("method", Method::ALL.map(Method::name)),
            Factor::new("pattern", Traffic::ALL.map(Traffic::name)),
        ],
        repetitions,
        constants: Traffic::ALL.into_iter().zip(packets).map(constant).collect(),
    }
}

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stamped {
    /// Its number in the stream, from 0.
    pub(crate) packet: u64,
    /// Send time, in nanoseconds since the send time of the first packet that arrived.
    pub(crate) sent_ns: f64,
    /// When the checkpoint before the stamp was taken, in nanoseconds since the first packet's.
    pub(crate) at_ns: f64,
    /// The stamp itself, in nanoseconds since the first packet's, as its clock has it.
    pub(crate) stamp_ns: f64,
    /// From that checkpoint to the one after the stamp, in nanoseconds.
    pub(crate) between_ns: f64,
    /// Cost of a checkpoint alone, in nanoseconds: the same for all packets of a run.
    pub(crate) checkpoint_ns: f64,
}

impl Stamped {
    /// The overhead of the stamp in nanoseconds. It may be below zero by a step of the counter.
    pub(crate) fn overhead_ns(&self) -> f64 {
        self.between_ns - self.checkpoint_ns
    }
}

/// The study, with a counter for the checkpoints and for pacing.
pub(crate) struct Packets {
    /// Name of its results.
    name: &'static str,
    size: OverheadScale,
    clock: ClockService,
    tick_ns: f64,
    /// The smallest usual step of the counter, in nanoseconds.
    pub(crate) step_ns: f64,
}

impl Packets {
    pub(crate) fn new(name: &'static str, size: OverheadScale) -> anyhow::Result<Self> {
        let survey = survey();
        let source = survey.sources.iter().find(|source| source.name == survey.selected);
        let source = source.context("the counter is not known")?;
        let tick_ns = 1e9 / source.frequency_hz.context("the counter's frequency is not known")?;
        let step_ns = source.granularity_ns.unwrap_or(0.0).max(tick_ns);
        let counter = Counter::select();
        let clock = ClockService::start(counter).context("cannot calibrate the counter")?;
        Ok(Self { name, size, clock, tick_ns, step_ns })
    }

    /// Method and traffic of a cell.
    pub(crate) fn of(cell: &Cell) -> (Method, Traffic) {
        let level = |factor: usize| cell.0.get(factor).copied().unwrap_or(0);
        (Method::ALL[level(0) % 2], Traffic::ALL[level(1) % 2])
    }

    /// Readings as samples.
    fn samples(&self, method: Method, readings: &[Reading], checkpoint_ns: f64) -> Vec<Stamped> {
        let Some(first) = readings.first() else { return Vec::new() };
        let nanos = |from: u64, to: u64| real(to.saturating_sub(from)) * self.tick_ns;
        let sample = |&Reading { sent, before, stamp, after }: &Reading| Stamped {
            packet: sent.sequence,
            sent_ns: approximate((sent.actual - first.sent.actual).as_nanos()),
            at_ns: nanos(first.before, before),
            stamp_ns: match method {
                Method::Ktime => real(stamp.saturating_sub(first.stamp)),
                Method::Raw => nanos(first.stamp, stamp),
            },
            between_ns: nanos(before, after),
            checkpoint_ns,
        };
        readings.iter().map(sample).collect()
    }
}

impl Study for Packets {
    type Sample = Stamped;

    fn design(&self) -> Design {
        design(self.name, self.size)
    }

    fn lasts(&self, cell: &Cell) -> Duration {
        self.size.lasts(Self::of(cell).1)
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Stamped>> {
        let (method, traffic) = Self::of(cell);
        let packets = self.size.packets_of(traffic);
        let socket = socket().context("cannot open a UDP socket on the loopback interface")?;
        let sender = sender(traffic.pattern(), packets, &socket)?;
        let counter = self.clock.counter();
        let checkpoint_ns = checkpoint(counter) * self.tick_ns;
        let received = thread::scope(|scope| {
            let receiver = thread::Builder::new().name("ws-receiver".into());
            let receiver =
                receiver.spawn_scoped(scope, || receive(&socket, packets, method, counter))?;
            let mut clock = ServiceClock::new(&self.clock);
            sender.run(&mut clock, stop.flag(), |_| ());
            receiver.join().map_err(|_| io::Error::other("the receiver failed"))?
        })
        .context("cannot receive packets on the loopback interface")?;
        ensure!(
            !received.is_empty() || stop.is_requested(),
            "no packet arrived over the loopback interface: is it up?"
        );
        Ok(self.samples(method, &received, checkpoint_ns))
    }
}

fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
    Ok(socket)
}

fn sender(pattern: Pattern, packets: u32, to: &UdpSocket) -> anyhow::Result<Sender> {
    let plan = StreamPlan { pattern, start: Span::ZERO, packets: packets.into() };
    Ok(Sender::open(vec![Stream::new(1, plan, to.local_addr()?)])?)
}

/// Cost of a checkpoint in ticks: the min mean of many in a row.
fn checkpoint(counter: Counter) -> f64 {
    const IN_A_ROW: u32 = 1000;
    let mean = |_| {
        let start = counter.read_ordered();
        let mut end = start;
        for _ in 0..IN_A_ROW {
            end = counter.read_ordered();
        }
        real(end.saturating_sub(start)) / f64::from(IN_A_ROW)
    };
    (0..50).map(mean).fold(f64::INFINITY, f64::min)
}

/// Sender's record of a packet, the counter at the checkpoints before and after its stamp, and
/// the stamp in the unit of its clock.
struct Reading {
    sent: Payload,
    before: u64,
    stamp: u64,
    after: u64,
}

/// Receives packets and stamps each at once, on a core of its own if one is available, until all have arrived
/// or no more arrive.
fn receive(
    socket: &UdpSocket,
    packets: u32,
    method: Method,
    counter: Counter,
) -> io::Result<Vec<Reading>> {
    if let Some(core) = Cores::choose(1).first().and_then(|cores| cores.acquire) {
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only)?;
    }
    match method {
        Method::Ktime => receive_with(socket, packets, counter, SystemTime::now, nanos),
        // With a fence, as clock_gettime(2) reads the counter.
        Method::Raw => {
            receive_with(socket, packets, counter, || counter.read_ordered(), |stamp| stamp)
        }
    }
}

/// Nanoseconds since 1970.
fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A stamp between two checkpoints, both warm.
///
/// The first reads after a pause are slow. In the softIRQ they are measured too; here both methods are compared without
/// them, and the subtracted cost is that of a fast read. So the same instructions run twice, and the second result counts:
/// a compiler that copies a short method's code would otherwise leave the second copy out of the caches.
#[inline(never)]
fn between_checkpoints<T>(counter: Counter, stamp: impl Fn() -> T) -> (u64, T, u64) {
    // The compiler does not know the count, so that it cannot unroll the loop.
    let mut rounds = black_box(2);
    loop {
        let before = counter.read_ordered();
        let stamp = black_box(stamp());
        let after = counter.read_ordered();
        rounds -= 1;
        if rounds == 0 {
            return (before, stamp, after);
        }
    }
}

/// Stamps packets with `stamp`; `value` converts the stamps to numbers afterwards.
fn receive_with<T>(
    socket: &UdpSocket,
    packets: u32,
    counter: Counter,
    stamp: impl Fn() -> T,
    value: impl Fn(T) -> u64,
) -> io::Result<Vec<Reading>> {
    let mut readings = Vec::with_capacity(usize::try_from(packets).unwrap_or(0));
    let mut packet = [0; 2048];
    while readings.len() < readings.capacity() {
        match socket.recv(&mut packet) {
            Ok(bytes) => {
                let (before, stamp, after) = between_checkpoints(counter, &stamp);
                if let Some(sent) = Payload::decode(&packet[..bytes]) {
                    readings.push(Reading { sent, before, stamp: value(stamp), after });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(readings)
}
