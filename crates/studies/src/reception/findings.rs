//! Results computed from the raw data.

use std::ops::Range;

use serde::Serialize;

use super::cells::Conditions;
use super::line_rate::{self, Arrived, LineRateCell};
use super::trains::{self, TrainCell, TrainPacket};
use crate::experiment::{Effect, Estimate, Runs, effects, mean};
use crate::replicas::{Block, Moments};
use wirestamp_report::format::real;

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ReceptionResult {
    /// The techniques, in the order of the design.
    #[serde(skip)]
    pub(super) techniques: Vec<String>,
    /// Each combination of levels.
    pub(super) cells: Vec<CellFindings>,
    /// Effects of levels and pairs of levels on the three responses of a run.
    pub(super) effects: Vec<Effects>,
    /// The same on the natural logarithm of the standard deviation of the error: some techniques deviate much more than
    /// others, and would hide all other effects.
    pub(super) effects_on_log_deviation: Vec<Effect>,
    /// The geometric mean of that deviation, of all runs.
    pub(super) geometric_mean_deviation_ns: Option<f64>,
    /// Techniques that this machine cannot do.
    pub(super) missing: Option<String>,
    /// More runs under the conditions of Figure 2.
    pub(super) of_figure_2: Vec<CellFindings>,
    /// Reason if these were not measured.
    pub(super) of_figure_2_reason: Option<String>,
    /// Packets measured at the line rate.
    pub(super) line_rate: Vec<LineRateCell>,
    /// Reason if these were not measured.
    pub(super) line_rate_reason: Option<String>,
    /// Frames received by DPDK and by captures at the line rate.
    pub(super) dpdk: Vec<LineRateCell>,
    /// Reason if these were not measured.
    pub(super) dpdk_reason: Option<String>,
    /// Packet trains before and after a device.
    pub(super) trains: Vec<TrainCell>,
    /// Reason if these were not measured.
    pub(super) trains_reason: Option<String>,
}

/// Runs of the parts beside the cells, or why there are none.
pub(super) struct OtherParts {
    pub(super) line_rate: anyhow::Result<Runs<Arrived>>,
    pub(super) dpdk: anyhow::Result<Runs<Arrived>>,
    pub(super) trains: anyhow::Result<Runs<TrainPacket>>,
    pub(super) of_figure_2: anyhow::Result<Runs<Block>>,
}

/// A response, and the effects of the levels on it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Effects {
    /// The response.
    pub(super) on: &'static str,
    /// Its unit.
    pub(super) unit: Unit,
    /// The mean of all runs.
    pub(super) mean: Option<f64>,
    /// Whether it differs between runs.
    pub(super) varies: bool,
    /// None where a cell has no response in one of its runs.
    pub(super) of_levels: Vec<Effect>,
}

/// Unit of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Percent,
    Nanoseconds,
}

/// One combination of levels. All times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CellFindings {
    #[serde(flatten)]
    pub(super) conditions: Conditions,
    pub(super) runs: usize,
    /// Packets that were sent in all runs.
    pub(super) sent: u64,
    /// Packets a second that were sent.
    pub(super) packets_per_second: Option<Estimate>,
    /// The share of them that was measured, in percent.
    pub(super) measured_percent: Option<Estimate>,
    /// The mean delay that was measured.
    pub(super) delay_ns: Option<Estimate>,
    /// Its standard deviation in a run.
    pub(super) delay_deviation_ns: Option<Estimate>,
    /// Measured delay minus the sender's, mean.
    pub(super) error_ns: Option<Estimate>,
    /// Its standard deviation in a run: the measured deviation of a constant delay.
    pub(super) error_deviation_ns: Option<Estimate>,
    /// Half of the difference between max and min error of a run.
    pub(super) fluctuation_ns: Option<Estimate>,
    /// Half of the difference between the errors of a run that 99.9 % and 0.1 % of the packets do not exceed.
    pub(super) fluctuation_p999_ns: Option<Estimate>,
    /// Replicas that the captures lost, by their ledgers.
    pub(super) captures_lost: u64,
    /// Replicas that the interfaces dropped.
    pub(super) interfaces_dropped: u64,
    /// Replicas that were not seen, and that no counter includes.
    pub(super) unexplained: u64,
    /// Replicas that the kernel stamped late.
    pub(super) stamped_late: u64,
}

/// A figure of a run.
pub(super) type Response = fn(&[Block]) -> Option<f64>;

/// The three responses of the paper. The deviation is that of the error, which equals the delay's deviation
/// for a constant true delay.
const RESPONSES: [(&str, Unit, Response); 3] = [
    ("packets measured (%)", Unit::Percent, measured_percent),
    ("mean error", Unit::Nanoseconds, error),
    ("standard deviation of the error", Unit::Nanoseconds, error_deviation),
];

impl ReceptionResult {
    /// Computes the results of the runs.
    pub(super) fn of(
        runs: &Runs<Block>,
        OtherParts { line_rate, dpdk, trains, of_figure_2 }: &OtherParts,
        missing: Option<String>,
    ) -> Self {
        let of = |(on, unit, response): (&'static str, Unit, Response)| {
            let (of_levels, of_runs) = effects_on(runs, response);
            let differ = |pair: &[f64]| pair[0].total_cmp(&pair[1]).is_ne();
            let varies = of_runs.windows(2).any(differ);
            Effects { on, unit, mean: mean_of(&of_runs), varies, of_levels }
        };
        let (effects_on_log_deviation, logs) =
            effects_on(runs, |run| error_deviation(run).map(f64::ln));
        let techniques = runs.design.factors.first().map(|factor| factor.levels.clone());
        Self {
            techniques: techniques.unwrap_or_default(),
            cells: cells(runs),
            effects: RESPONSES.map(of).into(),
            effects_on_log_deviation,
            geometric_mean_deviation_ns: mean_of(&logs).map(f64::exp),
            missing,
            of_figure_2: of_figure_2.as_ref().map(cells).unwrap_or_default(),
            of_figure_2_reason: reason(of_figure_2),
            line_rate: line_rate.as_ref().map(line_rate::cells).unwrap_or_default(),
            line_rate_reason: reason(line_rate),
            dpdk: dpdk.as_ref().map(line_rate::cells).unwrap_or_default(),
            dpdk_reason: reason(dpdk),
            trains: trains.as_ref().map(trains::cells).unwrap_or_default(),
            trains_reason: reason(trains),
        }
    }

