//! Correlation of a stamp's overhead with the preceding time between arrivals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stamps::{Clock, passages};
use crate::experiment::{Estimate, Runs, pearson, spearman};
use crate::overhead::packets::{Packets, Stamped};
use crate::overhead::paper::{Method, Traffic};
use crate::overhead::series;
use crate::probe::{Gap, gaps};

/// Correlation of a stamp's overhead with the time since the stamp before, by run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Correlation {
    /// How packets were stamped.
    pub(super) method: Method,
    /// The traffic.
    pub(super) pattern: Traffic,
    /// The rank correlation with the time between stamps.
    pub(super) spearman: Option<Estimate>,
    /// The linear correlation with it; a few huge values may dominate it.
    pub(super) pearson: Option<Estimate>,
    /// The rank correlation with the error of that time, against the sender.
    pub(super) spearman_of_error: Option<Estimate>,
    /// Share of overheads that have one of two values, a step of the counter apart, 0 to 1.
    #[serde(default)]
    pub(super) share_of_two_values: Option<f64>,
}

impl Correlation {
    /// That of each method with each pattern. `step_ns` is the step of the counter.
    pub(super) fn of_all(runs: &Runs<Stamped>, step_ns: f64) -> Vec<Self> {
        let cells = runs.design.cells();
        let cells = cells.iter().enumerate();
        cells.map(|(index, cell)| Self::of(runs, index, Packets::of(cell), step_ns)).collect()
    }

    fn of(
        runs: &Runs<Stamped>,
        index: usize,
        (method, pattern): (Method, Traffic),
        step_ns: f64,
    ) -> Self {
        let estimate = |of: fn(&[Stamped]) -> Option<f64>| {
            Estimate::of(&runs.of_cell(index).filter_map(of).collect::<Vec<_>>())
        };
        let overheads: Vec<_> = runs.of_cell(index).flatten().map(Stamped::overhead_ns).collect();
        Self {
            method,
            pattern,
            spearman: estimate(of_ranks),
            pearson: estimate(|run| pearson(&pairs(run, |gap| Some(gap.stamped_ns)))),
            spearman_of_error: estimate(|run| spearman(&pairs(run, Gap::error_ns))),
            share_of_two_values: series::share_of_two_values(&overheads, step_ns),
        }
    }
}

/// The rank correlation within a run.
fn of_ranks(run: &[Stamped]) -> Option<f64> {
    spearman(&pairs(run, |gap| Some(gap.stamped_ns)))
}

/// The overhead of each stamp, paired with `of` the time since the previous stamp.
fn pairs(run: &[Stamped], of: impl Fn(&Gap) -> Option<f64>) -> Vec<(f64, f64)> {
    let overheads: BTreeMap<u64, f64> =
        run.iter().map(|stamped| (stamped.packet, stamped.overhead_ns())).collect();
    let gaps = gaps(passages(run, Clock::Stamp));
    let pair = |gap: &Gap| Some((*overheads.get(&gap.packet)?, of(gap)?));
    gaps.iter().filter_map(pair).collect()
}
