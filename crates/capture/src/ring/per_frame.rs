//! `ring` with `raw` stamps: TPACKET_V2. Each frame has a status word, so the acquisition thread finds each packet
//! at once and reads the counter for it alone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wirestamp_clock::Counter;
use wirestamp_sys::control_message::VlanTag;
use wirestamp_sys::mmap::{Access, Mapping};

use crate::Error;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::packet_socket::{PacketSocket, Setup, longest_frame};
use crate::receiver::{Frame, FrameMemory, FramePlace, KernelCounts, Receiver, Ticket};

/// Max bytes that the kernel writes to a slot before the packet: header, address, room for a VLAN tag, and
/// alignment gaps. For an Ethernet frame they add up to 70 bytes.
const HEAD_BYTES: usize = 128;
/// Slots begin at a multiple of a cache line. The kernel requires a multiple of 16 (`TPACKET_ALIGNMENT`).
const CACHE_LINE: usize = 64;
/// Min size of one kernel allocation: 32 pages, which are available in fragmented memory too.
const BLOCK_BYTES: usize = 128 * 1024;
/// Min number of slots in a block, so that what is left over at its end is small.
const BLOCK_SLOTS: usize = 8;

/// A ring of frames and the counter that stamps them.
#[derive(Debug)]
pub(crate) struct PerFrameRing {
    socket: PacketSocket,
    slots: Arc<Slots>,
    counter: Counter,
    /// Frames passed on since the ring was opened; the next one is in slot `acquired % slots`.
    acquired: usize,
}

/// The slots, with the count of released ones.
#[derive(Debug)]
struct Slots {
    memory: Mapping,
    slot_bytes: usize,
    block_bytes: usize,
    /// Slots in each block.
    in_block: usize,
    count: usize,
    snaplen: u32,
    released: AtomicUsize,
}

impl PerFrameRing {
    pub(crate) fn open(
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
        counter: Counter,
    ) -> Result<Self, Error> {
        let failed = |e| Error::system("set up the ring", &interface.name, "cap_net_raw", e);
        let version = libc::tpacket_versions::TPACKET_V2;
        let socket = super::socket(interface, version, filter, setup)?;
        let snaplen = setup.snaplen.min(longest_frame(interface)?);
        let slots = Slots::allocate(&socket, snaplen, setup.bytes).map_err(failed)?;
        socket.bind(interface, setup)?;
        Ok(Self { socket, slots: Arc::new(slots), counter, acquired: 0 })
    }

    /// Snap length: max bytes kept of each packet. At most a full frame of the interface, because every slot has
    /// room for the longest packet.
    pub(crate) fn snaplen(&self) -> u32 {
        self.slots.snaplen
    }
}

impl Slots {
    fn allocate(socket: &PacketSocket, snaplen: u32, ring_bytes: usize) -> io::Result<Self> {
        let slot_bytes = slot_bytes(snaplen);
        let block_bytes = block_bytes(slot_bytes);
        let in_block = block_bytes / slot_bytes;
        let blocks = (ring_bytes / block_bytes).max(1);
        let count = blocks * in_block;
        let to_u32 = |n: usize| u32::try_from(n).map_err(|_| io::ErrorKind::OutOfMemory);
        let request = libc::tpacket_req {
            tp_block_size: to_u32(block_bytes)?,
            tp_block_nr: to_u32(blocks)?,
            tp_frame_size: to_u32(slot_bytes)?,
            tp_frame_nr: to_u32(count)?,
        };
        socket.set(libc::PACKET_RX_RING, &request)?;
        let memory = Mapping::shared(socket.as_fd(), 0, blocks * block_bytes, Access::ReadWrite)?;
        let released = AtomicUsize::new(0);
        Ok(Self { memory, slot_bytes, block_bytes, in_block, count, snaplen, released })
    }

    /// Start of the slot of the `nth` frame.
    fn offset(&self, nth: usize) -> usize {
        let slot = nth % self.count;
        slot / self.in_block * self.block_bytes + slot % self.in_block * self.slot_bytes
    }

    /// The frame in the slot at `offset`, which the status word has released to this process.
    fn frame(&self, offset: usize, status: u32, raw: u64, ticket: Ticket) -> Frame {
        let header: libc::tpacket2_hdr = self.memory.load(offset);
        let captured = header.tp_snaplen;
        let offset = offset + usize::from(header.tp_mac);
        // Other kernel stamps are taken when the kernel copies the packet, and do not measure the lag.
        let on_arrival = status & libc::TP_STATUS_TS_SOFTWARE != 0;
        let kernel = on_arrival
            .then(|| u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec));
        let place = FramePlace { memory: &self.memory, offset, captured };
        let tag = VlanTag { status, tci: header.tp_vlan_tci, tpid: header.tp_vlan_tpid };
        // The slot is ours until it is released, and PACKET_RESERVE left room for a tag.
        Frame::new(raw, kernel, place, header.tp_len, ticket).with_tag(place, tag, self.snaplen)
    }
}

/// Size of a slot for `snaplen` bytes of a packet. A full frame of an interface with an MTU of 1500 takes 1664 bytes.
fn slot_bytes(snaplen: u32) -> usize {
    (HEAD_BYTES + snaplen as usize).next_multiple_of(CACHE_LINE)
}

/// Size of a block of such slots: a power of two, because the kernel allocates powers of two.
fn block_bytes(slot_bytes: usize) -> usize {
    (BLOCK_SLOTS * slot_bytes).next_power_of_two().max(BLOCK_BYTES)
}

impl FrameMemory for Slots {
    fn release(&self, ticket: Ticket) {
        if let Ticket::Release(nth) = ticket {
            let status = self.memory.word(self.offset(nth));
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.released.store(nth + 1, Ordering::Release);
        }
    }
}

impl Receiver for PerFrameRing {
    fn frame_memory(&self) -> Arc<dyn FrameMemory> {
        Arc::clone(&self.slots) as _
    }

    fn capacity(&self) -> usize {
        self.slots.count
    }

    fn acquire(&mut self, room: usize, mut take: impl FnMut(Frame)) -> usize {
        // A slot in use keeps its status: if all slots are in use, the next slot has no new frame.
        let in_use = self.acquired - self.slots.released.load(Ordering::Acquire);
        let room = room.min(self.slots.count - in_use);
        let first = self.acquired;
        while self.acquired - first < room {
            let offset = self.slots.offset(self.acquired);
            let status = self.slots.memory.word(offset).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            let raw = self.counter.read();
            take(self.slots.frame(offset, status, raw, Ticket::Release(self.acquired)));
            self.acquired += 1;
        }
        self.acquired - first
    }

    fn is_exhausted(&self) -> bool {
        self.acquired - self.slots.released.load(Ordering::Acquire) == self.slots.count
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn close_intake(&mut self) -> io::Result<()> {
        self.socket.reject_all()
    }

    fn counts(&mut self) -> io::Result<KernelCounts> {
        self.socket.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_the_snap_length_and_fill_their_blocks() {
        let sizes = [1, 64, 128, 129, 1518, 9018, 65_554].map(slot_bytes);
        assert_eq!(sizes, [192, 192, 256, 320, 1664, 9152, 65_728]);
        let blocks = sizes.map(block_bytes).map(|bytes| bytes >> 10);
        assert_eq!(blocks, [128, 128, 128, 128, 128, 128, 1024]);
        for slot in sizes {
            let rest = block_bytes(slot) % slot;
            assert!(rest * BLOCK_SLOTS < block_bytes(slot), "{slot}: {rest} bytes of a block");
        }
    }
}
