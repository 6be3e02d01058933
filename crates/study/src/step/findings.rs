//! What is found in the raw results.

use serde::Serialize;

use super::cells::{is_raised, of};
use super::detection::{Difference, Found};
use super::paper::{HARDWARE_ERROR_NS, SOFTWARE_INTERVAL_NS, STEP_NS};
use crate::experiment::{Estimate, Runs};
use crate::replicas::Block;

/// What came of it, in numbers.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Findings {
    /// Packets of a run.
    pub(super) packets: u32,
    /// Each technique.
    pub(super) techniques: Vec<OfTechnique>,
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

/// A technique.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfTechnique {
    /// How packets were received and stamped.
    pub(super) technique: String,
    /// The smallest step that is found 99 times in 100 in the packets of a run, in nanoseconds.
    pub(super) smallest_ns: Option<Estimate>,
    /// The same in a hundredth of the packets, if they vary alike.
    pub(super) smallest_in_a_hundredth_ns: Option<f64>,
    /// How often steps of known sizes were found that were put into the same data.
    pub(super) checks: Vec<Check>,
    /// The steps that the sender made.
    pub(super) steps: Vec<Step>,
    /// Replicas that the captures lost, that the interfaces dropped, and that nobody counted.
    pub(super) lost: [u64; 3],
}

/// How often a step was found that was put into the data.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Check {
    /// What it is to the smallest one: 1 should be found 99 times in 100, 0 once in 200.
    pub(super) of_smallest: f64,
    /// How often it was.
    pub(super) found: Found,
}

/// A step that the sender made.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Step {
    /// By how much it raised the delay, in nanoseconds.
    pub(super) true_ns: u32,
    /// By how much that was measured.
    pub(super) measured_ns: Option<Estimate>,
    /// In how many runs it was found with 99 % confidence.
    pub(super) found: Found,
}

/// The sizes of the steps that are put into the data, in parts of the smallest one.
const CHECKED: [f64; 4] = [0.0, 0.5, 1.0, 2.0];

impl Findings {
    /// Computes what the runs tell, of so many packets each.
    pub(super) fn of(runs: &Runs<Block>, packets: u32, missing: Option<String>) -> Self {
        let names = runs.design.factors.first().map(|factor| factor.levels.clone());
        let names = names.unwrap_or_default();
        let techniques = names.into_iter().map(|name| Data { runs, packets }.of_technique(name));
        Self {
            packets,
            techniques: techniques.collect(),
            missing,
            published: Published {
                step_ns: STEP_NS,
                software_interval_ns: SOFTWARE_INTERVAL_NS,
                hardware_error_ns: HARDWARE_ERROR_NS,
            },
        }
    }
}

/// The runs, each of so many packets.
#[derive(Clone, Copy)]
pub(super) struct Data<'a> {
    pub(super) runs: &'a Runs<Block>,
    pub(super) packets: u32,
}

impl<'a> Data<'a> {
    fn of_technique(self, technique: String) -> OfTechnique {
        let steps = self.steps(&technique);
        let runs: Vec<_> = steps.iter().flat_map(|(_, runs)| runs.iter().copied()).collect();
        let smallest: Vec<_> = runs.iter().filter_map(|run| self.smallest(run)).collect();
        let smallest_ns = Estimate::of(&smallest);
        let check = |of_smallest: f64| {
            let found = runs.iter().filter_map(|run| {
                let step = of_smallest * self.smallest(run)?;
                Some(Found::everywhere(&flat(run), step))
            });
            Check { of_smallest, found: found.fold(Found::default(), Found::with) }
        };
        let lost = |of: fn(&Block) -> u64| runs.iter().filter_map(|run| run.first()).map(of).sum();
        OfTechnique {
            // The error of a mean goes by the root of the count.
            smallest_in_a_hundredth_ns: smallest_ns.map(|smallest| 10.0 * smallest.mean),
            smallest_ns,
            checks: CHECKED.map(check).into(),
            steps: steps.iter().map(|(step, runs)| self.step(*step, runs)).collect(),
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

    /// All runs of a technique.
    pub(super) fn runs_of(self, technique: &str) -> impl Iterator<Item = &'a [Block]> {
        self.steps(technique).into_iter().flat_map(|(_, runs)| runs)
    }

    /// The smallest step in nanoseconds that is found in the packets of a run: by the errors of the taps
    /// alone, as if the device were as steady as a cable.
    pub(super) fn smallest(self, run: &[Block]) -> Option<f64> {
        Some(self.difference(run, |block| block.error_median_ns)?.smallest())
            .filter(|smallest| smallest.is_finite())
    }

    fn step(self, step: u32, runs: &[&[Block]]) -> Step {
        // What the taps measured, and nothing that only the sender knows.
        let measured = |run: &&[Block]| self.difference(run, |block| block.delay_median_ns);
        let all: Vec<_> = runs.iter().filter_map(measured).collect();
        let found = all.iter().filter(|difference| difference.is_found()).count();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Step {
            true_ns: step,
            measured_ns: Estimate::of(&all.iter().map(|it| it.mean).collect::<Vec<_>>()),
            found: Found { found: count(found), of: count(all.len()) },
        }
    }

    /// How much larger something of a block is within the step than around it.
    fn difference(self, run: &[Block], of: fn(&Block) -> Option<f64>) -> Option<Difference> {
        let packets = u64::from(self.packets);
        let (within, around): (Vec<_>, Vec<_>) =
            run.iter().partition(|block| is_raised(block.first, packets));
        let [around, within] =
            [around, within].map(|blocks| blocks.into_iter().filter_map(of).collect::<Vec<_>>());
        Difference::of(&around, &within)
    }
}

/// The errors of a run, which no step of the device is in.
fn flat(run: &[Block]) -> Vec<f64> {
    run.iter().filter_map(|block| block.error_median_ns).collect()
}
