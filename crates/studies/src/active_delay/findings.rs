//! Results computed from the runs.

use std::time::Duration;

use serde::Serialize;

use super::measured::Measured;
use super::setting::Setting;
use crate::experiment::{Effect, Estimate, Runs, effects, mean};
use wirestamp_report::format::length;

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ActiveDelayResult {
    /// Every cell.
    pub(super) cells: Vec<CellFindings>,
    /// Effects of frame size and rate on the difference of the mean delays, with its sign.
    pub(super) effects_on_mean_difference: Vec<Effect>,
}

/// A cell. Differences are active less passive, in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CellFindings {
    /// Frame size and rate in words.
    pub(super) name: String,
    /// Bytes with check sequence.
    pub(super) frame: u16,
    /// Runs.
    pub(super) runs: u64,
    /// Packets that were sent, all runs together.
    pub(super) sent: u64,
    /// Of them, those that were received, by the active measurement and by the passive one.
    pub(super) received: [u64; 2],
    /// By how many packets the two disagree, over all runs.
    pub(super) disagreement: u64,
    /// Packets and answers whose send time was read by a program, not by the kernel.
    pub(super) stamped_late: u64,
    /// Min of all active delays.
    pub(super) least_ns: Option<f64>,
    /// The mean passive delay.
    pub(super) mean_ns: Option<f64>,
    /// Differences of the min, mean and max delay of each run.
    pub(super) differences_ns: Vec<[f64; 3]>,
    /// The mean of each of them over the runs.
    pub(super) difference_ns: [Option<Estimate>; 3],
    /// Median of the absolute difference of both delays of a packet.
    pub(super) packet_difference_ns: Option<f64>,
}

impl ActiveDelayResult {
    /// Computes the results of the runs.
    pub(super) fn of(runs: &Runs<Measured>) -> Self {
        let cells = (0..).zip(runs.design.cells()).map(|(index, cell)| {
            let name = runs.design.levels(&cell).join(", ").replace('-', " ");
            let frame = Setting::of(&cell, Duration::ZERO).frame;
            of_cell(name, frame, &runs.of_cell(index).flatten().collect::<Vec<_>>())
        });
        let responses = runs.responses(|run| Some(run.first()?.differences_ns()[1]));
        let is_whole = responses.iter().flatten().all(|response| response.is_finite());
        let effects = if is_whole { effects(&runs.design, &responses) } else { Vec::new() };
        let cells = cells.collect();
        Self { cells, effects_on_mean_difference: effects }
    }
}

fn of_cell(name: String, frame: u16, runs: &[&Measured]) -> CellFindings {
    let total = |of: fn(&Measured) -> u64| runs.iter().map(|run| of(run)).sum();
    let finite = |of: &dyn Fn(&Measured) -> f64| -> Vec<f64> {
        runs.iter().map(|run| of(run)).filter(|value| value.is_finite()).collect()
    };
    let difference = |which: usize| Estimate::of(&finite(&|run| run.differences_ns()[which]));
    CellFindings {
        name,
        frame,
        runs: length(runs),
        sent: total(|run| run.sent),
        received: [total(|run| run.active_received), total(|run| run.at_b)],
        disagreement: total(Measured::disagreement),
        stamped_late: total(|run| run.stamped_late),
        least_ns: finite(&|run| run.active_min_ns).into_iter().reduce(f64::min),
        mean_ns: mean(&finite(&|run| run.passive_mean_ns)),
        differences_ns: runs.iter().map(|run| run.differences_ns()).collect(),
        difference_ns: [difference(0), difference(1), difference(2)],
        packet_difference_ns: mean(&finite(&|run| run.packet_difference_ns)),
    }
}
