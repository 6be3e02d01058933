//! Overhead of a stamp in the softIRQ, packet by packet: a stream over a cable, each packet of which is stamped by a
//! tracing program at its end.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use wirestamp_capture::Stop;
use wirestamp_capture::softirq_cost::{Checkpoints, SoftirqStamp};
use wirestamp_clock::{Counter, survey};

use super::packets::{OverheadScale, Packets, Stamped, design};
use super::paper::Method;
use crate::experiment::{Cell, Design, Runs, Study, mean};
use crate::probe::Probe;
use wirestamp_metrics::numeric::nearest_rank_per_mille;
use wirestamp_report::format::{length, real};

/// Name of the results.
pub(super) const NAME: &str = "overhead-packets-softirq";

/// One packet. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SoftirqStamped {
    /// Its number in the order of arrival, from 0.
    pub(crate) packet: u64,
    /// From the checkpoint before the first stamp to the one after it. The code and data of the stamp may not be in the
    /// caches.
    pub(crate) first_ns: f64,
    /// The same for a second stamp, right after it.
    pub(crate) second_ns: f64,
    /// From one checkpoint to the next without a stamp.
    pub(crate) checkpoint_ns: f64,
    /// Interrupts meanwhile; none in older results.
    #[serde(default)]
    pub(crate) interrupts: Option<u64>,
}

impl SoftirqStamped {
    fn of(packet: u64, points: &Checkpoints, unit_ns: f64) -> Self {
        let nanos = |from: u64, to: u64| real(to.saturating_sub(from)) * unit_ns;
        let Checkpoints { before_first, between, after_second, end, interrupts } = *points;
        Self {
            packet,
            first_ns: nanos(before_first, between),
            second_ns: nanos(between, after_second),
            checkpoint_ns: nanos(after_second, end),
            interrupts: Some(interrupts),
        }
    }

    /// From checkpoint to checkpoint around one of the stamps.
    pub(super) const fn around(&self, which: Which) -> f64 {
        match which {
            Which::First => self.first_ns,
            Which::Second => self.second_ns,
        }
    }
}

/// The study.
pub(super) struct PacketsInSoftirq {
    size: OverheadScale,
    probe: Probe,
    tick_ns: f64,
}

impl PacketsInSoftirq {
    /// # Errors
    /// When the cable cannot be made, or the counter's frequency is not known.
    pub(super) fn new(size: OverheadScale) -> anyhow::Result<Self> {
        let survey = survey();
        let source = survey.sources.iter().find(|source| source.name == Counter::select().name());
        let frequency_hz = source.and_then(|source| source.frequency_hz);
        let tick_ns = 1e9 / frequency_hz.context("the counter's frequency is not known")?;
        Ok(Self { size, probe: Probe::new()?, tick_ns })
    }
}

impl Study for PacketsInSoftirq {
    type Sample = SoftirqStamped;

    fn design(&self) -> Design {
        design(NAME, self.size)
    }

    fn lasts(&self, cell: &Cell) -> Duration {
        self.size.lasts(Packets::of(cell).1)
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<SoftirqStamped>> {
        let (method, traffic) = Packets::of(cell);
        // Each stamp is measured by the other clock.
        let (stamp, unit_ns) = match method {
            Method::Ktime => (SoftirqStamp::Kernel, self.tick_ns),
            Method::Raw => (SoftirqStamp::Counter, 1.0),
        };
        let packets = self.size.packets_of(traffic).into();
        let measured = self.probe.measure_stamps(stamp, traffic.pattern(), packets, stop)?;
        ensure!(
            !measured.packets.is_empty() || stop.is_requested(),
            "no packet reached the tracing program"
        );
        let packets = (0..).zip(&measured.packets);
        Ok(packets.map(|(n, points)| SoftirqStamped::of(n, points, unit_ns)).collect())
    }
}

/// One of the two stamps of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Which {
    /// The first: its data may not be in the caches.
    First,
    /// The second, right after it.
    Second,
}

/// The runs with the checkpoints of one of the two stamps.
pub(super) fn stamped(runs: &Runs<SoftirqStamped>, which: Which) -> Runs<Stamped> {
    let of_run = |run: &Vec<SoftirqStamped>| {
        let checkpoint_ns = checkpoint(run);
        let stamped = |it: &SoftirqStamped| Stamped {
            packet: it.packet,
            sent_ns: 0.0,
            at_ns: 0.0,
            stamp_ns: 0.0,
            between_ns: it.around(which),
            checkpoint_ns,
        };
        run.iter().map(stamped).collect()
    };
    Runs {
        design: runs.design.clone(),
        seed: runs.seed,
        sittings: runs.sittings.clone(),
        interrupted: runs.interrupted,
        runs: runs.runs.iter().map(|(turn, run)| (*turn, of_run(run))).collect(),
    }
}

/// Cost of a checkpoint in a run: the mean without the longest hundredth. The counter may advance in steps that are
/// longer than this cost, so that a single value says little.
fn checkpoint(run: &[SoftirqStamped]) -> f64 {
    let mut costs: Vec<f64> = run.iter().map(|it| it.checkpoint_ns).collect();
    costs.sort_unstable_by(f64::total_cmp);
    let kept = usize::try_from(nearest_rank_per_mille(990, length(&costs)));
    mean(costs.get(..kept.unwrap_or(0)).unwrap_or(&costs)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_checkpoints_do_not_change_their_cost() {
        let stamped = |packet: u64| SoftirqStamped {
            packet,
            first_ns: 60.0,
            second_ns: 50.0,
            checkpoint_ns: if packet == 7 {
                9_000.0
            } else {
                [20.0, 30.0][usize::from(packet.is_multiple_of(2))]
            },
            interrupts: None,
        };
        let run: Vec<_> = (0..1_000).map(stamped).collect();
        assert!((checkpoint(&run) - 25.0).abs() < 0.1, "{}", checkpoint(&run));
        assert!((checkpoint(&[])).abs() < f64::EPSILON);
    }

    #[test]
    fn ticks_become_nanoseconds() {
        let points = Checkpoints {
            before_first: 10,
            between: 110,
            after_second: 150,
            end: 190,
            interrupts: 1,
        };
        let expected = SoftirqStamped {
            packet: 3,
            first_ns: 50.0,
            second_ns: 20.0,
            checkpoint_ns: 20.0,
            interrupts: Some(1),
        };
        assert_eq!(SoftirqStamped::of(3, &points, 0.5), expected);
    }
}
