//! CPU time of a packet as a sum of costs, fitted to trials by least squares.

use serde::Serialize;

use super::model::{Area, area};
use super::setting::Setting;
use super::sweeps::Sweep;
use super::trials::Trial;
use crate::experiment::{Estimate, Runs, Sign, mean};
use wirestamp_report::estimate::squares;
use wirestamp_report::format::length;

/// CPU time of a packet of a trial, and what it depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PacketCost {
    tasks: u8,
    /// Bytes of a frame, check sequence included.
    frame_bytes: u16,
    /// Time from one frame to the next.
    interval_ns: f64,
    cpu_ns: f64,
}

impl PacketCost {
    /// None if the trial lost packets.
    pub(super) fn of(tasks: u8, frame_bytes: u16, trial: &Trial) -> Option<Self> {
        let is_complete = trial.captured > 0 && area(trial.loss_percent()) == Area::NoLoss;
        is_complete.then(|| Self {
            tasks,
            frame_bytes,
            interval_ns: 1e9 / trial.rate(),
            cpu_ns: trial.cpu_ns_a_packet(),
        })
    }
}

/// A term of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// A packet with one task.
    Base,
    /// A task more than one.
    Task,
    /// A byte of the frame.
    Byte,
    /// Time from packet to packet: the load that does not depend on the rate.
    Idle,
}

impl Term {
    /// How often a packet has this cost.
    fn of(self, packet: &PacketCost) -> f64 {
        match self {
            Self::Base => 1.0,
            Self::Task => f64::from(packet.tasks) - 1.0,
            Self::Byte => f64::from(packet.frame_bytes),
            Self::Idle => packet.interval_ns,
        }
    }
}

/// CPU time of a packet = `base_ns` + `task_ns` × (tasks − 1) + `byte_ns` × bytes + idle load × time from packet to packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct CostModel {
    /// A packet with one task, without its bytes.
    pub(super) base_ns: Option<Estimate>,
    /// Each task more than one: the mean of the further tasks, which differ.
    pub(super) task_ns: Option<Estimate>,
    /// Each byte of the frame, check sequence included. None if the model has no such term.
    pub(super) byte_ns: Option<Estimate>,
    /// Why it has none.
    pub(super) byte_reason: Option<&'static str>,
    /// CPU load without packets, in percent of a core. None if the model has no such term: all trials have one rate.
    pub(super) idle_percent: Option<Estimate>,
    /// R²: the share of the variance of the trials that the model explains, 0 to 1.
    pub(super) explained: f64,
    /// Number of trials.
    pub(super) trials: u64,
    pub(super) residuals: Vec<Residual>,
}

/// What the model leaves of the trials with the same setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Residual {
    tasks: u8,
    frame_bytes: u16,
    /// Frames a second.
    rate: f64,
    /// CPU time of a packet: measured, by the model, and measured less model.
    cpu_ns: Option<Estimate>,
    model_ns: f64,
    pub(super) residual_ns: Option<Estimate>,
}

const TOO_FEW: &str = "there are fewer than two repetitions of trials without loss";
const NOT_SEPARABLE: &str =
    "the trials without loss do not vary the tasks, the frame size and the rate independently";
const NO_VARIANCE: &str = "the CPU time of a packet is the same in all trials";
const BYTE_IS_ZERO: &str = "the cost of a byte is not above 0 with 95 % confidence";
const ONE_SIZE: &str = "all trials have the same frame size";

