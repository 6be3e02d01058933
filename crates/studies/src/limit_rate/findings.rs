//! Results computed from the trials.

use std::iter;

use serde::Serialize;

use super::cost::{self, CostModel, Term};
use super::links::{BitRate, RateWithoutLoss};
use super::model::{Area, BIG_PERCENT, Model, area};
use super::paper::TOLERATED_PERCENT;
use super::saturation::{Saturation, cpu_ns_at_limit, saturation};
use super::setting::Level;
use super::sweeps::{LimitRateScale, Sweep};
use super::trials::Trial;
use crate::experiment::{Cell, Estimate, Runs};
use wirestamp_report::format::real;

/// The trials of all series, and the searches.
pub(super) struct LimitRateRuns {
    pub(super) size: LimitRateScale,
    pub(super) series: Vec<(Sweep, Runs<Trial>)>,
    pub(super) searches: Runs<Trial>,
    /// Why the memory of the probe cannot be limited here; none if it can.
    pub(super) no_limit: Option<String>,
}

/// Results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LimitRateResult {
    /// Max loss at which a rate counts as lossless.
    pub(super) tolerated_percent: f64,
    /// Max loss that counts as sporadic.
    pub(super) sporadic_percent: f64,
    /// The saturation point for each part of the core and each number of tasks.
    pub(super) saturation: Vec<SaturationPoint>,
    /// Highest rate measured without loss, for each frame size and number of tasks of the series on the whole core.
    pub(super) without_loss: Vec<RateWithoutLoss>,
    /// The model, for each part of the core.
    pub(super) models: Vec<ModelOfPart>,
    /// CPU time of a packet by tasks, frame size and rate, on the whole core. None with the reason in `cost_model_reason`.
    pub(super) cost_model: Option<CostModel>,
    pub(super) cost_model_reason: Option<&'static str>,
    /// Why cycles are unknown for `without_cycles`; none if they are known everywhere.
    pub(super) cycles_reason: Option<&'static str>,
    /// The series whose cycles are unknown, by name, and `saturation` for the searches.
    pub(super) without_cycles: Vec<&'static str>,
    /// The series, in the report's order.
    pub(super) series: Vec<SeriesResult>,
}

/// Why the cycles of a packet are unknown.
pub(super) const NO_COUNTER_FREQUENCY: &str =
    "the version that measured did not record the frequency of the processor's counter";

/// Where the probe is saturated. Rates are in frames of 84 bytes a second.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SaturationPoint {
    pub(super) part: String,
    pub(super) part_in_words: String,
    pub(super) tasks: String,
    /// Mean of all searches that found the point; if none did, the max rate of the sender.
    pub(super) rate: Option<Estimate>,
    /// CPU time of the probe for a frame at that rate.
    pub(super) cpu_ns_per_packet: Option<Estimate>,
    /// The same in cycles of the processor's counter.
    pub(super) cycles_per_packet: Option<Estimate>,
    /// The rate in Mbit/s with each frame size of Figure 4-1; empty without a rate.
    pub(super) bit_rates: Vec<BitRate>,
    /// Searches that found it, and searches for which the sender was too slow.
    pub(super) reached: u64,
    pub(super) not_reached: u64,
}

/// The model with a part of the core.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ModelOfPart {
    pub(super) part: String,
    pub(super) part_in_words: String,
    pub(super) model: Option<Model>,
}

/// A series.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SeriesResult {
    pub(super) name: &'static str,
    pub(super) factors: [&'static str; 2],
    pub(super) cells: Vec<CellResult>,
}

/// All trials of a line at a point.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CellResult {
    pub(super) line: String,
    pub(super) point: String,
    /// Line and point.
    pub(super) in_words: [String; 2],
    /// Where it lies on the abscissa.
    pub(super) at: f64,
    /// Frames a second that were sent.
    pub(super) rate: Option<Estimate>,
    pub(super) loss_percent: Option<Estimate>,
    pub(super) load_percent: Option<Estimate>,
    /// What a captured frame costs the probe: CPU time, and the same in cycles of the processor's counter.
    pub(super) cpu_ns_per_packet: Option<Estimate>,
    pub(super) cycles_per_packet: Option<Estimate>,
    /// The area of the model that the mean loss lies in.
    pub(super) area: Option<Area>,
    /// Frames of all trials.
    pub(super) sent: u64,
    pub(super) interface_dropped: u64,
    pub(super) kernel_dropped: u64,
    pub(super) captured: u64,
    pub(super) unaccounted: i64,
    /// Trials in which the sender was slower than the requested rate.
    pub(super) short_of_the_rate: u64,
}

impl LimitRateResult {
    /// Computes the results of the trials.
    pub(super) fn of(measured: &LimitRateRuns) -> Self {
        let LimitRateRuns { size, series, searches, .. } = measured;
        let parts = size.parts();
        let terms = [Term::Base, Term::Task, Term::Byte, Term::Idle];
        let cost_model = CostModel::fit(&cost::costs(size.base(), series), &terms);
        let modelled = |(line, &part): (usize, &u8)| ModelOfPart {
            part: Level::Part(part).name(),
            part_in_words: Level::Part(part).words(),
            model: measured.of("cpu").and_then(|(sweep, runs)| {
                let trials: Vec<_> = sweep.of_line(runs, line).copied().collect();
                Model::fit(&trials, part)
            }),
        };
        let measurements = series.iter().map(|(sweep, runs)| (sweep.name, runs));
        let without_cycles: Vec<_> = iter::once(("saturation", searches))
            .chain(measurements)
            .filter(|(_, runs)| runs.cycles_per_ns().is_none())
            .map(|(name, _)| name)
            .collect();
        Self {
            tolerated_percent: TOLERATED_PERCENT,
            sporadic_percent: BIG_PERCENT,
            cycles_reason: (!without_cycles.is_empty()).then_some(NO_COUNTER_FREQUENCY),
            without_cycles,
            saturation: saturated(searches, *size),
            without_loss: RateWithoutLoss::of(series),
            models: parts.iter().enumerate().map(modelled).collect(),
            cost_model_reason: cost_model.as_ref().err().copied(),
            cost_model: cost_model.ok(),
            series: series.iter().map(|(sweep, runs)| sweep.found(runs)).collect(),
        }
    }
}

