//! Results computed from the rounds.

use serde::Serialize;

use super::in_softirq::SoftirqResult;
use super::round::Round;
use super::rounds::{Condition, LossStudyScale};
use crate::experiment::{Effect, Estimate, Runs, effects};

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LossStudyResult {
    /// What is done with each packet in the softIRQ, and what is lost there.
    pub(super) in_softirq: Option<SoftirqResult>,
    /// Reason if that was not measured.
    pub(super) in_softirq_reason: Option<String>,
    /// The ways to capture, by their names.
    pub(super) methods: Vec<String>,
    /// Memory between the kernel and each capture, in MiB.
    pub(super) buffer_mib: u16,
    /// Every way under every condition.
    pub(super) cells: Vec<CellFindings>,
    /// Effects of ways to capture and conditions on the loss of a round.
    pub(super) effects_on_loss_percent: Vec<Effect>,
}

/// One way to capture under one condition. Packets are those of all rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CellFindings {
    pub(super) method: String,
    #[serde(flatten)]
    pub(super) condition: Condition,
    /// Packets per second that were sent.
    pub(super) packets_per_second: Option<Estimate>,
    /// The loss of a round.
    pub(super) loss_percent: Option<Estimate>,
    pub(super) sent: u64,
    pub(super) interface_dropped: u64,
    /// None if the capture does not report it.
    pub(super) kernel_dropped: Option<u64>,
    pub(super) captured: u64,
    /// Packets unaccounted for; `None` where the capture does not report drops.
    pub(super) unaccounted: Option<i64>,
}

impl LossStudyResult {
    /// Computes the results of the runs.
    pub(super) fn of(
        runs: &Runs<Round>,
        in_softirq: anyhow::Result<SoftirqResult>,
        size: LossStudyScale,
    ) -> Self {
        let methods = runs.design.factors.first().map_or(&[][..], |factor| &factor.levels);
        let cells = (0..).zip(runs.design.cells());
        let cells = cells.map(|(index, cell)| of_cell(runs, index, methods, size.condition(&cell)));
        let responses = runs.responses(loss_percent);
        let in_softirq_reason = in_softirq.as_ref().err().map(|error| format!("{error:#}"));
        Self {
            in_softirq: in_softirq.ok(),
            in_softirq_reason,
            methods: methods.to_vec(),
            buffer_mib: super::capture::BUFFER_MIB,
            cells: cells.collect(),
            effects_on_loss_percent: effects(&runs.design, &responses),
        }
    }
}

/// The loss of a run, which is one round.
pub(super) fn loss_percent(run: &[Round]) -> Option<f64> {
    run.first().map(Round::loss_percent)
}

fn of_cell(
    runs: &Runs<Round>,
    index: usize,
    methods: &[String],
    condition: Condition,
) -> CellFindings {
    let rounds: Vec<Round> = runs.of_cell(index).flatten().copied().collect();
    let estimate = |of: fn(&Round) -> f64| Estimate::of(&rounds.iter().map(of).collect::<Vec<_>>());
    let sum = |of: fn(&Round) -> u64| rounds.iter().map(of).sum();
    CellFindings {
        method: methods.get(condition.method).cloned().unwrap_or_default(),
        condition,
        packets_per_second: estimate(Round::packets_per_second),
        loss_percent: estimate(Round::loss_percent),
        sent: sum(|round| round.sent),
        interface_dropped: sum(|round| round.interface_dropped),
        kernel_dropped: rounds.iter().map(|round| round.kernel_dropped).sum(),
        captured: sum(|round| round.captured),
        unaccounted: rounds.iter().map(Round::unaccounted).sum(),
    }
}
