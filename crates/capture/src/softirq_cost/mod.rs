//! Measures the cost of a stamp in an XDP program and in a tracing program: `bpf/cost.bpf.c`, which the kernel runs in
//! memory (`Documentation/bpf/bpf_prog_run.rst` in its source).

mod attached;
mod packets;
mod stamping;

use std::io;
use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{ErrorExt, Object, ProgramInput};
use wirestamp_clock::Counter;

use crate::Error;
use crate::bpf_program::{counter_events, opened};
use crate::capabilities::{CounterFunction, Obstacle, counter_event, counter_function};
use crate::skeletons::cost::CostSkelBuilder;
pub use packets::{Checkpoints, MeasuredPackets, PacketMeasurement};
pub use stamping::PacketStamping;

/// A stamp that a tracing program takes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftirqStamp {
    /// The kernel's clock: `bpf_ktime_get_ns`.
    Kernel,
    /// The counter: `bpf_perf_event_read` of the PMU `msr`.
    Counter,
}

/// The XDP programs' input frame; they do not read it.
const FRAME: [u8; 64] = [0; 64];

/// Kind of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An XDP program, which the kernel runs for each frame.
    Xdp,
    /// A tracing program, which repeats the stamp.
    Tracing,
}

/// Cost of one program that stamps each frame once.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Kind of the program.
    pub kind: Kind,
    /// Name of the function that reads the stamp, or "no stamp".
    pub stamp: &'static str,
    /// Nanoseconds per frame, one value per round; or why the stamp is not available here.
    pub nanos: Result<Vec<f64>, Obstacle>,
}

/// Runs each program on `frames` frames in each round, all programs in turn. The first program of each kind takes no
/// stamp; its cost is included in the others of that kind. For XDP programs the kernel reports whole nanoseconds per
/// frame.
///
/// # Errors
/// The kernel does not load or run the programs, usually for lack of privileges.
pub fn measure(rounds: usize, frames: u32) -> Result<Vec<Cost>, Error> {
    let failed = |error: libbpf_rs::Error| Error::TestRun { reason: format!("{error:#}") };
    let counter = Counter::select();
    let (function, event) = (counter_function(counter), counter_event(counter));
    let programs = [
        (Kind::Xdp, "no stamp", Ok("unstamped")),
        (Kind::Xdp, "bpf_ktime_get_ns", Ok("stamped_by_kernel")),
        (
            Kind::Xdp,
            function.map_or(CounterFunction::Module.name(), CounterFunction::name),
            function.map(CounterFunction::program),
        ),
        (Kind::Tracing, "no stamp", Ok("repeat_none")),
        (Kind::Tracing, "bpf_ktime_get_ns", Ok("repeat_kernel")),
        (Kind::Tracing, "bpf_perf_event_read", event.map(|()| "repeat_counter_event")),
        (Kind::Tracing, "bpf_perf_event_read_value", event.map(|()| "repeat_counter_event_value")),
    ];
    let mut object = MaybeUninit::uninit();
    let mut open = opened(CostSkelBuilder::default(), &mut object).map_err(failed)?;
    for mut program in open.open_object_mut().progs_mut() {
        let name = programs.iter().any(|(_, _, name)| name.is_ok_and(|n| program.name() == n));
        program.set_autoload(name);
    }
    counter_events::choose(open.open_object_mut(), event.is_ok()).map_err(failed)?;
    let skeleton = open.load().map_err(failed)?;
    if event.is_ok() {
        let installed = counter_events::install(skeleton.object(), counter);
        installed.context("cannot read the counter").map_err(failed)?;
    }
    let mut costs =
        programs.map(|(kind, stamp, there)| Cost { kind, stamp, nanos: there.map(|_| Vec::new()) });
    for _ in 0..rounds {
        for (cost, (kind, _, name)) in costs.iter_mut().zip(programs) {
            if let (Ok(nanos), Ok(name)) = (&mut cost.nanos, name) {
                nanos.push(run(skeleton.object(), kind, name, frames).map_err(failed)?);
            }
        }
    }
    Ok(costs.into())
}

/// Mean nanoseconds of a stamp of the program, over `times` stamps.
fn run(object: &Object, kind: Kind, name: &str, times: u32) -> libbpf_rs::Result<f64> {
    let mut programs = object.progs_mut().filter(|program| program.name() == name);
    let program = programs.next().ok_or_else(|| io::Error::other("no such program"))?;
    match kind {
        Kind::Xdp => {
            let input =
                ProgramInput { data_in: Some(&FRAME), repeat: times, ..ProgramInput::default() };
            Ok(program.test_run(input)?.duration.as_secs_f64() * 1e9)
        }
        Kind::Tracing => {
            let mut context = u64::from(times).to_ne_bytes();
            let input = ProgramInput { context_in: Some(&mut context), ..ProgramInput::default() };
            Ok(f64::from(program.test_run(input)?.return_value) / f64::from(times))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn min(cost: &Cost) -> f64 {
        let nanos = cost.nanos.clone().unwrap();
        nanos.into_iter().fold(f64::MAX, f64::min)
    }

    #[test]
    fn stamp_costs_more_than_none_or_has_obstacle() {
        let costs = measure(3, 10_000).unwrap();
        for kind in [Kind::Xdp, Kind::Tracing] {
            let of_kind: Vec<_> = costs.iter().filter(|cost| cost.kind == kind).collect();
            let stamps: Vec<_> = of_kind.iter().map(|cost| cost.stamp).collect();
            assert_eq!(stamps[..2], ["no stamp", "bpf_ktime_get_ns"]);
            let none = min(of_kind[0]);
            for cost in of_kind[1..].iter().filter(|cost| cost.nanos.is_ok()) {
                assert!(min(cost) > none, "{costs:?}");
            }
        }
        let counter = Counter::select();
        assert_eq!(costs[2].nanos.as_ref().err(), counter_function(counter).as_ref().err());
        assert_eq!(costs[5].nanos.as_ref().err(), counter_event(counter).as_ref().err());
    }
}
