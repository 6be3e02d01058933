//! `libpcap`: packets as tcpdump gets them, from the ring that libpcap keeps (pcap(3PCAP)).
//!
//! libpcap owns the ring and what is read from it lives until the next call only, so each packet is
//! copied into a pool of ours. The memory asked for is shared between the two: one half for the
//! ring, which has 512 KiB at least, and one for the pool. libpcap makes do with less than it was
//! asked for if the kernel has no more, which it does not tell.
//!
//! What libpcap would do less exactly is done at its socket, which it gives out a descriptor of:
//!
//! - The filter is attached there. `pcap_setfilter` runs it once more over the first block's
//!   packets, which are cut by then, so that with a short snap length none of them may pass; and
//!   where the kernel refuses the filter, libpcap applies it alone. Neither is counted.
//! - Outgoing packets that are not wanted are ignored there. `pcap_setdirection` skips them after
//!   the kernel has counted them.
//! - Packets and drops are counted there. `pcap_stats` takes the same two numbers, adds them up in
//!   32 bits, and reads the interface's own drops from a sysfs that may show another network
//!   namespace, and from columns that many drivers leave at zero (libpcap issue 1328); the ledger
//!   has them from `/proc/net/dev`.
//!
//! What libpcap does not tell: whether a kernel stamp was taken on the packet's arrival or only
//! when it was copied to the ring. The first packets after the kernel's stamping was switched on
//! may have late ones; the ledger's count of them stays zero, and their acquisition lag is too
//! short. Nor does it tell, with stamps of the network card (`PCAP_TSTAMP_ADAPTER_UNSYNCED`), which
//! packets have the kernel's instead: two clocks in one file, for which reason they are not offered.
#![expect(unsafe_code, reason = "packets are copied into memory that is lent")]

mod sys;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use pcap::{Active, Capture, Packet, PacketHeader};
use wirestamp_clock::Counter;

use crate::Error;
use crate::capabilities::Privileges;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::packet_socket::{PacketSocket, Setup, longest_frame};
use crate::pool::Pool;
use crate::receiver::{Frame, FrameMemory, KernelCounts, Receiver, Ticket};

/// Packets that are handed over at once, so that the converter is woken before many wait for it.
const BATCH: usize = 64;
/// How long the kernel keeps a block that does not fill, in milliseconds, as with `ring`. tcpdump
/// takes a second.
const TIMEOUT_MS: i32 = 10;
/// Bytes of a block of libpcap's (`MAXIMUM_SNAPLEN` of pcap-int.h). With one alone, the kernel
/// would drop every packet that comes while it is read.
const BLOCK_BYTES: usize = 262_144;
/// What the frames of libpcap's ring are too short by in immediate mode: it lays them out for link
/// headers of a multiple of 16 bytes (`create_ring` of pcap-linux.c), and the kernel steps back
/// Ethernet's 14 from there (`tpacket_rcv` of net/packet/af_packet.c).
const MISSING_BYTES: u32 = 2;

/// A handle of libpcap, and the buffers that its packets are copied to.
pub(crate) struct LibPcap {
    pcap: Capture<Active>,
    /// libpcap's socket by another descriptor.
    socket: PacketSocket,
    pool: Arc<Pool>,
    /// What is read for a stamp when libpcap hands a packet over; without it, the kernel's stamp is
    /// the one.
    counter: Option<Counter>,
    /// Packets handed over since the handle was opened; the next one's buffer is the pool's
    /// `acquired`th.
    acquired: usize,
}

impl LibPcap {
    /// Opens a handle in the calling thread's network namespace.
    pub(crate) fn open(
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
        counter: Option<Counter>,
    ) -> Result<Self, Error> {
        let failed = |e| Error::system("set up libpcap", &interface.name, "cap_net_raw", e);
        let half = setup.bytes / 2;
        let setup = Setup { snaplen: setup.snaplen.min(longest_frame(interface)?), ..*setup };
        // A raw stamp is taken when the packet is handed over, and a block is handed over when it
        // is full or old. The kernel's stamps are the same either way, and blocks cost less.
        let immediate = counter.is_some();
        let pcap = activate(&interface.name, setup.snaplen, half, immediate)
            .map_err(|reason| failed(cause(reason)))?;
        let socket = pcap.as_fd().try_clone_to_owned().map_err(failed)?;
        let socket = PacketSocket::prepare(socket, interface, filter, &setup)?;
        let pool = Arc::new(Pool::allocate(setup.snaplen, half).map_err(failed)?);
        socket.bind(interface, &setup)?;
        Ok(Self { pcap, socket, pool, counter, acquired: 0 })
    }

