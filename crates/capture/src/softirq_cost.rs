//! Measures the cost of a stamp in an XDP program: `bpf/cost.bpf.c`, which the kernel runs on a frame in memory
//! (`Documentation/bpf/bpf_prog_run.rst` in its source).

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{Object, ProgramInput};
use wirestamp_clock::Counter;

use crate::Error;
use crate::bpf_program::opened;
use crate::capabilities::{CounterFunction, Obstacle, counter_function};
use crate::skeletons::cost::CostSkelBuilder;

/// The programs' input frame; they do not read it.
const FRAME: [u8; 64] = [0; 64];

/// Cost of one XDP program that stamps each frame once.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Name of the function that reads the stamp, or "no stamp".
    pub stamp: &'static str,
    /// Nanoseconds per frame, one value per round; or why the stamp is not available here.
    pub nanos: Result<Vec<f64>, Obstacle>,
}

/// Runs each program on `frames` frames in each round, all programs in turn. The first program takes no stamp; its
/// cost is included in the others. The kernel reports whole nanoseconds per frame.
///
/// # Errors
/// The kernel does not load or run the programs, usually for lack of privileges.
pub fn measure(rounds: usize, frames: u32) -> Result<Vec<Cost>, Error> {
    let failed = |error: libbpf_rs::Error| Error::TestRun { reason: format!("{error:#}") };
    let function = counter_function(Counter::select());
    let programs = [
        ("no stamp", Ok("unstamped")),
        ("bpf_ktime_get_ns", Ok("stamped_by_kernel")),
        (
            function.map_or(CounterFunction::Module.name(), CounterFunction::name),
            function.map(CounterFunction::program),
        ),
    ];
    let mut object = MaybeUninit::uninit();
    let mut open = opened(CostSkelBuilder::default(), &mut object).map_err(failed)?;
    for mut program in open.open_object_mut().progs_mut() {
        let name = programs.iter().any(|(_, name)| name.is_ok_and(|n| program.name() == n));
        program.set_autoload(name);
    }
    let skeleton = open.load().map_err(failed)?;
    let mut costs = programs.map(|(stamp, there)| Cost { stamp, nanos: there.map(|_| Vec::new()) });
    for _ in 0..rounds {
        for (cost, (_, name)) in costs.iter_mut().zip(programs) {
            if let (Ok(nanos), Ok(name)) = (&mut cost.nanos, name) {
                nanos.push(run(skeleton.object(), name, frames).map_err(failed)?);
            }
        }
    }
    Ok(costs.into())
}

/// Mean nanoseconds of a run of the program, over `times` runs.
fn run(object: &Object, name: &str, times: u32) -> libbpf_rs::Result<f64> {
    let mut nanos = 0.0;
    for program in object.progs_mut().filter(|program| program.name() == name) {
        let input =
            ProgramInput { data_in: Some(&FRAME), repeat: times, ..ProgramInput::default() };
        nanos = program.test_run(input)?.duration.as_secs_f64() * 1e9;
    }
    Ok(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_costs_more_than_none_or_has_obstacle() {
        let costs = measure(3, 10_000).unwrap();
        let stamps: Vec<_> = costs.iter().map(|cost| cost.stamp).collect();
        assert_eq!(stamps[..2], ["no stamp", "bpf_ktime_get_ns"]);
        let min = |cost: &Cost| {
            let nanos = cost.nanos.clone().unwrap();
            nanos.into_iter().fold(f64::MAX, f64::min)
        };
        let [none, kernel] = [0, 1].map(|nth| min(&costs[nth]));
        assert!(kernel > none, "{costs:?}");
        match counter_function(Counter::select()) {
            Ok(function) => {
                assert_eq!(stamps[2], function.name());
                assert!(min(&costs[2]) > none, "{costs:?}");
            }
            Err(obstacle) => assert_eq!(costs[2].nanos, Err(obstacle)),
        }
    }
}
