//! Results computed from the runs.

use serde::Serialize;

use super::measured::Measured;
use super::measurements::{Measurements, PassiveDelayScale};
use super::paper::Question;
use super::setting::Setting;
use crate::experiment::{Effect, Estimate, Runs, effects, mean};
use wirestamp_report::format::{approximate, length};

/// The runs of the sections, in their order.
pub(super) type AllRuns = [Runs<Measured>; 3];

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PassiveDelayResult {
    /// Every cell, by section.
    pub(super) cells: Vec<CellFindings>,
    /// Effects of frame size, load and tasks on the error of the mean delay, with its sign.
    pub(super) effects_on_mean_error: Vec<Effect>,
    /// Reasons of unknown truth, one for each such run.
    pub(super) unknown: Vec<String>,
    /// Why the CPU load of the captures is not known; none if it is.
    pub(super) load_reason: Option<&'static str>,
}

/// Why the CPU load of a run is not known.
const NO_CPU_TIME: &str = "the runs did not record the CPU time of the captures";

/// A cell. Errors are absolute values; times are means of runs in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CellFindings {
    pub(super) question: Question,
    /// Bytes with check sequence.
    pub(super) frame: u16,
    /// In thousandths of 100 Mbit/s.
    pub(super) load: u32,
    pub(super) tasks: u32,
    pub(super) seconds: f64,
    /// Runs with known truth.
    pub(super) runs: u64,
    /// Packets that were sent, all runs together.
    pub(super) sent: u64,
    /// Packets truly lost.
    pub(super) truly_lost: u64,
    /// Packets reported as lost.
    pub(super) lost: u64,
    /// Packets lost by the captures themselves.
    pub(super) own_loss: u64,
    /// True delays: min, mean and max.
    pub(super) truth_ns: [f64; 3],
    /// Errors of the min, mean and max delay of each run.
    pub(super) errors_ns: Vec<[f64; 3]>,
    /// Error of the min delay of a run.
    pub(super) min_error_ns: Option<Estimate>,
    /// Error of the mean delay of a run.
    pub(super) mean_error_ns: Option<Estimate>,
    /// Error of the max.
    pub(super) max_error_ns: Option<Estimate>,
    /// Median of the absolute error of a packet's delay.
    pub(super) packet_error_ns: f64,
    /// CPU time of the captures at A and B, divided by the time that they ran, in percent of a core. None with the reason in
    /// `load_reason`.
    pub(super) load_a_percent: Option<Estimate>,
    pub(super) load_b_percent: Option<Estimate>,
}

impl PassiveDelayResult {
    /// Computes the results of the runs.
    pub(super) fn of(runs: &AllRuns, size: PassiveDelayScale) -> Self {
        let cells = Question::ALL.into_iter().zip(runs).flat_map(|(question, runs)| {
            let cells = (0..).zip(runs.design.cells());
            cells.map(move |(index, cell)| {
                of_cell(question, Measurements::setting(question, size, &cell), runs, index)
            })
        });
        let [_, frames, _] = runs;
        let mean_error = |run: &[Measured]| Some(known(run).next()?.errors_ns()[1]);
        let responses = frames.responses(mean_error);
        let whole = responses.iter().flatten().all(|response| response.is_finite());
        let all = runs.iter().flat_map(|runs| &runs.runs).flat_map(|(_, samples)| samples);
        let cells: Vec<_> = cells.collect();
        let has_load =
            |it: &CellFindings| it.load_a_percent.is_some() && it.load_b_percent.is_some();
        Self {
            load_reason: (!cells.iter().all(has_load)).then_some(NO_CPU_TIME),
            cells,
            effects_on_mean_error: if whole {
                effects(&frames.design, &responses)
            } else {
                Vec::new()
            },
            unknown: all.filter_map(|run| run.unknown.clone()).collect(),
        }
    }
}

/// Samples with known truth.
pub(super) fn known(samples: &[Measured]) -> impl Iterator<Item = &Measured> {
    samples
        .iter()
        .filter(|run| run.unknown.is_none() && run.errors_ns().iter().all(|e| e.is_finite()))
}

fn of_cell(
    question: Question,
    setting: Setting,
    runs: &Runs<Measured>,
    index: usize,
) -> CellFindings {
    let runs: Vec<&Measured> = runs.of_cell(index).flat_map(known).collect();
    let total = |of: fn(&Measured) -> u64| runs.iter().map(|run| of(run)).sum();
    let mean = |of: fn(&Measured) -> f64| {
        mean(&runs.iter().map(|run| of(run)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let error = |which: usize| {
        Estimate::of(&runs.iter().map(|run| run.errors_ns()[which].abs()).collect::<Vec<_>>())
    };
    let load = |which: usize| {
        Estimate::of(&runs.iter().filter_map(|run| run.loads_percent()[which]).collect::<Vec<_>>())
    };
    CellFindings {
        question,
        frame: setting.frame,
        load: setting.load,
        tasks: setting.tasks,
        seconds: approximate(setting.lasting.as_nanos()) / 1e9,
        runs: length(&runs),
        sent: total(|run| run.sent),
        truly_lost: total(Measured::truly_lost),
        lost: total(|run| run.lost),
        own_loss: total(|run| run.own_loss_a + run.own_loss_b),
        truth_ns: [
            mean(|run| run.true_min_ns),
            mean(|run| run.true_mean_ns),
            mean(|run| run.true_max_ns),
        ],
        errors_ns: runs.iter().map(|run| run.errors_ns().map(f64::abs)).collect(),
        min_error_ns: error(0),
        mean_error_ns: error(1),
        max_error_ns: error(2),
        packet_error_ns: mean(|run| run.packet_error_ns),
        load_a_percent: load(0),
        load_b_percent: load(1),
    }
}
