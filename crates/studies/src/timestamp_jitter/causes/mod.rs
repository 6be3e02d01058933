//! Why packets are late: the kernel's work on the sender's core is recorded during a flow.
//!
//! A packet is late if its transit is more than 1 µs longer than the median. The transit is inside one call of the sender.
//! Its cause is the work of the kernel that took at least half of the time for which it was late. Where no work did, the
//! time went to what is not recorded: misses of caches and of the address translation, or the hypervisor. The first packet
//! of a flow finds neither program nor memory in the caches.

mod findings;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use strum::VariantArray;
use wirestamp_capture::Stop;

use super::flows::{AROUND, constant, transits};
use super::paper::Pause;
use super::source::{JitterSource, SOURCES};
use crate::experiment::{Cell, Design, Factor, Study};
use crate::probe::{CACHES_NS, Captures, CoreWork, Departures, KernelWork, Probe, WorkTimes};

pub(super) use findings::{LateOfCause, LateResult};

/// Pauses of the flows. With shorter ones the driver's transmit stamps of small frames are not recorded.
const PAUSES: [Pause; 3] = [Pause::Half, Pause::One, Pause::Five];

/// Time to start and end the recorder.
const RECORDER: Duration = Duration::from_millis(300);

/// Extent of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LateScale {
    repetitions: u32,
    /// Of frames in bytes, with check sequence.
    frames: &'static [u16],
    /// How long a flow lasts.
    flow: Duration,
}

impl LateScale {
    /// All sizes of the report, in ten minutes.
    pub(super) const FULL: Self = Self {
        repetitions: 3,
        frames: &[84, 300, 600, 900, 1200, 1500],
        flow: Duration::from_secs(3),
    };
    /// One size, in eight seconds.
    pub(super) const QUICK: Self =
        Self { repetitions: 1, frames: &[300], flow: Duration::from_millis(300) };

    fn design(self) -> Design {
        let frames: Vec<_> = self.frames.iter().map(u16::to_string).collect();
        let sources = SOURCES.map(|source| source.to_string());
        Design {
            name: "timestamp-jitter-causes".to_owned(),
            factors: vec![
                Factor::new("frame", frames.iter().map(String::as_str)),
                Factor::new("pause", PAUSES.map(Pause::name)),
                Factor::new("source", sources.iter().map(String::as_str)),
            ],
            repetitions: self.repetitions,
            constants: vec![("milliseconds".to_owned(), self.flow.as_millis().to_string())],
        }
    }
}

/// What made a packet late.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::VariantArray, strum::Display,
)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    /// The core ran another task.
    #[strum(to_string = "another task")]
    Task,
    /// The core served an interrupt.
    #[strum(to_string = "an interrupt")]
    Interrupt,
    /// The core ran another softIRQ than that of the packet.
    #[strum(to_string = "another softIRQ")]
    Softirq,
    /// None of these took so long, but it is the first packet: neither the program nor its memory is in the caches.
    #[strum(to_string = "the first packet")]
    First,
    /// None of these took so long, and at most [`CACHES_NS`] late: as long as misses of caches and of the address
    /// translation.
    #[strum(to_string = "no such work and at most 2 µs late")]
    UnrecordedShort,
    /// None of these took so long, and later.
    #[strum(to_string = "no such work and later")]
    UnrecordedLong,
}

impl Cause {
    /// The cause of a packet that was `excess_ns` late, from its number and the work of the kernel during its transit.
    fn of(packet: u64, work: WorkTimes, excess_ns: f64) -> Self {
        match work.longest().filter(|_| work.total() >= excess_ns / 2.0) {
            Some(KernelWork::Task) => Self::Task,
            Some(KernelWork::Interrupt) => Self::Interrupt,
            Some(KernelWork::Softirq) => Self::Softirq,
            None if packet == 0 => Self::First,
            None if excess_ns <= CACHES_NS => Self::UnrecordedShort,
            None => Self::UnrecordedLong,
        }
    }
}

/// The late packets of a flow by one source, with one cause. A row of the raw data: each flow has one for each cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LatePackets {
    /// Method and stamp.
    pub(super) source: String,
    /// The cause.
    pub(super) cause: Cause,
    /// Late packets with this cause, and the sum of the squares of how late they were, in square nanoseconds.
    pub(super) late: u64,
    pub(super) late_squares: f64,
    /// Of the flow, the same in all its rows: packets, the median of their transits in nanoseconds, and the sum of the
    /// squares of the differences from it.
    pub(super) packets: u64,
    pub(super) median_ns: f64,
    pub(super) squares: f64,
    /// Events of the sender's core that were lost: with any, a cause is not known.
    pub(super) events_lost: u64,
}

