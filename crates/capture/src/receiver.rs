//! The interface between reception methods and the pipeline: zero-copy frames.
#![expect(unsafe_code, reason = "frames are pointers into memory shared with the kernel")]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use wirestamp_sys::control_message::VlanTag;
use wirestamp_sys::mmap::Mapping;

/// One frame in memory shared with the kernel (zero-copy). [`use_and_release`] consumes it in the last stage; the
/// bytes are invalid after that.
///
/// Receivers keep the contract that makes its bytes safe to read: they make a frame only of memory that the kernel
/// has passed to this process, make no second frame of the same bytes, and do not return the memory to the kernel
/// before the frame's ticket is released.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Raw stamp, in ticks of the receiver's clock domain; [`crate::card_stamps::NONE`] where the network card
    /// or a tracing program should have stamped and did not.
    pub(crate) raw: u64,
    /// The kernel's stamp on arrival, in nanoseconds of `CLOCK_REALTIME`, if `raw` is another stamp. Where it
    /// replaces a missing stamp, its clock is [`crate::pairs::Pair::fallback`].
    pub(crate) kernel: Option<u64>,
    /// First captured byte.
    data: NonNull<u8>,
    /// Captured bytes.
    pub(crate) captured: u32,
    /// Bytes of the frame on the wire.
    pub(crate) length: u32,
    /// Memory to release after use.
    ticket: Ticket,
}

// SAFETY: a frame's memory is a mapping that is not bound to a thread, and only the frame points to it.
unsafe impl Send for Frame {}

/// The place of a frame in the memory of its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramePlace<'a> {
    pub(crate) memory: &'a Mapping,
    /// Offset of the first captured byte.
    pub(crate) offset: usize,
    /// Bytes that were captured.
    pub(crate) captured: u32,
}

impl Frame {
    /// A frame at `place`, stamped `raw` and by the `kernel`, of `length` bytes on the wire.
    ///
    /// # Panics
    /// The place lies outside of the memory.
    #[inline]
    pub(crate) fn new(
        raw: u64,
        kernel: Option<u64>,
        FramePlace { memory, offset, captured }: FramePlace<'_>,
        length: u32,
        ticket: Ticket,
    ) -> Self {
        let data = memory.at(offset, captured as usize);
        Self { raw, kernel, data, captured, length, ticket }
    }

    /// A frame without bytes, for tests.
    #[cfg(test)]
    pub(crate) const fn empty(raw: u64, kernel: Option<u64>) -> Self {
        let (data, ticket) = (NonNull::dangling(), Ticket::Later);
        Self { raw, kernel, data, captured: 0, length: 0, ticket }
    }

    /// Restores the VLAN tag if the kernel removed one: the bytes of the frame then begin [`TAG_BYTES`] earlier, in
    /// memory that the receiver leaves free. Keeps at most `snaplen` bytes.
    ///
    /// # Panics
    /// There is no room in the memory before the frame.
    #[inline]
    pub(crate) fn with_tag(mut self, place: FramePlace<'_>, tag: VlanTag, snaplen: u32) -> Self {
        if let Some([tpid, tci]) = tag.removed()
            && self.captured >= ADDRESS_BYTES
        {
            let offset = place.offset.wrapping_sub(TAG_BYTES as usize);
            let start = place.memory.at(offset, (self.captured + TAG_BYTES) as usize);
            let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
            // SAFETY: both are inside the memory, as was just checked, and the frame has both
            // addresses; only this frame leads there. `copy_from` allows the overlap, and the tag
            // lands on bytes that were moved away.
            unsafe {
                start.copy_from(self.data, ADDRESS_BYTES as usize);
                start.add(ADDRESS_BYTES as usize).cast::<[u8; 4]>().write_unaligned([a, b, c, d]);
            }
            self.data = start;
            self.captured += TAG_BYTES;
            self.length += TAG_BYTES;
        }
        // The kernel may fill a slot to its end, and the restored tag adds to that.
        self.captured = self.captured.min(snaplen);
        self
    }

    /// Puts a header before the packet, in memory that the receiver leaves free. Keeps at most `snaplen` bytes.
    ///
    /// # Panics
    /// There is no room in the memory before the frame.
    pub(crate) fn with_header(
        mut self,
        place: FramePlace<'_>,
        header: &[u8],
        snaplen: u32,
    ) -> Self {
        let offset = place.offset.wrapping_sub(header.len());
        let start = place.memory.at(offset, header.len() + self.captured as usize);
        // SAFETY: the header's place is inside the memory, as was just checked, and only this frame leads there.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(header).cast(), header.len()) };
        #[expect(clippy::cast_possible_truncation, reason = "link headers are short")]
        let bytes = header.len() as u32;
        self.data = start;
        self.captured = self.captured.saturating_add(bytes).min(snaplen);
        self.length = self.length.saturating_add(bytes);
        self
    }

