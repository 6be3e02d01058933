//! `ring` with `kernel` and `hardware` stamps: TPACKET_V3. A block holds as many packets as fit, and is released as
//! a whole.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wirestamp_sys::control_message::VlanTag;
use wirestamp_sys::mmap::{Access, Mapping};

use super::cooked;
use crate::Error;
use crate::card_stamps;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::packet_socket::{PacketSocket, Setup};
use crate::receiver::{Frame, FrameMemory, FramePlace, KernelCounts, Receiver, Ticket};

/// Block sizes. Each block costs a wake-up, so large ones are cheap, and on a quiet link they are released as early
/// as small ones. But some must be free while others are read. The smallest holds any packet with its header.
const BLOCK_BYTES: RangeInclusive<usize> = 256 * 1024..=1024 * 1024;
/// A ring of this many blocks is preferred to larger blocks.
const BLOCKS: usize = 32;
/// How long the kernel keeps a block that does not fill, in milliseconds. A wake-up takes about 0.1 ms of a core in
/// total; ten a second are enough for live output.
const RETIRE_MS: u32 = 100;
/// The same for a socket that shares packets with others. The merge waits for it ([`crate::MERGE_TIMEOUT`]).
const SHARED_RETIRE_MS: u32 = 10;

mod field {
    //! Offsets in `struct tpacket_block_desc` and its `tpacket_hdr_v1` (linux/if_packet.h).
    pub(super) const STATUS: usize = 8;
    pub(super) const PACKETS: usize = 12;
    pub(super) const FIRST_PACKET: usize = 16;
}

/// Offset of the address behind a packet's header: aligned to 16 bytes (`TPACKET_ALIGN` of linux/if_packet.h).
const ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(16);

/// The stamp is the network card's (linux/if_packet.h).
const TP_STATUS_TS_RAW_HARDWARE: u32 = 1 << 31;

/// A ring of blocks.
#[derive(Debug)]
pub(crate) struct BlockRing {
    socket: PacketSocket,
    blocks: Arc<Blocks>,
    /// Blocks opened since the ring was opened; the next one is `opened % count`.
    opened: usize,
    /// Position in the block being read.
    current: Option<Cursor>,
    stamped_late: u64,
}

#[derive(Clone, Copy, Debug)]
struct Cursor {
    block: usize,
    offset: usize,
    left: u32,
}

/// The blocks, with the count of released ones.
#[derive(Debug)]
struct Blocks {
    memory: Mapping,
    block_bytes: usize,
    count: usize,
    snaplen: u32,
    /// Whether the network card's stamps are enabled.
    by_card: bool,
    /// Whether packets have no link header, and get one with their interface.
    is_cooked: bool,
    released: AtomicUsize,
}

impl BlockRing {
    pub(crate) fn open(
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
    ) -> Result<Self, Error> {
        let failed = |e| Error::system("set up the ring", &interface.name, "cap_net_raw", e);
        let version = libc::tpacket_versions::TPACKET_V3;
        let socket = super::socket(interface, version, filter, setup)?;
        let blocks = Blocks::allocate(&socket, setup, interface.is_cooked()).map_err(failed)?;
        let blocks = Arc::new(blocks);
        socket.bind(interface, setup)?;
        Ok(Self { socket, blocks, opened: 0, current: None, stamped_late: 0 })
    }

    /// The block being read, or the next one the kernel has finished.
    fn cursor(&mut self) -> Option<Cursor> {
        if self.current.is_none() {
            self.current = self.blocks.open(self.opened);
            self.opened += usize::from(self.current.is_some());
            // The kernel keeps a block open until it has a packet, so an empty one is not expected; it is released at
            // once.
            if let Some(Cursor { block, left: 0, .. }) = self.current {
                self.blocks.release(Ticket::Release(block));
                self.current = None;
            }
        }
        self.current
    }
}

