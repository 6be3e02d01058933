//! `xdp-pass`, `tc-pass` and `trace-pass`: an XDP, tc or tracing program stamps each frame in the softIRQ; the XDP or a
//! tc program copies its head to a BPF ring buffer and passes the frame, so that an endpoint keeps its traffic
//! (`bpf/stamp.bpf.c`; `Documentation/bpf/ringbuf.rst` in the kernel's source).

mod ring_buffer;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use libbpf_rs::skel::{OpenSkel, Skel};

use self::ring_buffer::{Record, RingBuffer};
use crate::Error;
use crate::bpf_program::{
    Attached, Counts, Hook, Place, Stamped, StampedBy, loaded, namespace, opened, refused,
};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::receiver::{FULL_FRAME_BYTES, Frame, FrameMemory, FramePlace, KernelCounts, Receiver};
use crate::skeletons::stamp::StampSkelBuilder;

/// Max bytes copied of a frame. Records of short frames are shorter (`room_for` of `bpf/stamp.bpf.c`).
pub(crate) const MAX_HEAD: u32 = 2048;

/// Min bytes copied: two addresses and a VLAN tag, which the tc program restores. The consumer cuts them.
const MIN_HEAD: u32 = 16;

mod record {
    //! The layout of `struct record` in the BPF program, native byte order.
    pub(super) const LENGTH: usize = 8;
    pub(super) const CAPTURED: usize = 12;
    pub(super) const CLOCK: usize = 14;
    pub(super) const HEAD: usize = 16;
}

/// Capabilities that the program and its link require.
pub(crate) const CAPABILITIES: &str = "cap_bpf,cap_net_admin,cap_perfmon";

/// The attached program and its ring buffer. The program is detached on drop, and by the kernel when the process
/// ends, because the link is a file descriptor.
pub(crate) struct Pass {
    link: Option<Attached>,
    counts: Counts,
    buffer: Arc<RingBuffer>,
    stamped_by: StampedBy,
    /// Frames with another stamp than requested.
    stamped_late: u64,
}

impl Pass {
    /// Loads the program for `hook`, with `filter` in it, and attaches it to `interface`. The ring buffer's size is
    /// the largest power of two up to `bytes`.
    pub(crate) fn open(
        hook: Hook,
        interface: &Interface,
        filter: Option<&Filter>,
        stamped_by: StampedBy,
        snaplen: u32,
        bytes: usize,
    ) -> Result<(Self, Place), Error> {
        let refused = refused(hook, interface, CAPABILITIES);
        let mut object = MaybeUninit::uninit();
        let mut open = opened(StampSkelBuilder::default(), &mut object).map_err(refused)?;
        if let Some(constants) = open.maps.rodata_data.as_mut() {
            constants.head_bytes = snaplen.clamp(MIN_HEAD, MAX_HEAD);
            constants.interface = interface.index;
            constants.namespace = namespace().map_err(|cause| Error::System {
                what: "find the network namespace",
                interface: interface.name.clone(),
                cause,
            })?;
        }
        let size = 1_u32 << bytes.clamp(1 << 16, 1 << 30).ilog2();
        open.maps.frames.set_max_entries(size).map_err(refused)?;
        stamped_by.choose(hook, open.open_object_mut(), interface, filter, refused)?;
        let skeleton = loaded(open, filter, refused)?;

        let variables = skeleton.maps.bss.as_fd();
        let buffer = RingBuffer::map(skeleton.maps.frames.as_fd(), size as usize, variables)
            .map_err(|e| Error::system("map the ring buffer", &interface.name, "cap_bpf", e))?;
        let counts = Counts::of(&skeleton.maps.counts).map_err(refused)?;
        stamped_by.prepare(skeleton.object()).map_err(|error| {
            let (what, interface) = (hook.program(), interface.name.clone());
            Error::Program { what, interface, reason: format!("cannot read the counter: {error}") }
        })?;
        let (link, place) =
            stamped_by.attach(hook, skeleton.object(), interface).map_err(refused)?;
        let (link, buffer) = (Some(link), Arc::new(buffer));
        Ok((Self { link, counts, buffer, stamped_by, stamped_late: 0 }, place))
    }
}

/// The stamp of a record. The program wrote the record's head before it submitted the record.
#[expect(clippy::inline_always, reason = "a frame returned through memory takes 10 ns longer")]
#[inline(always)]
fn stamped(record: &Record<'_>, stamped_by: StampedBy) -> Stamped {
    let value: u64 = record.memory.load(record.offset);
    let clock: u16 = record.memory.load(record.offset + record::CLOCK);
    stamped_by.stamped(value, clock.into())
}

/// The frame of a record with this stamp.
#[expect(clippy::inline_always, reason = "a frame returned through memory takes 10 ns longer")]
#[inline(always)]
fn frame(record: Record<'_>, stamped: Stamped) -> Frame {
    let Record { memory, offset, ticket } = record;
    let length: u32 = memory.load(offset + record::LENGTH);
    let captured: u16 = memory.load(offset + record::CAPTURED);
    let place = FramePlace { memory, offset: offset + record::HEAD, captured: captured.into() };
    Frame::new(stamped.raw, stamped.kernel, place, length, ticket)
}

impl Receiver for Pass {
    fn frame_memory(&self) -> Arc<dyn FrameMemory> {
        Arc::clone(&self.buffer) as _
    }

    fn capacity(&self) -> usize {
        self.buffer.bytes() / FULL_FRAME_BYTES
    }

    fn acquire(&mut self, room: usize, mut take: impl FnMut(Frame)) -> usize {
        let mut taken = 0;
        while taken < room {
            let Some(record) = self.buffer.next(record::HEAD) else { break };
            let stamped = stamped(&record, self.stamped_by);
            self.stamped_late += u64::from(stamped.late);
            take(frame(record, stamped));
            taken += 1;
        }
        taken
    }

    /// Always false: the program continues with a full buffer, and counts frames that do not fit.
    fn is_exhausted(&self) -> bool {
        false
    }

    fn may_sleep(&mut self) -> bool {
        self.buffer.enable_wakeup()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.buffer.descriptor()
    }

    fn close_intake(&mut self) -> io::Result<()> {
        self.link = None;
        Ok(())
    }

    fn counts(&mut self) -> io::Result<KernelCounts> {
        let (seen, dropped) = (self.counts.seen()?, self.counts.dropped()?);
        let stamped_late = self.stamped_late;
        Ok(KernelCounts { seen, dropped, stamped_late, ..KernelCounts::default() })
    }
}
