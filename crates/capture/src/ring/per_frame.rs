//! `ring` with `raw` stamps: TPACKET_V2, one status word for each frame, so that the acquisition
//! thread sees a packet the moment it is there and reads the counter for it alone.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wirestamp_clock::Counter;

use super::Setup;
use super::socket::PacketSocket;
use super::vlan::{self, TAG_BYTES, Tag};
use crate::Error;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::mapping::Mapping;
use crate::receiver::{Frame, KernelCounts, Lender, Receiver, Ticket};

/// The largest frame that a slot has room for, whatever the snap length: a full-size Ethernet
/// frame takes a slot of 2 KiB; a coalesced one of 64 KiB is cut, and its length says so.
const LARGEST_SLOT: usize = 16 * 1024;
/// Slots per block. Blocks are what the kernel allocates in one piece: 32 pages at the most here.
const BLOCK_BYTES: usize = 128 * 1024;

/// A ring of frames and the counter that stamps them.
#[derive(Debug)]
pub(crate) struct PerFrameRing {
    socket: PacketSocket,
    slots: Arc<Slots>,
    counter: Counter,
    /// Frames handed over since the ring was opened; the next one is in slot `acquired % slots`.
    acquired: usize,
}

/// The slots, and how many of those handed over have come back.
#[derive(Debug)]
struct Slots {
    memory: Mapping,
    slot_bytes: usize,
    count: usize,
    returned: AtomicUsize,
}

impl PerFrameRing {
    pub(crate) fn open(
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
        counter: Counter,
    ) -> Result<Self, Error> {
        let failed = |e| Error::system("set up the ring", &interface.name, "cap_net_raw", e);
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        let socket = PacketSocket::open(interface, version, filter, setup)?;
        let slots = Slots::allocate(&socket, setup).map_err(failed)?;
        socket.bind(interface)?;
        Ok(Self { socket, slots: Arc::new(slots), counter, acquired: 0 })
    }
}

impl Slots {
    fn allocate(socket: &PacketSocket, setup: &Setup) -> io::Result<Self> {
        // Header, address and the kernel's alignment of the packet behind them stay below 128.
        let wanted = 128 + TAG_BYTES as usize + setup.snaplen as usize;
        let slot_bytes = wanted.next_power_of_two().clamp(256, LARGEST_SLOT);
        let blocks = (setup.bytes / BLOCK_BYTES).max(1);
        let count = blocks * (BLOCK_BYTES / slot_bytes);
        let to_u32 = |n: usize| u32::try_from(n).map_err(|_| io::ErrorKind::InvalidInput);
        let request = libc::tpacket_req {
            tp_block_size: to_u32(BLOCK_BYTES)?,
            tp_block_nr: to_u32(blocks)?,
            tp_frame_size: to_u32(slot_bytes)?,
            tp_frame_nr: to_u32(count)?,
        };
        socket.set(libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let memory = Mapping::new(socket.as_fd(), 0, blocks * BLOCK_BYTES, protection)?;
        Ok(Self { memory, slot_bytes, count, returned: AtomicUsize::new(0) })
    }

    /// Where the slot of the `nth` frame begins.
    fn offset(&self, nth: usize) -> usize {
        nth % self.count * self.slot_bytes
    }

    /// The frame in the slot at `offset`, whose status word has said that it is ours.
    fn frame(&self, offset: usize, status: u32, raw: u64, ticket: Ticket) -> Frame {
        let header = self.memory.at(offset, size_of::<libc::tpacket2_hdr>());
        // SAFETY: the kernel wrote a tpacket2_hdr there before it gave the slot to us; slots are
        // aligned to their size, a power of two of at least 256.
        let header = unsafe { header.cast::<libc::tpacket2_hdr>().read() };
        let mac = usize::from(header.tp_mac);
        let room = self.slot_bytes.saturating_sub(mac);
        let captured = header.tp_snaplen.min(u32::try_from(room).unwrap_or(u32::MAX));
        let data = self.memory.at(offset + mac, captured as usize);
        let kernel = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        let mut frame =
            Frame { raw, kernel: Some(kernel), data, captured, length: header.tp_len, ticket };
        let tag = Tag { status, tci: header.tp_vlan_tci, tpid: header.tp_vlan_tpid };
        // SAFETY: the slot is ours until it is given back, and PACKET_RESERVE left the room that a
        // tag needs before the packet.
        unsafe { vlan::restore(&mut frame, tag) };
        frame
    }
}

impl Lender for Slots {
    fn give_back(&self, ticket: Ticket) {
        if let Ticket::Release(nth) = ticket {
            let status = self.memory.word(self.offset(nth));
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.returned.store(nth + 1, Ordering::Release);
        }
    }
}

impl Receiver for PerFrameRing {
    fn lender(&self) -> Arc<dyn Lender> {
        Arc::clone(&self.slots) as _
    }

    fn acquire(&mut self, room: usize, mut take: impl FnMut(Frame)) -> usize {
        // A slot that we hold still says "yours": when all are out, the next one is not news.
        let out = self.acquired - self.slots.returned.load(Ordering::Acquire);
        let room = room.min(self.slots.count - out);
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

    fn descriptor(&self) -> RawFd {
        self.socket.as_fd().as_raw_fd()
    }

    fn close_intake(&mut self) -> io::Result<()> {
        self.socket.refuse_all()
    }

    fn counts(&mut self) -> io::Result<KernelCounts> {
        self.socket.counts()
    }
}
