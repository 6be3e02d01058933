//! Results computed from the raw data.

use serde::{Deserialize, Serialize};

use super::causes::LongOverheads;
use super::in_softirq::{SoftirqStamped, Which, stamped};
use super::kernel_stamp::{Intervals, KernelStamps};
use super::packets::{OverheadScale, Packets, Stamped};
use super::paper::{Method, PUBLISHED, Published, Traffic};
use super::series;
use super::softirq::{self, Added, Program};
use crate::experiment::{Effect, Estimate, Runs, deviation, effects, mean};
use crate::timers::Cost;
use wirestamp_report::format::length;

/// The longest lag of the auto-correlations, in packets.
pub(super) const LAGS: usize = 20;

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OverheadResult {
    /// The smallest usual step of the counter in nanoseconds: the resolution of overheads.
    pub(super) step_ns: f64,
    /// Each method with each pattern, in user space.
    pub(super) cells: Vec<CellFindings>,
    /// The same in the softIRQ.
    pub(super) cells_in_softirq: Vec<CellFindings>,
    /// The same for a second stamp of each packet, whose code and data are in the caches.
    pub(super) cells_in_softirq_again: Vec<CellFindings>,
    /// Long overheads of both stamps, by cause.
    pub(super) long_overheads_in_softirq: Vec<LongOverheads>,
    /// Reason if these were not measured.
    pub(super) cells_in_softirq_reason: Option<String>,
    /// Effects of method and pattern on the mean overhead of a run.
    pub(super) effects_on_mean: Vec<Effect>,
    /// Their effects on its standard deviation.
    pub(super) effects_on_deviation: Vec<Effect>,
    /// Cost of a stamp in the softIRQ.
    pub(super) softirq: Vec<Added>,
    /// Repetitions of that.
    pub(super) softirq_repetitions: u32,
    /// Reason if nothing was measured there.
    pub(super) softirq_reason: Option<String>,
    /// The kernel's own stamp and the clocks of its events, in the softIRQ.
    pub(super) kernel_stamps: KernelStamps,
    /// Reason if these were not measured.
    pub(super) kernel_stamps_reason: Option<String>,
    /// The paper's numbers.
    pub(super) published: [Published; 4],
}

/// Runs of the experiments in the softIRQ, or why there are none.
pub(super) struct InSoftirq {
    pub(super) programs: anyhow::Result<Runs<Program>>,
    pub(super) packets: anyhow::Result<Runs<SoftirqStamped>>,
    pub(super) kernel_stamp: anyhow::Result<Runs<Intervals>>,
}

/// One method with one pattern. Everything but the auto-correlation is in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CellFindings {
    /// How packets were stamped.
    pub(super) method: Method,
    /// The traffic.
    pub(super) pattern: Traffic,
    /// Packets that were sent and not received: the socket was full while the receiver waited for its
    /// core.
    pub(super) missing: u64,
    /// The overheads of all packets that were received.
    pub(super) overhead_ns: Option<Cost>,
    /// The mean overhead of a run.
    pub(super) mean_ns: Option<Estimate>,
    /// The standard deviation of a run.
    pub(super) deviation_ns: Option<Estimate>,
    /// The standard deviation of a run without the longest thousandth.
    pub(super) deviation_of_999_ns: Option<Estimate>,
    /// The variance of all packets, in square nanoseconds.
    pub(super) variance_ns2: Option<f64>,
    /// Auto-correlation of the overheads for the lags from 1: the mean of all runs.
    pub(super) autocorrelation: Vec<f64>,
    /// Share of the overheads that have one of the two most frequent values, in steps of the counter.
    #[serde(default)]
    pub(super) share_of_two_values: Option<f64>,
    /// The overheads themselves.
    #[serde(skip)]
    pub(super) overheads: Vec<f64>,
}

impl OverheadResult {
    /// Computes the results of the runs.
    pub(super) fn of(
        runs: &Runs<Stamped>,
        in_softirq: InSoftirq,
        size: OverheadScale,
        step_ns: f64,
    ) -> Self {
        let InSoftirq { programs: softirq, packets: in_softirq, kernel_stamp } = in_softirq;
        let of_stamps = |which| {
            let runs = in_softirq.as_ref().map(|runs| stamped(runs, which));
            runs.map(|runs| cells(&runs, size, step_ns)).unwrap_or_default()
        };
        let effects_on = |of: fn(&[f64]) -> Option<f64>| {
            effects(&runs.design, &runs.responses(|run| of(&overheads(run))))
        };
        let (softirq, softirq_repetitions, softirq_reason) = match softirq {
            Ok(runs) => (softirq::added(&runs), runs.complete(), None),
            Err(error) => (Vec::new(), 0, Some(format!("{error:#}"))),
        };
        Self {
            step_ns,
            cells: cells(runs, size, step_ns),
            cells_in_softirq: of_stamps(Which::First),
            cells_in_softirq_again: of_stamps(Which::Second),
            long_overheads_in_softirq: in_softirq
                .as_ref()
                .map(LongOverheads::of_all)
                .unwrap_or_default(),
            cells_in_softirq_reason: in_softirq.as_ref().err().map(|error| format!("{error:#}")),
            effects_on_mean: effects_on(mean),
            effects_on_deviation: effects_on(deviation),
            softirq,
            softirq_repetitions,
            softirq_reason,
            kernel_stamps: kernel_stamp.as_ref().map(KernelStamps::of).unwrap_or_default(),
            kernel_stamps_reason: kernel_stamp.as_ref().err().map(|error| format!("{error:#}")),
            published: PUBLISHED,
        }
    }

    /// Result of a method with a pattern, in user space.
    pub(super) fn cell(&self, method: Method, pattern: Traffic) -> Option<&CellFindings> {
        self.cells.iter().find(|cell| cell.method == method && cell.pattern == pattern)
    }
}

/// Each method with each pattern.
fn cells(runs: &Runs<Stamped>, size: OverheadScale, step_ns: f64) -> Vec<CellFindings> {
    let cells = (0..).zip(runs.design.cells());
    let found = cells.map(|(index, cell)| of_cell(runs, index, Packets::of(&cell), size));
    let with_steps = |cell: CellFindings| CellFindings {
        share_of_two_values: series::share_of_two_values(&cell.overheads, step_ns),
        ..cell
    };
    found.map(with_steps).collect()
}

/// The overheads of a run.
pub(super) fn overheads(run: &[Stamped]) -> Vec<f64> {
    run.iter().map(Stamped::overhead_ns).collect()
}

fn of_cell(
    runs: &Runs<Stamped>,
    index: usize,
    (method, pattern): (Method, Traffic),
    size: OverheadScale,
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
        deviation_of_999_ns: estimate(series::deviation_of_999),
        variance_ns2: deviation(&overheads).map(|deviation| deviation.powi(2)),
        autocorrelation: (0..LAGS).filter_map(at_lag).collect(),
        share_of_two_values: None,
        overheads,
    }
}
