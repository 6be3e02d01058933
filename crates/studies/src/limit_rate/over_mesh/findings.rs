//! Results computed from the trials, and their tables.

use serde::Serialize;

use super::trials::{AIM, SETUPS, Setup};
use crate::experiment::{Estimate, Runs};
use crate::limit_rate::cost::{CostModel, PacketCost, Term};
use crate::limit_rate::findings::NO_COUNTER_FREQUENCY;
use crate::limit_rate::paper::TOLERATED_PERCENT;
use crate::limit_rate::saturation::{Saturation, saturation};
use crate::limit_rate::sweeps::FRAME_BYTES;
use crate::limit_rate::trials::Trial;
use wirestamp_report::estimate::decimal;

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MeshLimitRateResult {
    /// Frames a second that are aimed at.
    aim: u64,
    /// Max loss at which a rate counts as lossless.
    tolerated_percent: f64,
    /// For each set-up.
    pub(super) levels: Vec<Level>,
    /// CPU time of a packet by tasks, at the target rate, where the kernel receives frames on the other core. None with the
    /// reason in `cost_model_reason`.
    pub(super) cost_model: Option<CostModel>,
    cost_model_reason: Option<&'static str>,
    /// Why cycles are unknown; none if they are known.
    cycles_reason: Option<&'static str>,
    /// Frames of all trials.
    sent: u64,
    interface_dropped: u64,
    probe_lost: u64,
    measured: u64,
    unaccounted: i64,
}

/// All runs of a set-up. Rates are in frames of 84 bytes a second.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Level {
    pub(super) tasks: &'static str,
    pub(super) in_words: &'static str,
    /// Max rate without loss of each search, or the max rate of the load.
    pub(super) rate: Option<Estimate>,
    /// Searches in which the probe lost packets above this rate, and searches in which the load was the limit.
    pub(super) limited_by_probe: usize,
    pub(super) limited_by_load: usize,
    /// Loss of the probe at the target rate, in percent.
    loss_percent: Option<Estimate>,
    /// CPU load of the probe at the target rate, in percent of its core.
    load_percent: Option<Estimate>,
    /// CPU time per packet at the target rate; none if the kernel also receives frames on that core and interrupts.
    pub(super) cpu_ns: Option<Estimate>,
    /// The same in cycles of the processor's counter.
    cycles: Option<Estimate>,
    /// CPU time per packet at full speed.
    cpu_ns_at_full_speed: Option<Estimate>,
    /// Ratio of `cpu_ns` with one task to this `cpu_ns`, run by run.
    pub(super) cpu_ratio: Option<Estimate>,
}

/// The set-up with one task and frames received on the other core: reference for the CPU time per packet.
pub(super) const ONE_BESIDE: usize = 3;
/// The same with four tasks and with five, of which passive delay is sampled.
pub(super) const FOUR_BESIDE: usize = 4;
pub(super) const FIVE_BESIDE: usize = 6;

/// The trial at the target rate, and the trials of the search.
pub(super) fn of_run(trials: &[Trial]) -> Option<(&Trial, &[Trial])> {
    trials.split_first()
}

/// CPU time per packet at the target rate.
pub(super) fn cpu_ns(trials: &[Trial]) -> Option<f64> {
    of_run(trials).map(|(aimed, _)| aimed.cpu_ns_a_packet()).filter(|it| it.is_finite())
}

/// Result of the search of a run.
pub(super) fn found(trials: &[Trial]) -> Option<Saturation> {
    of_run(trials).and_then(|(_, searched)| saturation(searched))
}

impl MeshLimitRateResult {
    /// Computes the results of the trials.
    pub(super) fn of(runs: &Runs<Trial>) -> Self {
        let trials = || runs.runs.iter().flat_map(|(_, trials)| trials);
        let sum = |of: fn(&Trial) -> u64| trials().map(of).sum();
        let levels = runs.design.cells().into_iter().enumerate();
        let cost_model = CostModel::fit(&costs(runs), &[Term::Base, Term::Task]);
        Self {
            aim: AIM,
            tolerated_percent: TOLERATED_PERCENT,
            levels: levels.map(|(index, _)| level(runs, index)).collect(),
            cost_model_reason: cost_model.as_ref().err().copied(),
            cost_model: cost_model.ok(),
            cycles_reason: runs.cycles_per_ns().is_none().then_some(NO_COUNTER_FREQUENCY),
            sent: sum(|trial| trial.sent),
            interface_dropped: sum(|trial| trial.interface_dropped),
            probe_lost: sum(|trial| trial.kernel_dropped),
            measured: sum(|trial| trial.captured),
            unaccounted: trials().map(Trial::unaccounted).sum(),
        }
    }
}

/// The trials at the target rate with the sampled tasks of the report, and with one more. Set-ups with loss are left out.
fn costs(runs: &Runs<Trial>) -> Vec<Vec<PacketCost>> {
    let cost = |index: usize, trials: &[Trial]| {
        PacketCost::of(SETUPS[index].tasks(), FRAME_BYTES, of_run(trials)?.0)
    };
    let of_setup = |index| runs.of_cell(index).map(|trials| cost(index, trials)).collect();
    [ONE_BESIDE, FOUR_BESIDE, FIVE_BESIDE].into_iter().filter_map(of_setup).collect()
}

impl Level {
    /// Its rate in thousands, which is a lower bound if not all searches found the probe's limit.
    pub(super) fn rate_in_words(&self) -> Option<String> {
        let rate = decimal(self.rate?.times(1e-3), 1);
        Some(if self.limited_by_load > 0 { format!("at least {rate}") } else { rate })
    }
}

fn level(runs: &Runs<Trial>, index: usize) -> Level {
    let estimate = |of: &dyn Fn(&[Trial]) -> Option<f64>| {
        let values = runs.of_cell(index).filter_map(of).filter(|it| it.is_finite());
        Estimate::of(&values.collect::<Vec<_>>())
    };
    let aimed = |of: fn(&Trial) -> f64| estimate(&|trials| of_run(trials).map(|it| of(it.0)));
    let searches: Vec<_> = runs.of_cell(index).filter_map(found).collect();
    let of_probe = searches.iter().filter(|it| matches!(it, Saturation::Reached(_))).count();
    let rates: Vec<_> = searches.iter().map(|it| it.at_least()).collect();
    let ratios = runs.of_cell(ONE_BESIDE).zip(runs.of_cell(index));
    let ratios = ratios.filter_map(|(one, several)| Some(cpu_ns(one)? / cpu_ns(several)?));
    let Setup { name, words, takes_frames, .. } = SETUPS[index % SETUPS.len()];
    let alone = |it: Option<Estimate>| it.filter(|_| !takes_frames);
    Level {
        tasks: name,
        in_words: words,
        rate: Estimate::of(&rates),
        limited_by_probe: of_probe,
        limited_by_load: rates.len() - of_probe,
        loss_percent: aimed(Trial::loss_percent),
        load_percent: aimed(Trial::load_percent),
        cpu_ns: alone(estimate(&cpu_ns)),
        cycles: alone(estimate(&cpu_ns)).zip(runs.cycles_per_ns()).map(|(ns, each)| ns.times(each)),
        cpu_ns_at_full_speed: alone(estimate(&|trials| Some(trials.get(1)?.cpu_ns_a_packet()))),
        cpu_ratio: alone(Estimate::of(&ratios.collect::<Vec<_>>())),
    }
}
