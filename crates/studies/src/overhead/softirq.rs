//! Cost of a stamp in the softIRQ: programs that take one, run by the kernel on a frame in memory.

use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use wirestamp_capture::Stop;
use wirestamp_capture::softirq_cost::{Cost, Kind, measure};

use crate::experiment::{Cell, Design, Estimate, Runs, Study};

/// Frames of a run. The kernel gives the mean of them, in whole nanoseconds.
const FRAMES: u32 = 200_000;

/// Approximate time of all programs for a frame.
const FRAME: Duration = Duration::from_nanos(250);

/// The mean cost of a program in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Program {
    /// The function that takes the stamp, or that there is none.
    pub(super) stamp: String,
    /// Nanoseconds a frame; none if the program cannot be run here.
    pub(super) frame_ns: Option<f64>,
    /// Why it cannot.
    pub(super) reason: Option<String>,
}

/// The study: one cell, which runs all programs in turn so that they are compared within a run.
pub(super) struct Programs {
    pub(super) repetitions: u32,
}

impl Study for Programs {
    type Sample = Program;

    fn design(&self) -> Design {
        Design {
            name: "overhead-softirq".to_owned(),
            factors: Vec::new(),
            repetitions: self.repetitions,
            constants: vec![("frames".to_owned(), FRAMES.to_string())],
        }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        FRAME * FRAMES
    }

    fn run(&mut self, _: &Cell, _: &Stop) -> anyhow::Result<Vec<Program>> {
        let costs = measure(1, FRAMES).context("cannot measure in the softIRQ")?;
        // Only XDP programs stamp in the driver, as the kernel of the paper does.
        Ok(costs.into_iter().filter(|cost| cost.kind == Kind::Xdp).map(program).collect())
    }
}

fn program(Cost { stamp, nanos, .. }: Cost) -> Program {
    let (frame_ns, reason) = match nanos {
        Ok(nanos) => (nanos.first().copied(), None),
        Err(obstacle) => (None, Some(obstacle.to_string())),
    };
    Program { stamp: stamp.to_owned(), frame_ns, reason }
}

/// Cost of a stamp in a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Added {
    /// The function that takes the stamp.
    pub(super) stamp: String,
    /// Additional time per frame, in nanoseconds.
    pub(super) added_ns: Option<Estimate>,
    /// Reason if `added_ns` is unknown.
    pub(super) reason: Option<String>,
}

/// Cost of each stamp per frame: the first program takes none, and its cost is subtracted
/// within a run.
pub(super) fn added(runs: &Runs<Program>) -> Vec<Added> {
    let Some((_, stamps)) = runs.of_cell(0).next().and_then(<[Program]>::split_first) else {
        return Vec::new();
    };
    let added = |(index, program): (usize, &Program)| {
        let difference = |run: &[Program]| Some(run.get(index)?.frame_ns? - run.first()?.frame_ns?);
        let differences: Vec<_> = runs.of_cell(0).filter_map(difference).collect();
        Added {
            stamp: program.stamp.clone(),
            added_ns: Estimate::of(&differences),
            reason: program.reason.clone(),
        }
    };
    (1..).zip(stamps).map(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::RunId;

    #[test]
    fn what_a_frame_costs_without_a_stamp_is_subtracted_within_a_run() {
        let program = |stamp: &str, frame_ns| Program {
            stamp: stamp.to_owned(),
            frame_ns,
            reason: frame_ns.is_none().then(|| "no module".to_owned()),
        };
        let run = |repetition, none, kernel| {
            let programs = vec![
                program("no stamp", Some(none)),
                program("k", Some(kernel)),
                program("m", None),
            ];
            (RunId { repetition, cell: 0 }, programs)
        };
        let runs = Runs {
            design: Programs { repetitions: 2 }.design(),
            seed: 1,
            sittings: Vec::new(),
            interrupted: false,
            runs: vec![run(0, 10.0, 40.0), run(1, 20.0, 50.0)],
        };
        let [kernel, module] = added(&runs).try_into().unwrap();
        let added_ns = kernel.added_ns.unwrap();
        assert_eq!((added_ns.mean, added_ns.ci95), (30.0, Some(0.0)));
        assert_eq!((module.added_ns, module.reason.as_deref()), (None, Some("no module")));
    }
}
