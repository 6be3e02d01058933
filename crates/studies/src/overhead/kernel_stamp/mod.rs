//! The kernel's own stamp in the softIRQ, between events of its receive path.
//!
//! ```text
//!   netif_rx_entry   stamp, if net.core.netdev_tstamp_prequeue is 1   netif_rx   (queue of a core)
//!                    stamp, if it is 0   netif_receive_skb
//! ```
//!
//! The kernel stamps only while a socket requests it (`net_timestamp_check` of net/core/dev.c). A trace clock stamps the
//! events: the counter itself (x86-tsc) or a clock that the kernel computes from it. So each interval between two events
//! contains one reading of the trace clock, and clocks are compared by the same interval.

mod findings;
mod passage;
mod place;

use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use wirestamp_capture::events::TraceClock;
use wirestamp_capture::{Cores, Stop};
use wirestamp_clock::{Counter, Span, survey};
use wirestamp_traffic::Pattern;

use super::packets::OverheadScale;
use crate::experiment::{Cell, Design, Factor, Study};
use crate::probe::Probe;
pub(super) use findings::{AddedByClock, KernelStamps};
use passage::{CHECKPOINTS, Passages};
use place::StampPlace;

/// Clocks of the events.
const CLOCKS: [TraceClock; 4] =
    [TraceClock::X86Tsc, TraceClock::Mono, TraceClock::Boot, TraceClock::Local];

/// Frame length of the paper's pattern 1.
const FRAME_BYTES: u16 = 140;
/// Interval of the packets. Those of the paper's patterns would take hours for all clocks.
const PACKET_INTERVAL: Span = Span::from_micros(100);

/// Time that the kernel may take to start or end its stamping: it does so by a work queue.
const STAMPING_CHANGE: Duration = Duration::from_millis(100);

/// Packets of one interval between two events that had the same length. A row of the raw data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Intervals {
    /// Which interval.
    pub(super) interval: IntervalKind,
    /// The core of the interval's last event.
    pub(super) core: u32,
    /// Length in nanoseconds; those through the queue are rounded to tens.
    pub(super) ns: f64,
    /// Packets with this length, on this core.
    pub(super) packets: u64,
    /// Auto-correlation of a packet's interval and the next one's in the run: the same in all its rows.
    pub(super) autocorrelation: Option<f64>,
}

/// An interval between two events of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum IntervalKind {
    /// From `netif_rx_entry` to `netif_rx`: it contains the stamp before the queue, and nothing else.
    BeforeQueue,
    /// From `netif_rx` to `netif_receive_skb`: the queue, then the stamp after it.
    Queue,
}

/// The study.
pub(super) struct KernelStamp {
    size: OverheadScale,
    probe: Probe,
    tick_ns: f64,
}

impl KernelStamp {
    /// # Errors
    /// The cable cannot be made, its packets cannot be steered to another core, or the counter's frequency is not known.
    pub(super) fn new(size: OverheadScale) -> anyhow::Result<Self> {
        let survey = survey();
        let source = survey.sources.iter().find(|source| source.name == Counter::select().name());
        let frequency_hz = source.and_then(|source| source.frequency_hz);
        let tick_ns = 1e9 / frequency_hz.context("the counter's frequency is not known")?;
        let probe = Probe::new()?;
        if let Some(core) = Cores::choose(1).first().and_then(|cores| cores.acquire) {
            probe.steer_to(core)?;
        }
        Ok(Self { size, probe, tick_ns })
    }

    fn packets(&self) -> u32 {
        self.size.packets[1]
    }
}

/// The clock and the place of the stamp of a cell.
fn of(cell: &Cell) -> (TraceClock, StampPlace) {
    let level = |factor: usize| cell.0.get(factor).copied().unwrap_or(0);
    (CLOCKS[level(0) % CLOCKS.len()], StampPlace::ALL[level(1) % StampPlace::ALL.len()])
}

impl Study for KernelStamp {
    type Sample = Intervals;

    fn design(&self) -> Design {
        design(self.size)
    }

    fn lasts(&self, _: &Cell) -> Duration {
        let nanos = u64::try_from(PACKET_INTERVAL.as_nanos()).unwrap_or(0);
        Duration::from_nanos(nanos) * self.packets() + STAMPING_CHANGE
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Intervals>> {
        let (clock, place) = of(cell);
        let in_force = place.set()?;
        thread::sleep(STAMPING_CHANGE);
        let pattern = Pattern::new("events", FRAME_BYTES, PACKET_INTERVAL)?;
        let packets = self.packets().into();
        let (events, _) = self.probe.record_events(clock, &CHECKPOINTS, pattern, packets, stop)?;
        drop(in_force);
        let unit_ns = if clock == TraceClock::X86Tsc { self.tick_ns } else { 1.0 };
        Ok(Passages::of(events, unit_ns).intervals())
    }
}

fn design(size: OverheadScale) -> Design {
    Design {
        name: "overhead-kernel-stamp".to_owned(),
        factors: vec![
            Factor::new("clock", CLOCKS.map(TraceClock::name)),
            Factor::new("stamp", StampPlace::ALL.map(StampPlace::name)),
        ],
        repetitions: size.repetitions,
        constants: vec![
            ("packets".to_owned(), size.packets[1].to_string()),
            ("interval (ns)".to_owned(), PACKET_INTERVAL.as_nanos().to_string()),
        ],
    }
}
