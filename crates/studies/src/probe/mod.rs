//! A probe at the end of a cable: a sender that records its send times, and captures that stamp the same
//! packets.
//!
//! The sender has a core to itself, on which a veth's softIRQ runs too; the captures have the others.

mod busy_clock;
mod captures;
mod departures;
mod events;
mod gaps;
mod kernel_work;
mod source;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use wirestamp_capture::softirq_cost::{MeasuredPackets, PacketMeasurement, SoftirqStamp};
use wirestamp_capture::{Capture, Cores, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::wire::Wire;
use wirestamp_lab::{SOURCE_INTERFACE, TAP_A};
use wirestamp_traffic::Pattern;

use crate::tester::settle;
pub(crate) use captures::Captures;
pub(crate) use departures::{Departures, SendTimes};
pub(crate) use events::PacketEvent;
pub(crate) use gaps::{Gap, Passage, gaps};
pub(crate) use kernel_work::{CACHES_NS, CoreWork, KernelWork, WorkTimes};
pub(crate) use source::Source;

/// Time without packets after which a capture has no more packets: the kernel passes on a ring block that is
/// not full after some 10 ms.
const SILENCE: Duration = Duration::from_millis(150);
/// Interval of checks for the last packets.
const LOOK: Duration = Duration::from_millis(1);

/// The cable, and why sources were refused on it.
pub(crate) struct Probe {
    clock: ClockService,
    wire: Wire,
    /// Sources that are not available here, with reasons.
    refused: BTreeMap<String, String>,
}

/// A flow as sent and as captured.
pub(crate) struct Observed {
    /// The sender's report.
    pub(crate) departures: Departures,
    /// Results of each source, in the given order; `None` for a rejected one.
    pub(crate) captures: Vec<Option<Captures>>,
}

impl Probe {
    /// Creates the cable.
    ///
    /// # Errors
    /// When privileges (the error names them and how to get them) or iproute2 are missing.
    pub(crate) fn new() -> anyhow::Result<Self> {
        wirestamp_lab::check_privilege()?;
        let clock =
            ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
        Ok(Self { clock, wire: Wire::new()?, refused: BTreeMap::new() })
    }

    /// Whether the receiving interface polls its packets in a softIRQ (NAPI), as the driver of a network card does. By default
    /// it does so with an XDP program only; otherwise the kernel stamps each packet in the sender's call, and queues it for the
    /// softIRQ.
    ///
    /// # Errors
    /// When the interface cannot be set so, or the kernel stamps packets after the queue.
    pub(crate) fn set_polling(&self, is_polled: bool) -> anyhow::Result<()> {
        // Only the first network namespace has the file.
        let prequeue = std::fs::read_to_string("/proc/sys/net/core/netdev_tstamp_prequeue").ok();
        ensure!(
            is_polled || prequeue.is_none_or(|it| it.trim() != "0"),
            "the kernel stamps packets after the queue of a core; set net.core.netdev_tstamp_prequeue to 1"
        );
        let gro = if is_polled { "on" } else { "off" };
        // A veth does not poll packets of a sender that could send larger segments (`veth_skb_is_eligible_for_gro` of
        // drivers/net/veth.c).
        settle(&self.wire.source, &format!("ethtool -K {SOURCE_INTERFACE} tso off"))?;
        settle(&self.wire.wire, &format!("ethtool -K {TAP_A} gro {gro}"))
    }

    /// Sends `packets` packets of a pattern, and captures them by all sources at once.
    ///
    /// # Errors
    /// When the flow cannot be sent, or a capture ends early. A source that is not available here is no
    /// error ([`Probe::refusals`]).
    pub(crate) fn observe(
        &mut self,
        sources: &[Source],
        pattern: Pattern,
        packets: u64,
        recorded: SendTimes,
        stop: &Stop,
    ) -> anyhow::Result<Observed> {
        let cores = Cores::choose(sources.len());
        let opened: Vec<_> = sources.iter().zip(&cores).map(|(s, c)| self.open(*s, *c)).collect();
        let end = Stop::new().context("cannot make the stop event")?;
        let counts: Vec<_> = opened.iter().map(|_| AtomicU64::new(0)).collect();
        let sending = cores.first().and_then(|cores| cores.convert);
        thread::scope(|scope| {
            let (clock, end, at_end) = (&self.clock, &end, AtEnd(&end));
            let started = opened.into_iter().zip(&counts);
            let started = started.map(|(capture, count)| {
                capture.map(|capture| scope.spawn(|| Captures::take(capture, clock, end, count)))
            });
            let started: Vec<_> = started.collect();
            let sent = self
                .wire
                .source
                .run(|| Departures::send(&self.clock, pattern, packets, sending, recorded, stop));
            let waited = started.iter().zip(&counts).filter(|(capture, _)| capture.is_some());
            await_all(waited.map(|(_, count)| count), packets, stop);
            drop(at_end);
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            let captures = started.into_iter().map(|thread| thread.map(join).transpose());
            let captures = captures.collect::<anyhow::Result<_>>()?;
            Ok(Observed { departures: sent.context("cannot enter the lab")??, captures })
        })
    }

    /// Sends `packets` packets of a pattern, and measures a stamp of each in the softIRQ at the cable's end.
    ///
    /// # Errors
    /// When the flow cannot be sent, or the kernel does not load the program.
    pub(crate) fn measure_stamps(
        &self,
        stamp: SoftirqStamp,
        pattern: Pattern,
        packets: u64,
        stop: &Stop,
    ) -> anyhow::Result<MeasuredPackets> {
        let frame_bytes = pattern.frame_bytes();
        let start = || PacketMeasurement::start(TAP_A, frame_bytes, stamp);
        let measurement = self.wire.wire.run(start).context("cannot enter the lab")??;
        let core = Cores::choose(1).first().and_then(|cores| cores.convert);
        // A veth passes packets on before the send call returns, so all have arrived after the last one.
        let send = || Departures::send(&self.clock, pattern, packets, core, SendTimes::Call, stop);
        self.wire.source.run(send).context("cannot enter the lab")??;
        Ok(measurement.finish()?)
    }

    /// Opens a capture at the cable's end. If it is refused, returns none and stores the reason.
    fn open(&mut self, source: Source, cores: Cores) -> Option<Capture> {
        let config = captures::config(source, cores);
        let opened = self.wire.wire.run(|| Capture::open(config, &self.clock));
        let refused = match opened {
            Ok(Ok(capture)) => return Some(capture),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.refused.insert(source.to_string(), refused);
        None
    }

    /// The sources that were refused on this machine, each with the reason.
    pub(crate) fn refusals(&self) -> Vec<(String, String)> {
        self.refused.clone().into_iter().collect()
    }
}

/// Ends captures, also after a panic: threads that are not stopped would make it hang.
pub(crate) struct AtEnd<'a>(pub(crate) &'a Stop);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// Waits until all captures have delivered all packets, or none delivers any more. The ledgers then account
/// for missing packets.
pub(crate) fn await_all<'a>(
    counts: impl Iterator<Item = &'a AtomicU64> + Clone,
    packets: u64,
    stop: &Stop,
) {
    let now = || counts.clone().map(|count| count.load(Ordering::Acquire)).collect::<Vec<_>>();
    let (mut before, mut since) = (now(), Instant::now());
    while before.iter().any(|count| *count < packets)
        && since.elapsed() < SILENCE
        && !stop.is_requested()
    {
        thread::park_timeout(LOOK);
        let counts = now();
        if counts != before {
            (before, since) = (counts, Instant::now());
        }
    }
}
