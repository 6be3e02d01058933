//! Results computed from the raw data.

use serde::Serialize;

use super::cells::{is_raised, of};
use super::detection::{Chance, DetectionCount, difference};
use super::paper::{HARDWARE_ERROR_NS, SOFTWARE_INTERVAL_NS, STEP_NS};
use crate::experiment::{Estimate, Runs, mean};
use crate::replicas::Block;
use wirestamp_report::format::real;

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StepResult {
    /// Packets of a run.
    pub(super) packets: u32,
    /// Each technique.
    pub(super) techniques: Vec<OfTechnique>,
    /// What the thresholds reach in other runs; none without runs.
    pub(super) reached: Option<Reached>,
    /// Techniques that this machine cannot do.
    pub(super) missing: Option<String>,
    /// The paper's numbers, in nanoseconds.
    pub(super) published: Published,
}

/// The paper's numbers, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Published {
    step_ns: u32,
    software_interval_ns: f64,
    hardware_error_ns: f64,
}

/// Shares of detections in runs that did not give the threshold: min and max of the techniques, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Reached {
    /// Detected steps of the smallest size.
    pub(super) detected: [f64; 2],
    /// Detections without a step.
    pub(super) false_alarms: [f64; 2],
}

/// A technique.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfTechnique {
    /// How packets were received and stamped.
    pub(super) technique: String,
    /// The standard deviation of the error of a packet's delay, in nanoseconds: the mean over the blocks.
    pub(super) error_deviation_ns: Option<f64>,
    /// The same for the blocks of each repetition.
    #[serde(skip)]
    pub(super) error_deviations_ns: Vec<f64>,
    /// The smallest step that is found 99 times in 100 in the packets of a run, in nanoseconds.
    pub(super) smallest_ns: Option<f64>,
    /// The same in a tenth of the packets.
    pub(super) smallest_in_a_tenth_ns: Option<f64>,
    /// Detection rates of steps of known sizes that were added to the same data.
    pub(super) checks: Vec<Check>,
    /// The steps that the sender made.
    pub(super) steps: Vec<Step>,
    /// Replicas lost by the captures, dropped by the interfaces, and in no counter.
    pub(super) lost: [u64; 3],
}

/// Detection rate of a step that was added to the data.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Check {
    /// Ratio to the smallest step: 1 should be detected 99 times in 100, 0 once.
    pub(super) of_smallest: f64,
    /// Number of tests and detections.
    pub(super) found: DetectionCount,
}

/// A step that the sender made.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Step {
    /// By how much it raised the delay, in nanoseconds.
    pub(super) true_ns: u32,
    /// By how much that was measured.
    pub(super) measured_ns: Option<Estimate>,
    /// Detection threshold: one in 100 random differences is larger.
    pub(super) chance_ns: Option<Estimate>,
    /// Threshold minus measured step, for each run.
    #[serde(skip)]
    pub(super) masked_ns: Vec<f64>,
    /// In how many runs it was found.
    pub(super) found: DetectionCount,
}

/// The sizes of the steps that are added to the data, relative to the smallest detectable one.
const CHECKED: [f64; 4] = [0.0, 0.5, 1.0, 2.0];
/// The places of no step and of the smallest one in [`CHECKED`].
const NO_STEP: usize = 0;
const SMALLEST: usize = 2;

impl StepResult {
    /// Computes the result of runs of `packets` packets each.
    pub(super) fn of(runs: &Runs<Block>, packets: u32, missing: Option<String>) -> Self {
        let names = runs.design.factors.first().map(|factor| factor.levels.clone());
        let names = names.unwrap_or_default();
        let techniques = names.into_iter().map(|name| Data { runs, packets }.of_technique(name));
        let techniques: Vec<_> = techniques.collect();
        Self {
            packets,
            reached: Reached::of(&techniques),
            techniques,
            missing,
            published: Published {
                step_ns: STEP_NS,
                software_interval_ns: SOFTWARE_INTERVAL_NS,
                hardware_error_ns: HARDWARE_ERROR_NS,
            },
        }
    }
}

impl Reached {
    fn of(techniques: &[OfTechnique]) -> Option<Self> {
        let ends = |place: usize| {
            let found = techniques.iter().filter_map(|it| Some(it.checks.get(place)?.found));
            let shares = found.filter(|it| it.of > 0).map(|it| real(it.found) / real(it.of));
            let shares: Vec<f64> = shares.collect();
            let min = shares.iter().copied().reduce(f64::min)?;
            Some([min, shares.into_iter().reduce(f64::max)?])
        };
        Some(Self { detected: ends(SMALLEST)?, false_alarms: ends(NO_STEP)? })
    }
}

/// The runs and the number of packets of each.
#[derive(Clone, Copy)]
pub(super) struct Data<'a> {
    pub(super) runs: &'a Runs<Block>,
    pub(super) packets: u32,
}

