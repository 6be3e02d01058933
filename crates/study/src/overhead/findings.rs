//! What is found in the raw results.

use std::path::PathBuf;

use serde::Serialize;

use super::claims::{self, Claim};
use super::packets::{Packets, Size, Stamped};
use super::paper::{Method, PAPER, PUBLISHED, Published, Traffic};
use super::series;
use super::softirq::{self, Added, Program};
use crate::Circumstances;
use crate::experiment::{Effect, Estimate, Runs, deviation, effects, mean};
use crate::report::format::length;
use crate::timers::Cost;

/// The longest lag of the auto-correlations, in packets.
pub(super) const LAGS: usize = 20;

/// What came of it. Serialises as the document of `wirestamp study overhead --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// When, on what, and by what command the last runs were made.
    #[serde(flatten)]
    pub circumstances: Circumstances,
    /// In how many sittings the runs were made: more than one if it was resumed.
    pub sittings: usize,
    /// Whether it was stopped before all runs were done.
    pub interrupted: bool,
    /// What made the order of the runs.
    pub seed: u64,
    /// Repetitions that were done of every cell.
    pub repetitions: u32,
    /// The smallest usual step of the counter in nanoseconds, which overheads are known to.
    pub step_ns: f64,
    /// Each method with each pattern, in user space.
    pub cells: Vec<CellFindings>,
    /// What method and pattern do to the mean overhead of a run.
    pub effects_on_mean: Vec<Effect>,
    /// What they do to its standard deviation.
    pub effects_on_deviation: Vec<Effect>,
    /// What a stamp adds to a program in the softIRQ.
    pub softirq: Vec<Added>,
    /// Why nothing was measured there; none if it was.
    pub softirq_reason: Option<String>,
    /// What the paper finds, and whether it is so here.
    pub claims: Vec<Claim>,
    /// The paper that this is compared with.
    pub paper: &'static str,
    /// Its numbers.
    pub published: [Published; 4],
    /// The report, if one was wanted.
    pub report: Option<PathBuf>,
}

/// One method with one pattern. Everything but the auto-correlation is in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct CellFindings {
    /// How packets were stamped.
    pub method: Method,
    /// The traffic.
    pub pattern: Traffic,
    /// Packets that were sent and not received: the socket was full while the receiver waited for its
    /// core.
    pub missing: u64,
    /// The overheads of all packets that were received.
    pub overhead_ns: Option<Cost>,
    /// The mean overhead of a run.
    pub mean_ns: Option<Estimate>,
    /// The standard deviation of a run.
    pub deviation_ns: Option<Estimate>,
    /// The variance of all packets, in square nanoseconds.
    pub variance_ns2: Option<f64>,
    /// What an overhead tells of that of the packets after it: for the lags from 1, the mean of all
    /// runs.
    pub autocorrelation: Vec<f64>,
    /// The overheads themselves.
    #[serde(skip)]
    pub overheads: Vec<f64>,
}

impl Findings {
    /// Computes what the runs tell.
    pub(super) fn of(
        runs: &Runs<Stamped>,
        softirq: anyhow::Result<Runs<Program>>,
        size: Size,
        step_ns: f64,
    ) -> Self {
        let cells = (0..).zip(runs.design.cells());
        let cells = cells.map(|(index, cell)| of_cell(runs, index, Packets::of(&cell), size));
        let effects_on = |of: fn(&[f64]) -> Option<f64>| {
            effects(&runs.design, &runs.responses(|run| of(&overheads(run))))
        };
        let (softirq, softirq_reason) = match softirq {
            Ok(runs) => (softirq::added(&runs), None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        Self {
            circumstances: runs.sittings.last().cloned().unwrap_or_else(Circumstances::here),
            sittings: runs.sittings.len(),
            interrupted: runs.interrupted,
            seed: runs.seed,
            repetitions: runs.complete(),
            step_ns,
            claims: claims::claims(runs),
            cells: cells.collect(),
            effects_on_mean: effects_on(mean),
            effects_on_deviation: effects_on(deviation),
            softirq,
            softirq_reason,
            paper: PAPER,
            published: PUBLISHED,
            report: None,
        }
    }

    /// What was found of a method with a pattern.
    pub(super) fn cell(&self, method: Method, pattern: Traffic) -> Option<&CellFindings> {
        self.cells.iter().find(|cell| cell.method == method && cell.pattern == pattern)
    }
}

/// The overheads of a run.
pub(super) fn overheads(run: &[Stamped]) -> Vec<f64> {
    run.iter().map(Stamped::overhead_ns).collect()
}

fn of_cell(
    runs: &Runs<Stamped>,
    index: usize,
    (method, pattern): (Method, Traffic),
    size: Size,
) -> CellFindings {
    let of_runs: Vec<Vec<f64>> = runs.of_cell(index).map(overheads).collect();
    let estimate = |of: fn(&[f64]) -> Option<f64>| {
        Estimate::of(&of_runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
    };
    let overheads = of_runs.concat();
    let sent = length(&of_runs) * u64::from(size.packets_of(pattern));
    let correlations: Vec<_> =
        of_runs.iter().filter_map(|run| series::autocorrelation(run, LAGS)).collect();
    let at_lag = |lag: usize| mean(&correlations.iter().map(|run| run[lag]).collect::<Vec<_>>());
    CellFindings {
        method,
        pattern,
        missing: sent.saturating_sub(length(&overheads)),
        overhead_ns: series::cost(&overheads),
        mean_ns: estimate(mean),
        deviation_ns: estimate(deviation),
        variance_ns2: deviation(&overheads).map(|deviation| deviation.powi(2)),
        autocorrelation: (0..LAGS).filter_map(at_lag).collect(),
        overheads,
    }
}
