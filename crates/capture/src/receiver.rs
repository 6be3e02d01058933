//! The interface between reception methods and the pipeline: zero-copy frames.
#![expect(unsafe_code, reason = "frames are pointers into memory shared with the kernel")]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// One frame in memory shared with the kernel (zero-copy). The last stage passes its ticket to
/// [`FrameMemory::release`]; the bytes are invalid after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Raw stamp, in ticks of the receiver's clock domain; [`crate::card_stamps::NONE`] where the network card
    /// should have stamped and did not.
    pub(crate) raw: u64,
    /// The kernel's stamp on arrival, in nanoseconds of `CLOCK_REALTIME`, if `raw` is another stamp. Where it
    /// replaces a missing network card stamp, its clock is [`crate::method::Pair::card_fallback`].
    pub(crate) kernel: Option<u64>,
    /// First captured byte.
    pub(crate) data: NonNull<u8>,
    /// Captured bytes.
    pub(crate) captured: u32,
    /// Bytes of the frame on the wire.
    pub(crate) length: u32,
    /// Memory to release after use.
    pub(crate) ticket: Ticket,
}

// SAFETY: a frame's memory is a mapping that is not bound to a thread; the ticket protocol allows one reader at a
// time.
unsafe impl Send for Frame {}

impl Frame {
    /// The captured bytes.
    ///
    /// # Safety
    /// The frame's ticket has not been released, its memory exists, and both stay so for `'a`.
    pub(crate) unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: the receiver set `data` and `captured` to a range inside its mapping, and the caller guarantees
        // that the kernel does not write there for as long as `'a`.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.captured as usize) }
    }
}

/// Identifies memory that becomes free with a frame. Only the receiver and its [`FrameMemory`] interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ticket {
    /// Nothing yet: a later frame's ticket releases this frame's memory too.
    Later,
    /// A slot, block or position of the memory.
    Release(usize),
}

/// Memory that frames lie in. Tickets are released in the order in which they were issued.
pub(crate) trait FrameMemory: Send + Sync {
    fn release(&self, ticket: Ticket);
}

/// The kernel's counts for a receiver since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelCounts {
    /// Packets that passed the kernel's filter, including dropped ones.
    pub(crate) seen: u64,
    /// Packets of these dropped for lack of room.
    pub(crate) dropped: u64,
    /// Packets of these stamped by the kernel only when it copied them, or not stamped by the network card.
    pub(crate) stamped_late: u64,
    /// Dropped packets that found the AF_XDP fill ring empty.
    pub(crate) fill_ring_empty: u64,
}

/// How long packets collect before they are read, where reading each at once has no benefit: waiting costs a
/// wake-up for each packet, sleeping costs none. At a million packets a second, a thousand collect, which fits
/// every buffer.
const NAP: Duration = Duration::from_millis(1);

/// A reception method. One thread owns it; other threads may release its memory.
pub(crate) trait Receiver: Send {
    /// How long already stamped packets may collect before they are read; none where the kernel collects them
    /// itself.
    const NAP: Option<Duration> = Some(NAP);

    /// The memory of its frames.
    fn frame_memory(&self) -> Arc<dyn FrameMemory>;

    /// Stamps and passes on up to `room` frames that have arrived; returns their number.
    fn acquire(&mut self, room: usize, take: impl FnMut(Frame)) -> usize;

    /// Whether all its memory is in use, so that nothing can arrive before some is released.
    fn is_exhausted(&self) -> bool;

    /// Prepares a wait. False if a frame has already arrived; true if the next frame will end the wait.
    fn may_sleep(&mut self) -> bool {
        true
    }

    /// A descriptor that epoll(7) reports readable when frames have arrived.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Stops the arrival of new frames. Frames that arrived earlier can still be acquired.
    fn close_intake(&mut self) -> io::Result<()>;

    /// The kernel's current counts.
    fn counts(&mut self) -> io::Result<KernelCounts>;
}