impl<'a> Data<'a> {
    fn of_technique(self, technique: String) -> OfTechnique {
        let steps = self.steps(&technique);
        let runs: Vec<_> = steps
            .iter()
            .flat_map(|(step, runs)| runs.iter().map(|run| self.level(run, *step)))
            .collect();
        let smallest =
            |parts: usize| Chance::of(runs.iter().flat_map(|run| parts_of(run, parts))).smallest();
        let check = |of_smallest: f64| {
            let found = (0..runs.len()).filter_map(|index| {
                let others = others(&runs, index);
                let step = of_smallest * others.smallest()?;
                Some(Chance::of([runs[index].as_slice()]).found(step, others.critical()?))
            });
            Check {
                of_smallest,
                found: found.fold(DetectionCount::default(), DetectionCount::with),
            }
        };
        let all = || steps.iter().flat_map(|(_, runs)| runs.iter().copied());
        let lost = |of: fn(&Block) -> u64| all().filter_map(<[Block]>::first).map(of).sum();
        let blocks = || all().flatten();
        let deviations: Vec<_> = blocks().filter_map(|block| block.error_deviation_ns).collect();
        let repetitions = steps.iter().map(|(_, runs)| runs.len()).max().unwrap_or(0);
        let of_repetition = |repetition: usize| {
            let runs = steps.iter().filter_map(|(_, runs)| runs.get(repetition).copied());
            let deviations = runs.flatten().filter_map(|block| block.error_deviation_ns);
            mean(&deviations.collect::<Vec<_>>())
        };
        OfTechnique {
            error_deviation_ns: mean(&deviations),
            error_deviations_ns: (0..repetitions).filter_map(of_repetition).collect(),
            smallest_ns: smallest(1),
            smallest_in_a_tenth_ns: smallest(10),
            checks: CHECKED.map(check).into(),
            steps: self.made(&steps, &runs),
            lost: [
                lost(|run| run.captures_lost),
                lost(|run| run.interfaces_dropped),
                lost(|run| run.unexplained),
            ],
            technique,
        }
    }

    /// The steps that were made with a technique, each with its runs.
    fn steps(self, technique: &str) -> Vec<(u32, Vec<&'a [Block]>)> {
        let design = &self.runs.design;
        let cells = design.cells().into_iter().enumerate();
        cells
            .filter_map(|(index, cell)| {
                let (name, step) = of(design, &cell)?;
                let runs = || self.runs.of_cell(index).collect();
                (name == technique).then(|| (step, runs()))
            })
            .collect()
    }

    /// The measured steps. `level` are all runs without their steps, in the same order: the threshold for a run
    /// is computed from the other runs.
    fn made(self, steps: &[(u32, Vec<&[Block]>)], level: &[Vec<f64>]) -> Vec<Step> {
        let mut before = 0;
        let step = |(true_ns, runs): &(u32, Vec<&[Block]>)| {
            let indices = before..before + runs.len();
            before = indices.end;
            let of_run = |(run, index): (&&[Block], usize)| {
                Some((self.measured(run)?, others(level, index).critical()?))
            };
            let (measured, chance): (Vec<_>, Vec<_>) =
                runs.iter().zip(indices).filter_map(of_run).unzip();
            let masked_ns: Vec<f64> =
                chance.iter().zip(&measured).map(|(chance, measured)| chance - measured).collect();
            let found = masked_ns.iter().filter(|masked| **masked < 0.0).count();
            let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            Step {
                true_ns: *true_ns,
                measured_ns: Estimate::of(&measured),
                chance_ns: Estimate::of(&chance),
                found: DetectionCount { found: count(found), of: count(masked_ns.len()) },
                masked_ns,
            }
        };
        steps.iter().map(step).collect()
    }

    /// How much larger the measured delay is within the step than around it.
    fn measured(self, run: &[Block]) -> Option<f64> {
        let packets = u64::from(self.packets);
        let (within, around): (Vec<_>, Vec<_>) =
            run.iter().partition(|block| is_raised(block.first, packets));
        let delays = |blocks: Vec<&Block>| -> Vec<f64> {
            blocks.into_iter().filter_map(|block| block.delay_median_ns).collect()
        };
        difference(&delays(around), &delays(within))
    }

    /// The measured delays of a run, less the step that was made in it.
    fn level(self, run: &[Block], step: u32) -> Vec<f64> {
        let packets = u64::from(self.packets);
        let without = |block: &Block| {
            let raised = if is_raised(block.first, packets) { f64::from(step) } else { 0.0 };
            Some(block.delay_median_ns? - raised)
        };
        run.iter().filter_map(without).collect()
    }
}

/// Distribution of chance in all runs but one; in that one if there is no other.
fn others(runs: &[Vec<f64>], but: usize) -> Chance {
    let is_other = |index: usize| index != but || runs.len() == 1;
    let others = runs.iter().enumerate().filter(|(index, _)| is_other(*index));
    Chance::of(others.map(|(_, run)| run.as_slice()))
}

/// A series split into `parts` of equal length; the rest is dropped.
fn parts_of(series: &[f64], parts: usize) -> impl Iterator<Item = &[f64]> {
    series.chunks_exact((series.len() / parts).max(1))
}
