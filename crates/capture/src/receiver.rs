//! What every reception method gives the pipeline: frames that lie in memory on loan, where the
//! kernel put them.
#![expect(unsafe_code, reason = "frames are pointers into memory that is lent")]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// One frame, where the kernel put it. It is a loan: whoever is last to use it hands its ticket to
/// [`Lender::give_back`], and the bytes are gone after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The stamp, in ticks of the receiver's clock domain; [`crate::card_stamps::NONE`] where it
    /// should be the network card's and there is none.
    pub(crate) raw: u64,
    /// The kernel's own stamp in nanoseconds of `CLOCK_REALTIME`, where it is another one and was
    /// taken on the packet's arrival. In the place of a network card's it is of the clock that
    /// [`crate::method::Pair::instead_of_card`] says.
    pub(crate) kernel: Option<u64>,
    /// The first captured byte.
    pub(crate) data: NonNull<u8>,
    /// How many bytes were captured.
    pub(crate) captured: u32,
    /// How many bytes the frame had on the wire.
    pub(crate) length: u32,
    /// What to give back.
    pub(crate) ticket: Ticket,
}

// SAFETY: a frame's memory is a mapping that no thread is tied to; the ticket protocol
// leaves it to one reader at a time.
unsafe impl Send for Frame {}

impl Frame {
    /// The captured bytes.
    ///
    /// # Safety
    /// The frame's ticket has not been given back, its lender is alive, and both stay so for `'a`.
    pub(crate) unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: the receiver set `data` and `captured` to a range inside its mapping, and the
        // caller vouches that the kernel does not write there for as long as `'a`.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.captured as usize) }
    }
}

/// Names the memory that becomes free with a frame; what it means is between receiver and lender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ticket {
    /// Nothing yet: a later frame's ticket frees this one's memory too.
    Later,
    /// A slot, block or position of the lender.
    Release(usize),
}

/// Takes memory back for frames to come. Tickets come back in the order in which they were handed
/// out.
pub(crate) trait Lender: Send + Sync {
    fn give_back(&self, ticket: Ticket);
}

/// What the kernel counted for a receiver since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelCounts {
    /// Packets that passed the kernel's filter, dropped ones included.
    pub(crate) seen: u64,
    /// Packets of these for which there was no room.
    pub(crate) dropped: u64,
    /// Packets of these whose kernel stamp was taken only when they were copied to us, or that the
    /// network card should have stamped and did not.
    pub(crate) stamped_late: u64,
    /// Dropped packets that found the AF_XDP fill ring empty.
    pub(crate) fill_ring_empty: u64,
}

/// How long packets are left to gather where nothing is gained by taking each at once: a thread that
/// waits for them is woken for each, one that naps for none. At a million packets a second a
/// thousand gather, which no buffer is too small for.
const NAP: Duration = Duration::from_millis(1);

/// A reception method. One thread owns it; the memory it lends may be returned from another.
pub(crate) trait Receiver: Send {
    /// How long packets that are stamped already may gather before they are taken; none where the
    /// kernel gathers them itself.
    const NAP: Option<Duration> = Some(NAP);

    /// Where its frames' memory goes back to.
    fn lender(&self) -> Arc<dyn Lender>;

    /// Stamps and hands over up to `room` frames that have arrived; returns how many.
    fn acquire(&mut self, room: usize, take: impl FnMut(Frame)) -> usize;

    /// Whether all its memory is out on loan, so that nothing can come before some is back.
    fn is_lent_out(&self) -> bool;

    /// Asked right before a wait: whether what arrives from now on will end it. If not, something has
    /// arrived.
    fn may_sleep(&mut self) -> bool {
        true
    }

    /// A descriptor that epoll(7) has news of when frames have arrived.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Lets nothing new in. What has arrived before can still be acquired.
    fn close_intake(&mut self) -> io::Result<()>;

    /// The kernel's counts up to now.
    fn counts(&mut self) -> io::Result<KernelCounts>;
}