impl CostModel {
    /// Fits the terms to trials by least squares: `cells` has the trials of each setting by repetition. The coefficients of each
    /// repetition are independent; their mean has an interval by Student's t. A cost of a byte that is not above 0 is left out.
    ///
    /// # Errors
    /// Why the trials do not support the model.
    pub(super) fn fit(cells: &[Vec<PacketCost>], terms: &[Term]) -> Result<Self, &'static str> {
        let repetitions = cells.iter().map(Vec::len).min().unwrap_or(0);
        if repetitions < 2 {
            return Err(TOO_FEW);
        }
        let of_repetition = |index: usize| {
            let points = cells.iter().map(|trials| {
                let packet = &trials[index];
                (terms.iter().map(|term| term.of(packet)).collect(), packet.cpu_ns)
            });
            least_squares(&points.collect::<Vec<_>>())
        };
        let each: Option<Vec<_>> = (0..repetitions).map(of_repetition).collect();
        let each = each.ok_or(NOT_SEPARABLE)?;
        let coefficient = |term: Term| {
            let at = terms.iter().position(|it| *it == term)?;
            Estimate::of(&each.iter().map(|it| it[at]).collect::<Vec<_>>())
        };
        let byte_ns = coefficient(Term::Byte);
        if byte_ns.is_some_and(|it| it.sign() != Sign::Above) {
            let others: Vec<_> = terms.iter().copied().filter(|it| *it != Term::Byte).collect();
            let others = Self::fit(cells, &others)?;
            return Ok(Self { byte_reason: Some(BYTE_IS_ZERO), ..others });
        }
        let by_model = |packet: &PacketCost| {
            let costs = terms.iter().filter_map(|term| Some((term, coefficient(*term)?)));
            costs.map(|(term, cost)| term.of(packet) * cost.mean).sum::<f64>()
        };
        let cells: Vec<_> = cells.iter().filter_map(|it| it.get(..repetitions)).collect();
        let measured: Vec<_> = cells.iter().copied().flatten().map(|it| it.cpu_ns).collect();
        let left = cells.iter().copied().flatten().map(|it| it.cpu_ns - by_model(it));
        let variance = mean(&measured).map_or(0.0, |mean| squares(&measured, mean));
        if variance <= 0.0 {
            return Err(NO_VARIANCE);
        }
        Ok(Self {
            base_ns: coefficient(Term::Base),
            task_ns: coefficient(Term::Task),
            byte_ns,
            byte_reason: byte_ns.is_none().then_some(ONE_SIZE),
            idle_percent: coefficient(Term::Idle).map(|it| it.times(100.0)),
            explained: 1.0 - squares(&left.collect::<Vec<_>>(), 0.0) / variance,
            trials: length(&measured),
            residuals: cells.iter().filter_map(|it| Residual::of(it, by_model)).collect(),
        })
    }
}

impl Residual {
    fn of(trials: &[PacketCost], by_model: impl Fn(&PacketCost) -> f64) -> Option<Self> {
        let PacketCost { tasks, frame_bytes, .. } = *trials.first()?;
        let all = |of: &dyn Fn(&PacketCost) -> f64| trials.iter().map(of).collect::<Vec<_>>();
        Some(Self {
            tasks,
            frame_bytes,
            rate: mean(&all(&|it| 1e9 / it.interval_ns))?,
            cpu_ns: Estimate::of(&all(&|it| it.cpu_ns)),
            model_ns: mean(&all(&by_model))?,
            residual_ns: Estimate::of(&all(&|it| it.cpu_ns - by_model(it))),
        })
    }
}

/// The trials that differ from `base` only in tasks, frame size and rate, each cell by repetition. Cells with loss are left out.
pub(super) fn costs(base: Setting, series: &[(Sweep, Runs<Trial>)]) -> Vec<Vec<PacketCost>> {
    let mut all = Vec::new();
    for (sweep, runs) in series {
        for (index, cell) in runs.design.cells().iter().enumerate() {
            let Some(setting) = sweep.of(cell) else { continue };
            let Setting { rate, frame_bytes, tasks, .. } = setting;
            if setting == (Setting { rate, frame_bytes, tasks, ..base }) {
                let trials = runs.of_cell(index).filter_map(|trials| trials.first());
                let costs = trials.map(|trial| PacketCost::of(tasks, frame_bytes, trial));
                all.extend(costs.collect::<Option<Vec<_>>>());
            }
        }
    }
    all
}

/// Below this pivot the terms, scaled to length 1, count as dependent.
const DEPENDENT: f64 = 1e-9;