    /// The cell of a technique, a frame size and a speed, idle or not.
    pub(super) fn cell(
        &self,
        technique: &str,
        (frame_bytes, speed): (u16, &str),
        stressed: bool,
    ) -> Option<&CellFindings> {
        self.cells.iter().find(|cell| cell.conditions.is(technique, (frame_bytes, speed), stressed))
    }
}

/// Effects of the levels on a response, none if a run has no response; and the responses of all runs.
fn effects_on(
    runs: &Runs<Block>,
    response: impl Fn(&[Block]) -> Option<f64>,
) -> (Vec<Effect>, Vec<f64>) {
    let responses = runs.responses(response);
    let of_runs = responses.concat();
    let is_whole = of_runs.iter().all(|response| response.is_finite());
    let effects = if is_whole { effects(&runs.design, &responses) } else { Vec::new() };
    (effects, of_runs)
}

/// The mean; none if one of the values is none.
fn mean_of(values: &[f64]) -> Option<f64> {
    mean(values).filter(|mean| mean.is_finite())
}

/// Why a part was not measured.
fn reason<T>(part: &anyhow::Result<T>) -> Option<String> {
    part.as_ref().err().map(|error| format!("{error:#}"))
}

/// The share of the packets of a run that was measured, in percent.
pub(super) fn measured_percent(run: &[Block]) -> Option<f64> {
    let sum = |of: fn(&Block) -> u64| real(run.iter().map(of).sum());
    let sent = sum(|block| block.sent);
    (sent > 0.0).then(|| 100.0 * sum(|block| block.measured) / sent)
}

/// The mean of the errors of some blocks.
pub(super) fn error(run: &[Block]) -> Option<f64> {
    Some(errors(run)?.mean())
}

/// Min and max error of some blocks.
pub(super) fn range_of_errors(run: &[Block]) -> Option<Range<f64>> {
    let least = run.iter().filter_map(|block| block.error_least_ns).reduce(f64::min)?;
    let most = run.iter().filter_map(|block| block.error_most_ns).reduce(f64::max)?;
    Some(least..most)
}

/// The standard deviation of the errors of a run.
pub(super) fn error_deviation(run: &[Block]) -> Option<f64> {
    errors(run)?.deviation()
}

/// The median of the standard deviations of the errors of a run's blocks.
pub(super) fn median_deviation(run: &[Block]) -> Option<f64> {
    let mut of_blocks: Vec<_> = run.iter().filter_map(|block| block.error_deviation_ns).collect();
    of_blocks.sort_by(f64::total_cmp);
    of_blocks.get(of_blocks.len() / 2).copied()
}

fn errors(run: &[Block]) -> Option<Moments> {
    Moments::of(run, |block| (block.error_ns, block.error_deviation_ns))
}

fn delays(run: &[Block]) -> Option<Moments> {
    Moments::of(run, |block| (block.delay_ns, block.delay_deviation_ns))
}

fn fluctuation(run: &[Block]) -> Option<f64> {
    let errors = range_of_errors(run)?;
    Some((errors.end - errors.start) / 2.0)
}

/// Half of the range of the errors of 99.8 % of the packets.
pub(super) fn fluctuation_p999(run: &[Block]) -> Option<f64> {
    let block = run.first()?;
    Some((block.run_error_p999_ns? - block.run_error_p001_ns?) / 2.0)
}

/// Every cell of a design.
fn cells(runs: &Runs<Block>) -> Vec<CellFindings> {
    let cells = runs.design.cells();
    let of = |(index, cell)| Some(of_cell(runs, index, Conditions::of(&runs.design, cell)?));
    cells.iter().enumerate().filter_map(of).collect()
}

fn of_cell(runs: &Runs<Block>, index: usize, conditions: Conditions) -> CellFindings {
    let estimate =
        |of: Response| Estimate::of(&runs.of_cell(index).filter_map(of).collect::<Vec<_>>());
    // Each block repeats the values of its run.
    let sum = |of: fn(&Block) -> u64| -> u64 {
        runs.of_cell(index).filter_map(|run| run.first()).map(of).sum()
    };
    CellFindings {
        conditions,
        runs: runs.of_cell(index).count(),
        sent: runs.of_cell(index).flatten().map(|block| block.sent).sum(),
        packets_per_second: estimate(|run| {
            let sent = real(run.iter().map(|block| block.sent).sum());
            run.first().map(|block| sent / block.seconds).filter(|rate| rate.is_finite())
        }),
        measured_percent: estimate(measured_percent),
        delay_ns: estimate(|run| Some(delays(run)?.mean())),
        delay_deviation_ns: estimate(|run| delays(run)?.deviation()),
        error_ns: estimate(error),
        error_deviation_ns: estimate(error_deviation),
        fluctuation_ns: estimate(fluctuation),
        fluctuation_p999_ns: estimate(fluctuation_p999),
        captures_lost: sum(|run| run.captures_lost),
        interfaces_dropped: sum(|run| run.interfaces_dropped),
        unexplained: sum(|run| run.unexplained),
        stamped_late: sum(|run| run.stamped_late),
    }
}
