//! The losses of each contender under each condition, and what a contender needs for a packet.

use crate::experiment::{Estimate, Runs, mean};
use crate::loss::in_softirq::SoftirqRound;
use crate::loss::in_softirq::scale::SoftirqScale;

/// Loss that counts as no more than another's, in percentage points above it.
pub(super) const NO_MORE: f64 = 1.0;

/// The loss of each cell, by repetition. A round that was not at the load has none.
pub(super) struct Losses<'a> {
    pub(super) runs: &'a Runs<SoftirqRound>,
    /// Bytes of a frame, and the gap in nanoseconds, of each condition.
    pub(super) conditions: Vec<(u16, u64)>,
    /// By contender, then by condition.
    losses: Vec<Vec<Option<f64>>>,
    /// CPU time of the softIRQ for a packet, in nanoseconds; in the same order. Of all rounds, as in the report's table.
    times: Vec<Vec<Option<f64>>>,
}

impl<'a> Losses<'a> {
    /// Those of complete repetitions.
    pub(super) fn of_runs(runs: &'a Runs<SoftirqRound>, size: SoftirqScale) -> Self {
        let conditions =
            size.frame_bytes.iter().flat_map(|bytes| size.gaps_ns.iter().map(|gap| (*bytes, *gap)));
        let complete = usize::try_from(runs.complete()).unwrap_or(usize::MAX);
        let cells = || (0..).zip(runs.design.cells());
        let rounds = |cell| runs.of_cell(cell).take(complete).map(|run| run.first());
        let losses = cells().map(|(index, cell)| {
            let gap_ns = size.condition(&cell).gap_ns;
            let compared = |round: &&SoftirqRound| round.is_compared(gap_ns);
            let losses = rounds(index).map(|round| Some(round.filter(compared)?.loss_percent()));
            losses.collect::<Vec<_>>()
        });
        let times = cells().map(|(index, _)| {
            let times = rounds(index).map(|round| round?.softirq_ns_per_packet());
            times.collect::<Vec<_>>()
        });
        Self {
            runs,
            conditions: conditions.collect(),
            losses: losses.collect(),
            times: times.collect(),
        }
    }

    /// The name of a contender.
    pub(super) fn name(&self, contender: usize) -> &str {
        let factor = self.runs.design.factors.first();
        factor.and_then(|it| it.levels.get(contender)).map_or("", String::as_str)
    }

    /// The losses of a contender, by condition.
    pub(super) fn of(&self, contender: usize) -> &[Vec<Option<f64>>] {
        self.part(&self.losses, contender)
    }

    /// CPU times of the softIRQ for a packet with a contender, by condition, in nanoseconds.
    pub(super) fn times_of(&self, contender: usize) -> &[Vec<Option<f64>>] {
        self.part(&self.times, contender)
    }

    /// The values of a contender, by condition.
    fn part<'b>(&self, values: &'b [Vec<Option<f64>>], contender: usize) -> &'b [Vec<Option<f64>>] {
        let conditions = self.conditions.len();
        let first = contender * conditions;
        values.get(first..first + conditions).unwrap_or_default()
    }

    /// The mean losses of two contenders over the conditions, by repetition: of those under which both have a loss in the
    /// repetition.
    pub(super) fn by_repetition(&self, [first, second]: [usize; 2]) -> Vec<(f64, f64)> {
        let cells: Vec<_> = self.of(first).iter().zip(self.of(second)).collect();
        let repetitions = cells.iter().map(|(first, _)| first.len()).min().unwrap_or(0);
        let of = |repetition: usize| {
            let both = cells
                .iter()
                .filter_map(|(first, second)| first[repetition].zip(second[repetition]));
            let (of_first, of_second): (Vec<_>, Vec<_>) = both.unzip();
            mean(&of_first).zip(mean(&of_second))
        };
        (0..repetitions).filter_map(of).collect()
    }
}

/// The trimmed mean: without the rounds in which the hypervisor took the core of the softIRQ, which lose packets whatever is
/// done with each.
pub(super) fn typical(values: &[Option<f64>]) -> Option<f64> {
    let values: Vec<_> = values.iter().copied().flatten().collect();
    Estimate::trimmed(&values).map(|it| it.mean)
}

/// How many pairs of rounds have no loss in one of both, to follow other numbers. Empty if there are none.
pub(super) fn left_out<'a>(
    pairs: impl Iterator<Item = (&'a [Option<f64>], &'a [Option<f64>])>,
) -> String {
    let rounds = pairs.flat_map(|(first, second)| first.iter().zip(second));
    let is_missing = rounds.map(|(first, second)| first.is_none() || second.is_none());
    let is_missing: Vec<_> = is_missing.collect();
    match is_missing.iter().filter(|it| **it).count() {
        0 => String::new(),
        missing => format!(
            "; {missing} of {} pairs of rounds are left out, in which the sender was late or too slow",
            is_missing.len()
        ),
    }
}