/// Coefficients of the terms that fit the values best; none if the terms are dependent or there are fewer points than terms.
fn least_squares(points: &[(Vec<f64>, f64)]) -> Option<Vec<f64>> {
    let terms = points.first()?.0.len();
    let length_of = |term: usize| points.iter().map(|(it, _)| it[term].powi(2)).sum::<f64>().sqrt();
    let lengths: Vec<_> = (0..terms).map(length_of).collect();
    if points.len() < terms || lengths.iter().any(|it| *it <= 0.0) {
        return None;
    }
    // The normal equations, with the values as the last column.
    let row = |a: usize| {
        let product = |b: usize| {
            let of_point = |(it, value): &(Vec<f64>, f64)| {
                it[a] / lengths[a] * if b < terms { it[b] / lengths[b] } else { *value }
            };
            points.iter().map(of_point).sum::<f64>()
        };
        (0..=terms).map(product).collect::<Vec<_>>()
    };
    let mut rows: Vec<_> = (0..terms).map(row).collect();
    // The matrix is symmetric and positive definite: rows need no exchange.
    for pivot in 0..terms {
        let by = rows[pivot].clone();
        if by[pivot].is_nan() || by[pivot] < DEPENDENT {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != pivot) {
            let factor = row[pivot] / by[pivot];
            row.iter_mut().zip(&by).for_each(|(it, by)| *it -= factor * by);
        }
    }
    Some((0..terms).map(|term| rows[term][terms] / rows[term][term] / lengths[term]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Term; 4] = [Term::Base, Term::Task, Term::Byte, Term::Idle];

    /// Three repetitions that `cost` makes of tasks, bytes, interval in nanoseconds, and repetition.
    fn cells(cost: impl Fn(f64, f64, f64, f64) -> f64) -> Vec<Vec<PacketCost>> {
        let settings = [
            (1, 300, 5e3),
            (4, 300, 5e3),
            (1, 1500, 5e3),
            (4, 1500, 5e3),
            (1, 300, 2e4),
            (1, 84, 1e3),
        ];
        let cell = |(tasks, frame_bytes, interval_ns): (u8, u16, f64)| {
            let of_repetition = |repetition: f64| {
                let cpu_ns = cost(tasks.into(), frame_bytes.into(), interval_ns, repetition);
                PacketCost { tasks, frame_bytes, interval_ns, cpu_ns }
            };
            [0.0, 1.0, 2.0].map(of_repetition).to_vec()
        };
        settings.map(cell).to_vec()
    }

    #[test]
    fn costs_of_a_sum_are_found() {
        let cells = cells(|tasks, bytes, interval, repetition| {
            40.0 + repetition + 130.0 * (tasks - 1.0) + 0.02 * bytes + 0.001 * interval
        });
        let model = CostModel::fit(&cells, &ALL).unwrap();
        let found = [model.base_ns, model.task_ns, model.byte_ns, model.idle_percent];
        for (found, cost) in found.iter().zip([41.0, 130.0, 0.02, 0.1]) {
            assert!((found.unwrap().mean - cost).abs() < 1e-6, "{model:?}");
        }
        // Deviation 1, standard error 1/sqrt(3), t of 2 degrees of freedom.
        assert!((model.base_ns.unwrap().ci95.unwrap() - 2.484).abs() < 1e-3);
        assert!(model.explained > 0.999 && model.trials == 18);
        assert!(model.residuals.iter().all(|it| it.residual_ns.unwrap().mean.abs() < 1e-6));
    }

    #[test]
    fn cost_of_a_byte_within_the_noise_is_left_out() {
        let cells = cells(|tasks, bytes, interval, repetition| {
            40.0 + 130.0 * tasks + 0.001 * interval + (repetition - 1.0) * bytes / 10.0
        });
        let model = CostModel::fit(&cells, &ALL).unwrap();
        assert_eq!((model.byte_ns, model.byte_reason), (None, Some(BYTE_IS_ZERO)));
        assert!((model.task_ns.unwrap().mean - 130.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_no_sum_remains_as_residual() {
        // The fifth task costs three times as much as each before.
        let cell = |(tasks, cost): (u8, f64)| {
            let packet = PacketCost { tasks, frame_bytes: 84, interval_ns: 1e3, cpu_ns: cost };
            vec![packet, PacketCost { cpu_ns: cost + 1.0, ..packet }]
        };
        let cells = [(1, 80.0), (4, 310.0), (5, 540.0)].map(cell);
        let model = CostModel::fit(&cells, &ALL[..2]).unwrap();
        let signs = model.residuals.iter().map(|it| it.residual_ns.unwrap().sign());
        assert_eq!(signs.collect::<Vec<_>>(), [Sign::Above, Sign::Below, Sign::Above]);
        assert_eq!((model.byte_reason, model.idle_percent), (Some(ONE_SIZE), None));
        assert!(model.explained < 0.95);
    }

    #[test]
    fn trials_without_variation_have_no_model() {
        let cells = cells(|tasks, _, _, repetition| tasks + repetition);
        assert_eq!(CostModel::fit(&cells[..1], &ALL), Err(NOT_SEPARABLE));
        assert_eq!(CostModel::fit(&[], &ALL), Err(TOO_FEW));
        let once: Vec<_> = cells.iter().map(|it| it[..1].to_vec()).collect();
        assert_eq!(CostModel::fit(&once, &ALL), Err(TOO_FEW));
        let same = self::cells(|_, _, _, _| 5.0);
        assert_eq!(CostModel::fit(&same, &ALL), Err(NO_VARIANCE));
        // All terms but the first two are constant.
        let cells: Vec<_> = cells[..2].to_vec();
        assert_eq!(CostModel::fit(&cells, &ALL), Err(NOT_SEPARABLE));
    }
}
