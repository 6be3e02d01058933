//! What a stamp costs in an XDP program: `bpf/cost.bpf.c`, which the kernel runs on a frame that is
//! only in memory (`Documentation/bpf/bpf_prog_run.rst` in its source).

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{Object, ProgramInput};
use wirestamp_clock::Counter;

use self::skeleton::CostSkelBuilder;
use crate::Error;
use crate::bpf_program::opened;
use crate::capabilities::{CounterFunction, Obstacle, counter_function};

#[expect(
    unsafe_code,
    clippy::allow_attributes,
    clippy::undocumented_unsafe_blocks,
    unreachable_pub,
    reason = "generated from the object file by libbpf-cargo"
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/cost.skel.rs"));
}

/// The frame that the programs are run on, and do not look at.
const FRAME: [u8; 64] = [0; 64];

/// What a program costs that takes one stamp of each frame.
#[derive(Clone, Debug)]
pub struct Cost {
    /// What it calls for that, or that it takes none.
    pub stamp: &'static str,
    /// Nanoseconds a frame, a value for each round; or why the stamp cannot be had here.
    pub nanos: Result<Vec<f64>, Obstacle>,
}

/// Runs each program on so many `frames` in each of the `rounds`, all programs in turn. First the one
/// that takes no stamp, whose cost is in the others' too. The kernel gives whole nanoseconds a frame.
///
/// # Errors
/// The kernel does not load or run the programs, most often for want of privileges.
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
        let wanted = programs.iter().any(|(_, wanted)| wanted.is_ok_and(|n| program.name() == n));
        program.set_autoload(wanted);
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

/// Nanoseconds that a run of the program takes, the mean of so many.
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
    fn a_stamp_costs_something_and_what_cannot_be_had_says_why() {
        let costs = measure(3, 10_000).unwrap();
        let stamps: Vec<_> = costs.iter().map(|cost| cost.stamp).collect();
        assert_eq!(stamps[..2], ["no stamp", "bpf_ktime_get_ns"]);
        let least = |cost: &Cost| {
            let nanos = cost.nanos.clone().unwrap();
            nanos.into_iter().fold(f64::MAX, f64::min)
        };
        let [none, kernel] = [0, 1].map(|nth| least(&costs[nth]));
        assert!(kernel > none, "{costs:?}");
        match counter_function(Counter::select()) {
            Ok(function) => {
                assert_eq!(stamps[2], function.name());
                assert!(least(&costs[2]) > none, "{costs:?}");
            }
            Err(obstacle) => assert_eq!(costs[2].nanos, Err(obstacle)),
        }
    }
}