    /// Copies a packet to the frame's place. Bytes that do not fit are not copied.
    pub(crate) fn fill(&mut self, packet: &[u8]) {
        let length = packet.len().min(self.captured as usize);
        // SAFETY: the place has room for `captured` bytes, and only this frame leads there.
        unsafe { self.data.copy_from_nonoverlapping(NonNull::from(packet).cast(), length) };
    }

    /// The captured bytes.
    fn bytes(&self) -> &[u8] {
        // SAFETY: a range inside a mapping that its receiver and the last stage keep alive; nothing
        // writes there until the ticket is released, which consumes the frame.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.captured as usize) }
    }
}

/// Calls `work` with the frame and its bytes, then releases its `memory`.
#[inline]
pub(crate) fn use_and_release(
    frame: Frame,
    memory: &dyn FrameMemory,
    work: impl FnOnce(&Frame, &[u8]),
) {
    work(&frame, frame.bytes());
    if frame.ticket != Ticket::Later {
        memory.release(frame.ticket);
    }
}

const ADDRESS_BYTES: u32 = 12; // two MAC addresses precede a VLAN tag

/// Room before each packet: the size of an 802.1Q tag.
pub(crate) const TAG_BYTES: u32 = 4;

/// Identifies memory that becomes free with a frame. Only the receiver and its [`FrameMemory`] interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ticket {
    /// Nothing yet: a later frame's ticket releases this frame's memory too.
    Later,
    /// A slot, block or position of the memory.
    Release(usize),
}

/// The memory of frames. Tickets are released in the order in which they were issued.
pub(crate) trait FrameMemory: Send + Sync {
    fn release(&self, ticket: Ticket);
}

/// The kernel's counts for a receiver since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelCounts {
    /// Packets that passed the kernel's filter, including dropped ones.
    pub(crate) seen: u64,
    /// Number of seen packets that were dropped for lack of room.
    pub(crate) dropped: u64,
    /// Number of seen packets that the kernel stamped only when it copied them, or that the network card did not stamp.
    pub(crate) stamped_late: u64,
    /// Packets dropped because the AF_XDP fill ring was empty.
    pub(crate) fill_ring_empty: u64,
}

/// Bytes of a full Ethernet frame in memory, about.
pub(crate) const FULL_FRAME_BYTES: usize = 2048;

/// How long packets collect before they are read, where reading each at once has no benefit: waiting costs a
/// wake-up for each packet, sleeping costs none. At a million packets a second, a thousand collect, which fits
/// every buffer.
const COLLECT_TIME: Duration = Duration::from_millis(1);

/// A reception method. One thread owns it; other threads may release its memory.
pub(crate) trait Receiver: Send {
    /// How long already stamped packets may collect before they are read; `None` if the kernel already collects
    /// them in blocks.
    const COLLECT_TIME: Option<Duration> = Some(COLLECT_TIME);

    /// The memory of its frames.
    fn frame_memory(&self) -> Arc<dyn FrameMemory>;

    /// Number of full Ethernet frames that fit into its memory, about. The default is that of 2 MiB.
    fn capacity(&self) -> usize {
        (2 << 20) / FULL_FRAME_BYTES
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of 16 bytes, numbered from 0, four bytes into a mapping.
    fn numbered(memory: &Mapping) -> (Frame, FramePlace<'_>) {
        memory.store(4, [0_u8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let place = FramePlace { memory, offset: 4, captured: 16 };
        (Frame::new(0, None, place, 60, Ticket::Later), place)
    }

    #[test]
    fn vlan_tag_is_put_between_the_addresses_and_the_type() {
        let memory = Mapping::anonymous(64).unwrap();
        let (frame, place) = numbered(&memory);
        let tag = VlanTag { status: libc::TP_STATUS_VLAN_VALID, tci: 0x2007, tpid: 0 };
        let frame = frame.with_tag(place, tag, 64);
        assert_eq!((frame.captured, frame.length), (20, 64));
        let (addresses, rest) = frame.bytes().split_at(12);
        assert_eq!(addresses, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(rest, [0x81, 0x00, 0x20, 0x07, 12, 13, 14, 15]);
    }

    #[test]
    fn frame_without_a_tag_is_only_cut() {
        let memory = Mapping::anonymous(64).unwrap();
        let (frame, place) = numbered(&memory);
        let frame = frame.with_tag(place, VlanTag::default(), 3);
        assert_eq!((frame.bytes(), frame.length), (&[0, 1, 2][..], 60));
    }
}