    /// Bytes kept of each packet at the most: what was asked for, or a full frame of the interface
    /// if that is less, because every buffer could hold the longest.
    pub(crate) fn snaplen(&self) -> u32 {
        self.pool.snaplen()
    }
}

/// A handle that is set up, does not block, and has nothing let in yet.
fn activate(
    interface: &str,
    snaplen: u32,
    bytes: usize,
    immediate: bool,
) -> Result<Capture<Active>, String> {
    let words = |error: pcap::Error| match error {
        pcap::Error::PcapError(reason) => reason,
        other => other.to_string(),
    };
    let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let pcap = Capture::from_device(interface)
        .map_err(words)?
        .snaplen(number((snaplen + MISSING_BYTES) as usize))
        .buffer_size(number(bytes.max(2 * BLOCK_BYTES)))
        .timeout(TIMEOUT_MS)
        .immediate_mode(immediate);
    sys::stamp_in_nanoseconds(&pcap)?;
    sys::let_nothing_in(&pcap);
    pcap.open().and_then(Capture::setnonblock).map_err(words)
}

/// What libpcap's words for a failure mean; they do not say what to do about missing privileges.
fn cause(reason: String) -> io::Error {
    if Privileges::of_this_thread().net_raw {
        io::Error::other(reason)
    } else {
        io::ErrorKind::PermissionDenied.into()
    }
}

/// The kernel's stamp in nanoseconds of `CLOCK_REALTIME`.
fn stamp(header: &PacketHeader) -> u64 {
    // Of the precision asked for, the second field has nanoseconds.
    let nanos = i128::from(header.ts.tv_sec) * 1_000_000_000 + i128::from(header.ts.tv_usec);
    u64::try_from(nanos).unwrap_or(0)
}

/// Copies `packet` to the `nth` buffer handed out, which has not been given back before.
fn copy(packet: &Packet<'_>, raw: Option<u64>, pool: &Pool, nth: usize) -> Frame {
    let kernel = stamp(packet.header);
    let bytes = &packet.data[..packet.data.len().min(pool.snaplen() as usize)];
    let data = pool.packet(nth);
    // SAFETY: a buffer has room for so many bytes, it is not on loan, and libpcap's memory is not
    // in the pool.
    unsafe { data.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len()) };
    Frame {
        raw: raw.unwrap_or(kernel),
        kernel: raw.and(Some(kernel)),
        data,
        captured: u32::try_from(bytes.len()).unwrap_or(pool.snaplen()),
        length: packet.header.len,
        ticket: Ticket::Release(nth),
    }
}

impl Receiver for LibPcap {
    const NAP: Option<Duration> = None;

    fn frame_memory(&self) -> Arc<dyn FrameMemory> {
        Arc::clone(&self.pool) as _
    }

    fn acquire(&mut self, room: usize, mut take: impl FnMut(Frame)) -> usize {
        let room = room.min(BATCH).min(self.pool.free(self.acquired));
        let before = self.acquired;
        // An error says that the interface is gone, again and again, while packets that came before
        // are still in a block. Whoever gets nothing asks after the interface itself.
        let _ = self.pcap.dispatch(Some(room), |packet| {
            let raw = self.counter.map(|counter| counter.read());
            take(copy(&packet, raw, &self.pool, self.acquired));
            self.acquired += 1;
        });
        self.acquired - before
    }

    fn is_exhausted(&self) -> bool {
        self.pool.free(self.acquired) == 0
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn close_intake(&mut self) -> io::Result<()> {
        self.socket.refuse_all()
    }

    fn counts(&mut self) -> io::Result<KernelCounts> {
        self.socket.counts()
    }
}
