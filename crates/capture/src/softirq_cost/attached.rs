//! One of the programs of `bpf/checkpoints.bpf.c`, attached to the packets of an interface.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{ErrorExt, Link, MapHandle};
use wirestamp_clock::Counter;

use crate::Error;
use crate::bpf_program::{counter_events, namespace, opened};
use crate::capabilities::{Obstacle, counter_event};
use crate::interface::Interface;
use crate::skeletons::checkpoints::CheckpointsSkelBuilder;

/// Bytes of an Ethernet header, which the kernel has removed before the tracepoint.
const ETHERNET_HEADER: u32 = 14;

/// Trace points at which the kernel enters interrupts: those of devices (`irq`), and those of the CPU itself
/// (`irq_vectors`, x86 only).
const INTERRUPTS: [&str; 6] = [
    "irq_handler_entry",
    "local_timer_entry",
    "reschedule_entry",
    "call_function_entry",
    "call_function_single_entry",
    "irq_work_entry",
];
const COUNT_INTERRUPT: &str = "count_interrupt";

/// Programs that run until the links are dropped.
pub(super) struct Attached {
    pub(super) links: Vec<Link>,
    /// The records that it wrote.
    pub(super) measured: MapHandle,
}

/// Loads `program`, and attaches it to the packets that arrive at `interface` of this thread's network namespace.
/// Programs that measure do so for packets of `frame_bytes` only. `counts_interrupts` is for those that read their number.
///
/// # Errors
/// The counter cannot be read by a tracing program, or the kernel does not load the program, usually for lack of
/// privileges.
pub(super) fn attach(
    interface: &str,
    frame_bytes: u16,
    program: &str,
    counts_interrupts: bool,
) -> Result<Attached, Error> {
    let interface = Interface::find(interface)?;
    let failed = |reason: String| {
        let (what, interface) = ("the tracing program", interface.name.clone());
        Error::Program { what, interface, reason }
    };
    let refused = |error: libbpf_rs::Error| failed(format!("{error:#}"));
    let counter = Counter::select();
    counter_event(counter).map_err(|obstacle: Obstacle| failed(obstacle.to_string()))?;
    let mut object = MaybeUninit::uninit();
    let mut open = opened(CheckpointsSkelBuilder::default(), &mut object).map_err(refused)?;
    if let Some(constants) = open.maps.rodata_data.as_mut() {
        constants.interface = interface.index;
        constants.length = u32::from(frame_bytes).saturating_sub(ETHERNET_HEADER);
        constants.namespace = namespace().map_err(|error| failed(error.to_string()))?;
    }
    for mut other in open.open_object_mut().progs_mut() {
        let is_counter = counts_interrupts && other.name() == COUNT_INTERRUPT;
        other.set_autoload(other.name() == program || is_counter);
    }
    counter_events::choose(open.open_object_mut(), true).map_err(refused)?;
    let skeleton = open.load().map_err(refused)?;
    counter_events::install(skeleton.object(), counter)
        .context("cannot read the counter")
        .map_err(refused)?;
    let measured = MapHandle::try_from(&skeleton.maps.measured).map_err(refused)?;
    let mut programs = skeleton.object().progs_mut();
    let program = programs.find(|it| it.name() == program);
    let program = program.ok_or_else(|| failed("it is missing".to_owned()))?;
    let mut links = vec![program.attach_trace().map_err(refused)?];
    let mut programs = skeleton.object().progs_mut();
    if let Some(counter) = programs.find(|it| counts_interrupts && it.name() == COUNT_INTERRUPT) {
        // Not every kernel has all of them.
        links.extend(INTERRUPTS.iter().filter_map(|name| counter.attach_raw_tracepoint(name).ok()));
    }
    Ok(Attached { links, measured })
}