impl LimitRateRuns {
    /// A series by its name.
    pub(super) fn of(&self, name: &str) -> Option<&(Sweep, Runs<Trial>)> {
        self.series.iter().find(|(sweep, _)| sweep.name == name)
    }

    /// Whether a series or the searches were interrupted.
    pub(super) fn interrupted(&self) -> bool {
        self.searches.interrupted || self.series.iter().any(|(_, runs)| runs.interrupted)
    }
}

impl Sweep {
    /// All trials of a line.
    fn of_line<'a>(&self, runs: &'a Runs<Trial>, line: usize) -> impl Iterator<Item = &'a Trial> {
        let points = self.points.len();
        let cells = line * points..(line + 1) * points;
        cells.flat_map(|cell| runs.of_cell(cell)).flatten()
    }

    fn found(&self, runs: &Runs<Trial>) -> SeriesResult {
        let levels =
            self.lines.iter().flat_map(|line| self.points.iter().map(move |at| (line, at)));
        let cell = |(index, (line, point)): (usize, (&Level, &Level))| {
            let trials: Vec<_> = runs.of_cell(index).flatten().copied().collect();
            of_cell(*line, *point, &trials, runs.cycles_per_ns())
        };
        let cells = levels.enumerate().map(cell).collect();
        SeriesResult { name: self.name, factors: self.factors, cells }
    }
}

fn of_cell(line: Level, point: Level, trials: &[Trial], cycles_per_ns: Option<f64>) -> CellResult {
    let estimate = |of: fn(&Trial) -> f64| {
        let values = trials.iter().map(of).filter(|value| value.is_finite());
        Estimate::of(&values.collect::<Vec<_>>())
    };
    let sum = |of: fn(&Trial) -> u64| trials.iter().map(of).sum();
    let (rate, loss_percent) = (estimate(Trial::rate), estimate(Trial::loss_percent));
    let cpu_ns_per_packet = estimate(Trial::cpu_ns_a_packet);
    let at = match (point, rate) {
        (Level::Rate(_), Some(rate)) => rate.mean,
        _ => point.number(),
    };
    CellResult {
        line: line.name(),
        point: point.name(),
        in_words: [line, point].map(Level::words),
        at,
        rate,
        loss_percent,
        load_percent: estimate(Trial::load_percent),
        cpu_ns_per_packet,
        cycles_per_packet: cpu_ns_per_packet.zip(cycles_per_ns).map(|(ns, each)| ns.times(each)),
        area: loss_percent.map(|loss| area(loss.mean)),
        sent: sum(|trial| trial.sent),
        interface_dropped: sum(|trial| trial.interface_dropped),
        kernel_dropped: sum(|trial| trial.kernel_dropped),
        captured: sum(|trial| trial.captured),
        unaccounted: trials.iter().map(Trial::unaccounted).sum(),
        short_of_the_rate: sum(|trial| u64::from(trial.is_short_of_the_rate())),
    }
}

/// The saturation points, in the order of the searches: the whole core with one task is first.
pub(super) fn saturated(searches: &Runs<Trial>, size: LimitRateScale) -> Vec<SaturationPoint> {
    let cell = |(index, cell): (usize, Cell)| {
        let part_in_words = Level::Part(size.of_search(&cell).parts).words();
        let [part, tasks] = [0, 1].map(|factor| {
            let levels = searches.design.levels(&cell);
            levels.get(factor).map_or_else(String::new, |level| (*level).to_owned())
        });
        let found: Vec<_> = searches.of_cell(index).filter_map(saturation).collect();
        let is_reached = |found: &&Saturation| matches!(found, Saturation::Reached(_));
        let reached: Vec<_> = found.iter().filter(is_reached).map(|it| it.at_least()).collect();
        let all: Vec<_> = found.iter().map(|it| it.at_least()).collect();
        let count = |of: &[f64]| u64::try_from(of.len()).unwrap_or(u64::MAX);
        let cost = searches.of_cell(index).filter_map(cpu_ns_at_limit).collect::<Vec<_>>();
        let rate = Estimate::of(if reached.is_empty() { &all } else { &reached });
        SaturationPoint {
            part,
            part_in_words,
            tasks,
            rate,
            cpu_ns_per_packet: Estimate::of(&cost),
            cycles_per_packet: Estimate::of(&cost)
                .zip(searches.cycles_per_ns())
                .map(|(ns, each)| ns.times(each)),
            bit_rates: rate.map(BitRate::of_each_size).unwrap_or_default(),
            reached: count(&reached),
            not_reached: count(&all) - count(&reached),
        }
    };
    searches.design.cells().into_iter().enumerate().map(cell).collect()
}

/// Thousands of frames a second.
pub(super) fn thousands(rate: f64) -> f64 {
    rate / real(1000)
}
