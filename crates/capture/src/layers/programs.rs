//! Loads the programs of `bpf/layers.bpf.c`, and reads their results.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::btf::Btf;
use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{MapCore, MapFlags, MapHandle, OpenObject, RingBufferBuilder};

use super::hooks::{self, Attached, Hook};
use super::{Direction, Journey, LayersLedger, Reasons};
use crate::Error;
use crate::bpf_program::{Counts, lacks_privileges, namespace, opened, with_filter};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::skeletons::layers::LayersSkelBuilder;

const CAPABILITIES: &str = "cap_bpf,cap_perfmon,cap_net_admin";

/// Bytes in the ring buffer at which the program wakes its reader, which otherwise polls: a quarter of its size.
const WAKE_AT: u64 = 1 << 22;

/// The attached programs and their maps.
pub(super) struct Programs {
    pub(super) attached: Attached,
    pub(super) reasons: Reasons,
    direction: Direction,
    counts: Counts,
    /// Packets on their way.
    journeys: MapHandle,
    /// Packets whose journey has ended.
    ended: MapHandle,
}

impl Programs {
    /// Loads and attaches the programs for `hooks`, which belong to the direction. They follow the packets that
    /// `interface` (in the calling thread's network namespace) receives or sends and that pass the filter.
    pub(super) fn open(
        interface: &Interface,
        direction: Direction,
        hooks: &[Hook],
        filter: Option<&Filter>,
    ) -> Result<Self, Error> {
        let refused = refused(interface);
        let kernel = Btf::from_vmlinux().map_err(refused)?;
        let mut object = MaybeUninit::uninit();
        let mut open = opened(LayersSkelBuilder::default(), &mut object).map_err(refused)?;
        if let Some(constants) = open.maps.rodata_data.as_mut() {
            constants.interface = interface.index;
            constants.namespace = namespace().map_err(|cause| Error::System {
                what: "find the network namespace",
                interface: interface.name.clone(),
                cause,
            })?;
            constants.wake_at = WAKE_AT;
        }
        let notes = hooks::choose(open.open_object_mut(), hooks, &kernel);
        if let Some(filter) = filter {
            insert_filter(open.open_object_mut(), filter)?;
        }
        let skeleton = open.load().map_err(refused)?;
        let maps = &skeleton.maps;
        let handle = |map| MapHandle::try_from(map).map_err(refused);
        Ok(Self {
            counts: Counts::of(&maps.counts).map_err(refused)?,
            journeys: handle(&maps.journeys)?,
            ended: handle(&maps.ended)?,
            reasons: Reasons::of(&kernel),
            attached: hooks::attach(skeleton.object(), hooks, interface, notes),
            direction,
        })
    }

    /// A descriptor that becomes readable when the ring buffer fills up.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Takes the journeys that have ended since the last call; `None` is an invalid one.
    pub(super) fn take_ended(&self, mut take: impl FnMut(Option<Journey>)) -> io::Result<()> {
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&self.ended, |record| {
                take(Journey::read(record, self.direction));
                0
            })
            .map_err(io::Error::other)?;
        builder.build().and_then(|ring| ring.consume()).map_err(io::Error::other)
    }

    /// Takes the journeys that have not ended. The programs have to be detached.
    pub(super) fn take_open(&self, mut take: impl FnMut(Option<Journey>)) -> io::Result<()> {
        for key in self.journeys.keys() {
            let journey = self.journeys.lookup(&key, MapFlags::ANY).map_err(io::Error::other)?;
            take(journey.and_then(|bytes| Journey::read(&bytes, self.direction)));
        }
        Ok(())
    }

    /// Adds the counts of the programs.
    pub(super) fn count(&mut self, ledger: &mut LayersLedger) -> io::Result<()> {
        ledger.seen = self.counts.seen()?;
        ledger.untracked = self.counts.untracked()?;
        ledger.dropped += self.counts.dropped()?;
        Ok(())
    }
}

/// Inserts the filter into the programs at the start of journeys, which call it.
fn insert_filter(object: &mut OpenObject, filter: &Filter) -> Result<(), Error> {
    let refused = |error: &libbpf_rs::Error| Error::FilterNotInKernel {
        reason: format!("as a tracing program, {error}"),
    };
    let passes = filter.for_layers()?;
    with_filter::prepare(object).map_err(|error| refused(&error))?;
    let filtering = object.progs_mut().filter(|p| p.autoload() && with_filter::calls_filter(p));
    for mut program in filtering {
        with_filter::insert(&mut program, &passes).map_err(|error| refused(&error))?;
    }
    Ok(())
}

/// The error for an action that libbpf or the kernel refused.
fn refused(interface: &Interface) -> impl Fn(libbpf_rs::Error) -> Error + Copy {
    move |error| {
        let interface = interface.name.clone();
        if lacks_privileges(&error) {
            let what = "follow packets through the kernel";
            Error::Permission { what, interface, capabilities: CAPABILITIES }
        } else {
            Error::Layers { interface, reason: format!("{error:#}") }
        }
    }
}