impl Blocks {
    fn allocate(socket: &PacketSocket, setup: &Setup, is_cooked: bool) -> io::Result<Self> {
        let block_bytes = block_bytes(setup.bytes);
        let count = (setup.bytes / block_bytes).max(2);
        let to_u32 = |n: usize| u32::try_from(n).map_err(|_| io::ErrorKind::OutOfMemory);
        let frame_bytes = 2048; // checked by the kernel, but without meaning in version 3
        let request = libc::tpacket_req3 {
            tp_block_size: to_u32(block_bytes)?,
            tp_block_nr: to_u32(count)?,
            tp_frame_size: frame_bytes,
            tp_frame_nr: to_u32(count * block_bytes)? / frame_bytes,
            tp_retire_blk_tov: if setup.fanout.is_some() { SHARED_RETIRE_MS } else { RETIRE_MS },
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket.set(libc::PACKET_RX_RING, &request)?;
        let memory = Mapping::shared(socket.as_fd(), 0, count * block_bytes, Access::ReadWrite)?;
        let Setup { snaplen, card_stamps: by_card, .. } = *setup;
        let released = AtomicUsize::new(0);
        Ok(Self { memory, block_bytes, count, snaplen, by_card, is_cooked, released })
    }

    fn offset(&self, nth: usize) -> usize {
        nth % self.count * self.block_bytes
    }

    /// A cursor on the first packet of the `nth` block, if the kernel has finished it.
    fn open(&self, nth: usize) -> Option<Cursor> {
        if nth - self.released.load(Ordering::Acquire) == self.count {
            return None; // every block is in use
        }
        let start = self.offset(nth);
        let status = self.memory.word(start + field::STATUS).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let left = self.memory.word(start + field::PACKETS).load(Ordering::Relaxed);
        let first = self.memory.word(start + field::FIRST_PACKET).load(Ordering::Relaxed);
        Some(Cursor { block: nth, offset: start + first as usize, left })
    }

    /// The packet at the cursor, the offset of the next one, and whether this one was stamped later than requested.
    #[expect(clippy::inline_always, reason = "a frame returned through memory takes 10 ns longer")]
    #[inline(always)]
    fn frame(&self, cursor: Cursor) -> (Frame, usize, bool) {
        let header: libc::tpacket3_hdr = self.memory.load(cursor.offset);
        let captured = header.tp_snaplen;
        let offset = cursor.offset + usize::from(header.tp_mac);
        let time = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        let Stamped { raw, kernel, late } = stamped(header.tp_status, time, self.by_card);
        let ticket = if cursor.left == 1 { Ticket::Release(cursor.block) } else { Ticket::Later };
        let tag = VlanTag {
            status: header.tp_status,
            // The 16-bit tag control information, which the kernel stores in 32.
            tci: (header.hv1.tp_vlan_tci & 0xffff) as u16,
            tpid: header.hv1.tp_vlan_tpid,
        };
        let place = FramePlace { memory: &self.memory, offset, captured };
        // The block is ours until it is released, and PACKET_RESERVE left room for a tag. Without a link header the kernel
        // leaves 16 more bytes free (`tpacket_rcv` of net/packet/af_packet.c), together enough for a cooked header.
        let frame = Frame::new(raw, kernel, place, header.tp_len, ticket);
        let frame = if self.is_cooked {
            let from: libc::sockaddr_ll = self.memory.load(cursor.offset + ADDRESS);
            frame.with_header(place, &cooked::header(&from), self.snaplen)
        } else {
            frame.with_tag(place, tag, self.snaplen)
        };
        (frame, header.tp_next_offset as usize, late)
    }
}

/// The stamp in a packet's header, classified.
#[derive(Debug, PartialEq, Eq)]
struct Stamped {
    raw: u64,
    kernel: Option<u64>,
    late: bool,
}

/// Classifies the stamp in a packet's header by its status. The kernel stores the network card's stamp if that is
/// enabled and exists, otherwise its own stamp of the arrival, otherwise the current time (`tpacket_rcv` of
/// net/packet/af_packet.c).
fn stamped(status: u32, time: u64, by_card: bool) -> Stamped {
    if !by_card {
        let late = status & libc::TP_STATUS_TS_SOFTWARE == 0;
        return Stamped { raw: time, kernel: None, late };
    }
    match status & TP_STATUS_TS_RAW_HARDWARE {
        0 => Stamped { raw: card_stamps::NONE, kernel: Some(time), late: true },
        _ => Stamped { raw: time, kernel: None, late: false },
    }
}

/// Block size in a ring of `ring` bytes.
fn block_bytes(ring: usize) -> usize {
    let size = (ring / BLOCKS).max(1);
    (1 << size.ilog2()).clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end())
}

impl FrameMemory for Blocks {
    fn release(&self, ticket: Ticket) {
        if let Ticket::Release(nth) = ticket {
            let status = self.memory.word(self.offset(nth) + field::STATUS);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.released.fetch_add(1, Ordering::Release);
        }
    }
}

impl Receiver for BlockRing {
    const COLLECT_TIME: Option<Duration> = None;

    fn frame_memory(&self) -> Arc<dyn FrameMemory> {
        Arc::clone(&self.blocks) as _
    }

    fn acquire(&mut self, room: usize, mut take: impl FnMut(Frame)) -> usize {
        let mut taken = 0;
        while taken < room {
            let Some(mut cursor) = self.cursor() else { break };
            while taken < room && cursor.left > 0 {
                let (frame, next, late) = self.blocks.frame(cursor);
                self.stamped_late += u64::from(late);
                cursor.offset += next;
                cursor.left -= 1;
                take(frame);
                taken += 1;
            }
            self.current = (cursor.left > 0).then_some(cursor);
        }
        taken
    }

    fn is_exhausted(&self) -> bool {
        self.opened - self.blocks.released.load(Ordering::Acquire) == self.blocks.count
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn close_intake(&mut self) -> io::Result<()> {
        self.socket.reject_all()
    }

    fn counts(&mut self) -> io::Result<KernelCounts> {
        let counts = self.socket.counts()?;
        Ok(KernelCounts { stamped_late: self.stamped_late, ..counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_size_grows_with_the_ring_within_bounds() {
        let sizes = [0, 1 << 20, 8 << 20, 20 << 20, 32 << 20, 1 << 30].map(block_bytes);
        assert_eq!(sizes.map(|size| size >> 10), [256, 256, 256, 512, 1024, 1024]);
    }

    #[test]
    fn status_decides_whose_stamp_it_is() {
        let software = libc::TP_STATUS_USER | libc::TP_STATUS_TS_SOFTWARE;
        let hardware = libc::TP_STATUS_USER | TP_STATUS_TS_RAW_HARDWARE;
        let kernel_stamp = |late| Stamped { raw: 7, kernel: None, late };
        assert_eq!(stamped(software, 7, false), kernel_stamp(false));
        assert_eq!(stamped(libc::TP_STATUS_USER, 7, false), kernel_stamp(true));
        assert_eq!(stamped(hardware, 7, true), Stamped { raw: 7, kernel: None, late: false });
        for status in [software, libc::TP_STATUS_USER] {
            let instead = Stamped { raw: card_stamps::NONE, kernel: Some(7), late: true };
            assert_eq!(stamped(status, 7, true), instead);
        }
    }
}
