//! `libpcap`: packets from libpcap's ring, as tcpdump receives them (pcap(3PCAP)).
//!
//! libpcap owns the ring, and returned packets are valid only until the next call, so each packet is copied to a
//! buffer of the pool. Ring (min 512 KiB) and pool each get half of the requested memory. If the kernel has less
//! memory, libpcap uses a smaller ring without reporting it.
//!
//! Three tasks use libpcap's socket directly, because libpcap does them less exactly:
//!
//! - The filter is attached to the socket. `pcap_setfilter` runs it again on the first block's packets, which are
//!   already truncated: with a short snap length, it may reject all of them. If the kernel refuses the filter, libpcap
//!   filters in this process. Neither is counted.
//! - Outgoing packets are ignored at the socket. `pcap_setdirection` skips them after the kernel has counted them.
//! - Packets and drops are counted at the socket. `pcap_stats` reads the same two numbers and adds them up in 32
//!   bits. It reads the interface's drops from a sysfs that may show another network namespace, and from columns that
//!   many drivers leave at zero (libpcap issue 1328); the ledger reads them from `/proc/net/dev`.
//!
//! libpcap does not report whether a kernel stamp was taken on arrival or only when the packet was copied to the
//! ring. The first packets after stamping was enabled may have late stamps: the ledger's count of them stays zero,
//! and their acquisition lag is too short. With stamps of the network card (`PCAP_TSTAMP_ADAPTER_UNSYNCED`),
//! libpcap does not report which packets have the kernel's instead. One file would have two clocks, so these stamps
//! are not supported.

mod sys;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use pcap::{Active, Capture, Linktype, Packet, PacketHeader};
use wirestamp_clock::Counter;
use wirestamp_packet::LinkType;

use crate::Error;
use crate::capabilities::Privileges;
use crate::filter::{DLT_RAW, Filter};
use crate::interface::Interface;
use crate::packet_socket::{PacketSocket, Setup, longest_frame};
use crate::pool::Pool;
use crate::receiver::{Frame, FrameMemory, KernelCounts, Receiver, Ticket};

/// Packets passed on at once, so that the converter is woken early.
const BATCH: usize = 64;
/// How long the kernel keeps a block that does not fill, in milliseconds, as with `ring`. tcpdump uses a second.
const TIMEOUT_MS: i32 = 10;
/// Size of libpcap's blocks (`MAXIMUM_SNAPLEN` of pcap-int.h). With a single block, the kernel would drop every
/// packet that arrives while this process reads the block.
const BLOCK_BYTES: usize = 262_144;
/// Bytes missing in the frames of libpcap's ring in immediate mode: libpcap aligns frames for link headers of a
/// multiple of 16 bytes (`create_ring` of pcap-linux.c), and the kernel subtracts Ethernet's 14 bytes from there
/// (`tpacket_rcv` of net/packet/af_packet.c).
const MISSING_BYTES: u32 = 2;

/// A handle of libpcap, with the buffers for its packets.
pub(crate) struct LibPcap {
    pcap: Capture<Active>,
    /// A second descriptor of libpcap's socket.
    socket: PacketSocket,
    pool: Arc<Pool>,
    /// Counter that stamps each returned packet; without it, the kernel's stamp is used.
    counter: Option<Counter>,
    /// Packets passed on since the handle was opened; the next one's buffer is the pool's `acquired`th.
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
        // A raw stamp is taken when libpcap returns the packet, and a block is returned when it is full or old. The
        // kernel's stamps do not depend on that, and blocks cost less.
        let immediate = counter.is_some();
        let pcap = activate(&interface.name, setup.snaplen, half, immediate)
            .map_err(|reason| failed(cause(reason)))?;
        let expected =
            if interface.link == Some(LinkType::Ip) { DLT_RAW } else { Linktype::ETHERNET };
        if pcap.get_datalink() != expected {
            // For example with IPv6 tunnels: libpcap replaces what it does not know by a header of its own.
            return Err(Error::Unusable {
                interface: interface.name.clone(),
                what: "has a link type that libpcap does not know; use --method ring",
            });
        }
        let socket = pcap.as_fd().try_clone_to_owned().map_err(failed)?;
        let socket = PacketSocket::prepare(socket, interface, filter, &setup)?;
        let pool = Arc::new(Pool::allocate(setup.snaplen, half).map_err(failed)?);
        socket.bind(interface, &setup)?;
        Ok(Self { pcap, socket, pool, counter, acquired: 0 })
    }

    /// Snap length: max bytes kept of each packet. At most a full frame of the interface, because every buffer has
    /// room for the longest packet.
    pub(crate) fn snaplen(&self) -> u32 {
        self.pool.snaplen()
    }
}

/// A handle that is set up, does not block, and receives nothing yet.
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
    sys::block_all_packets(&pcap);
    pcap.open().and_then(Capture::setnonblock).map_err(words)
}

/// The cause of libpcap's error; `PermissionDenied` without `CAP_NET_RAW`, because libpcap's text has no next step.
fn cause(reason: String) -> io::Error {
    if Privileges::of_this_thread().net_raw {
        io::Error::other(reason)
    } else {
        io::ErrorKind::PermissionDenied.into()
    }
}

/// The kernel's stamp in nanoseconds of `CLOCK_REALTIME`.
fn stamp(header: &PacketHeader) -> u64 {
    // In the requested precision, the second field has nanoseconds.
    let nanos = i128::from(header.ts.tv_sec) * 1_000_000_000 + i128::from(header.ts.tv_usec);
    u64::try_from(nanos).unwrap_or(0)
}

/// Copies `packet` to the `nth` buffer, which is free.
fn copy(packet: &Packet<'_>, raw: Option<u64>, pool: &Pool, nth: usize) -> Frame {
    let kernel = stamp(packet.header);
    let captured = packet.data.len().min(pool.snaplen() as usize);
    let captured = u32::try_from(captured).unwrap_or(pool.snaplen());
    let (raw, kernel) = (raw.unwrap_or(kernel), raw.and(Some(kernel)));
    let place = pool.place(nth, captured);
    let mut frame = Frame::new(raw, kernel, place, packet.header.len, Ticket::Release(nth));
    frame.fill(packet.data);
    frame
}

impl Receiver for LibPcap {
    const COLLECT_TIME: Option<Duration> = None;

    fn frame_memory(&self) -> Arc<dyn FrameMemory> {
        Arc::clone(&self.pool) as _
    }

    fn capacity(&self) -> usize {
        self.pool.count()
    }

    fn acquire(&mut self, room: usize, mut take: impl FnMut(Frame)) -> usize {
        let room = room.min(BATCH).min(self.pool.free(self.acquired));
        let before = self.acquired;
        // The error means that the interface is gone, and is repeated while earlier packets are still in a block.
        // The caller checks the interface when it gets no packets.
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
        self.socket.reject_all()
    }

    fn counts(&mut self) -> io::Result<KernelCounts> {
        self.socket.counts()
    }
}
