//! The losses of each contender under each condition, and what a contender needs for a packet.

use crate::experiment::{Estimate, Runs, mean};
use crate::loss::in_softirq::SoftirqRound;
use crate::loss::in_softirq::scale::SoftirqScale;

/// Loss that counts as no more than another's, in percentage points above it.
pub(super) const NO_MORE: f64 = 1.0;

/// The loss of each cell, by repetition.
pub(super) struct Losses<'a> {
    pub(super) runs: &'a Runs<SoftirqRound>,
    /// Bytes of a frame, and the gap in nanoseconds, of each condition.
    pub(super) conditions: Vec<(u16, u64)>,
    /// By contender, then by condition.
    losses: Vec<Vec<f64>>,
    /// CPU time of the softIRQ for a packet, in nanoseconds; in the same order.
    times: Vec<Vec<f64>>,
}

impl<'a> Losses<'a> {
    /// Those of complete repetitions.
    pub(super) fn of_runs(runs: &'a Runs<SoftirqRound>, size: SoftirqScale) -> Self {
        let conditions =
            size.frame_bytes.iter().flat_map(|bytes| size.gaps_ns.iter().map(|gap| (*bytes, *gap)));
        Self {
            runs,
            conditions: conditions.collect(),
            losses: runs.responses(|run| run.first().map(SoftirqRound::loss_percent)),
            times: runs.responses(|run| run.first()?.softirq_ns_per_packet()),
        }
    }

    /// The name of a contender.
    pub(super) fn name(&self, contender: usize) -> &str {
        let factor = self.runs.design.factors.first();
        factor.and_then(|it| it.levels.get(contender)).map_or("", String::as_str)
    }

    /// The losses of a contender, by condition.
    pub(super) fn of(&self, contender: usize) -> &[Vec<f64>] {
        self.part(&self.losses, contender)
    }

    /// CPU times of the softIRQ for a packet with a contender, by condition, in nanoseconds.
    pub(super) fn times_of(&self, contender: usize) -> &[Vec<f64>] {
        self.part(&self.times, contender)
    }

    /// The values of a contender, by condition.
    fn part<'b>(&self, values: &'b [Vec<f64>], contender: usize) -> &'b [Vec<f64>] {
        let conditions = self.conditions.len();
        let first = contender * conditions;
        values.get(first..first + conditions).unwrap_or_default()
    }

    /// The mean loss of a contender over all conditions.
    pub(super) fn by_repetition(&self, contender: usize) -> Vec<f64> {
        let cells = self.of(contender);
        let repetitions = cells.iter().map(Vec::len).min().unwrap_or(0);
        let of = |repetition| mean(&cells.iter().map(|cell| cell[repetition]).collect::<Vec<_>>());
        (0..repetitions).filter_map(of).collect()
    }
}

/// The trimmed mean: without the rounds in which the hypervisor took the core of the softIRQ, which lose packets whatever is
/// done with each.
pub(super) fn typical(values: &[f64]) -> Option<f64> {
    Estimate::trimmed(values).map(|it| it.mean)
}