/// The study.
pub(super) struct LateFlows {
    size: LateScale,
    probe: Probe,
}

impl LateFlows {
    pub(super) fn new(size: LateScale) -> anyhow::Result<Self> {
        Ok(Self { size, probe: Probe::new()? })
    }

    /// Whether the kernel records its work.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.probe.check_kernel_work()
    }

    /// The sources that this machine refused, each with the reason.
    pub(super) fn refusals(&self) -> Vec<(String, String)> {
        self.probe.refusals()
    }
}

impl Study for LateFlows {
    type Sample = LatePackets;

    fn design(&self) -> Design {
        self.size.design()
    }

    fn lasts(&self, _: &Cell) -> Duration {
        self.size.flow + AROUND + RECORDER
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<LatePackets>> {
        let level = |factor: usize| cell.0.get(factor).copied().unwrap_or(0);
        let frame_bytes = self.size.frames.get(level(0)).copied().unwrap_or(0);
        let pause = PAUSES[level(1) % PAUSES.len()];
        let source = SOURCES[level(2) % SOURCES.len()];
        self.probe.set_polling(source.is_polled)?;
        let (pattern, packets) = constant(frame_bytes, pause, self.size.flow)?;
        let (observed, work) =
            self.probe.observe_with_kernel_work(&[source.capture], pattern, packets, stop)?;
        let Some(Some(captures)) = observed.captures.first() else { return Ok(Vec::new()) };
        ensure!(captures.ledger.balances(), "the ledger of {source} does not balance");
        Ok(late_packets(source, &observed.departures, captures, &work).unwrap_or_default())
    }
}

/// One row for each cause; none without packets.
fn late_packets(
    source: JitterSource,
    departures: &Departures,
    captures: &Captures,
    work: &CoreWork,
) -> Option<Vec<LatePackets>> {
    let transits = transits(&captures.stamps, departures);
    let (median_ns, squares) = (transits.quantile(500)?, transits.squares()?);
    let row = |cause: &Cause| LatePackets {
        source: source.to_string(),
        cause: *cause,
        late: 0,
        late_squares: 0.0,
        packets: transits.count(),
        median_ns,
        squares,
        events_lost: work.lost,
    };
    let mut rows: Vec<_> = Cause::VARIANTS.iter().map(row).collect();
    let stamps: HashMap<_, _> = captures.stamps.iter().copied().collect();
    for (packet, excess_ns) in transits.late() {
        let (Some(departure), Some(stamp)) = (departures.nearest(packet), stamps.get(&packet))
        else {
            continue;
        };
        let cause = Cause::of(packet, work.between(departure, *stamp), excess_ns);
        for row in rows.iter_mut().filter(|row| row.cause == cause) {
            row.late += 1;
            row.late_squares += excess_ns * excess_ns;
        }
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_work_is_no_cause_of_a_long_delay() {
        let work = |softirq, interrupt, task| WorkTimes { softirq, interrupt, task };
        assert_eq!(Cause::of(0, work(0.0, 800.0, 0.0), 1_500.0), Cause::Interrupt);
        assert_eq!(Cause::of(1, work(0.0, 500.0, 0.0), 3_000_000.0), Cause::UnrecordedLong);
        assert_eq!(Cause::of(1, work(600.0, 500.0, 0.0), 2_000.0), Cause::Softirq);
        assert_eq!(Cause::of(0, work(0.0, 0.0, 0.0), 9_000.0), Cause::First);
        assert_eq!(Cause::of(1, work(0.0, 0.0, 0.0), 1_500.0), Cause::UnrecordedShort);
    }

    #[test]
    fn late_packets_of_a_flow_have_causes() {
        let mut study = LateFlows::new(LateScale::QUICK).unwrap();
        let stop = Stop::new().unwrap();
        let rows = study.run(&study.design().cells()[0], &stop).unwrap();
        assert_eq!(rows.len(), Cause::VARIANTS.len());
        let first = &rows[0];
        assert!(first.source == "ring/kernel" && first.packets > 0 && first.squares > 0.0);
        for row in &rows {
            assert!(row.late <= row.packets && row.late_squares <= row.squares, "{row:?}");
        }
    }
}
