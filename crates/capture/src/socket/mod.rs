//! `recvmsg` and `recvmmsg`: a packet socket without a ring, packet(7). A system call copies packets into a pool of
//! buffers.
//!
//! Packets wait in the socket's queue until a buffer is free. The kernel drops and counts packets that find no room
//! in the queue. Queue and pool each get half of the requested memory.

mod recvmmsg;
mod recvmsg;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use wirestamp_clock::Counter;
use wirestamp_sys::control_message::PacketFacts;
use wirestamp_sys::socket::{enlarge_receive_buffer, option};

pub(crate) use self::recvmmsg::Recvmmsg;
pub(crate) use self::recvmsg::Recvmsg;
use crate::Error;
use crate::card_stamps;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::packet_socket::{PacketSocket, Setup, longest_frame};
use crate::pool::Pool;
use crate::receiver::{Frame, FrameMemory, KernelCounts, Receiver, Ticket};

/// Max packets passed on at once: enough to amortize a system call, few enough to wake the converter early.
const BATCH: usize = 64;

/// A packet of the last call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fetched {
    /// Captured bytes.
    captured: u32,
    facts: PacketFacts,
}

/// The system call of a method.
pub(crate) trait Call: Send {
    /// The call, with its own memory.
    fn new() -> Self;

    /// Receives up to `most` packets from `socket` into the pool's buffers, from the `first` on. Returns their
    /// number; 0 if no packet is waiting.
    fn fetch(&mut self, socket: BorrowedFd<'_>, pool: &Pool, first: usize, most: usize) -> usize;

    /// The `nth` packet of the last call.
    fn fetched(&self, nth: usize) -> Fetched;
}

/// A packet socket read by system calls.
pub(crate) struct Socket<C> {
    socket: PacketSocket,
    pool: Arc<Pool>,
    call: C,
    /// Counter that stamps packets after each call; without it, the kernel's stamp of the arrival is used.
    counter: Option<Counter>,
    /// Whether the network card stamps.
    by_card: bool,
    /// Packets passed on since the socket was opened; the next one's buffer is the pool's `acquired`th.
    acquired: usize,
    stamped_late: u64,
    shortage: Option<String>,
}

impl<C: Call> Socket<C> {
    pub(crate) fn open(
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
        counter: Option<Counter>,
    ) -> Result<Self, Error> {
        let failed = |e| Error::system("set up the socket", &interface.name, "cap_net_raw", e);
        let socket = PacketSocket::open(interface, filter, setup)?;
        socket.set(libc::PACKET_AUXDATA, &1).map_err(failed)?;
        let half = setup.bytes / 2;
        let shortage = size_queue(&socket, half).map_err(failed)?;
        let snaplen = setup.snaplen.min(longest_frame(interface)?);
        let pool = Arc::new(Pool::allocate(snaplen, half).map_err(failed)?);
        socket.bind(interface, setup)?;
        let (by_card, call) = (setup.card_stamps, C::new());
        let (acquired, stamped_late) = (0, 0);
        Ok(Self { socket, pool, call, counter, by_card, acquired, stamped_late, shortage })
    }

    /// Snap length: max bytes kept of each packet. At most a full frame of the interface, because every buffer has
    /// room for the longest packet.
    pub(crate) fn snaplen(&self) -> u32 {
        self.pool.snaplen()
    }

    /// Note for the user if the kernel granted a shorter queue.
    pub(crate) fn shortage(&self) -> Option<&str> {
        self.shortage.as_deref()
    }

    /// The stamp, and the kernel's own if that differs.
    fn stamps(&mut self, facts: PacketFacts) -> (u64, Option<u64>) {
        let requested = if self.by_card { facts.hardware } else { facts.arrival };
        if let Some(stamp) = requested {
            return (stamp, None);
        }
        self.stamped_late += 1;
        let kernel = facts.arrival.unwrap_or_else(now);
        if self.by_card { (card_stamps::NONE, Some(kernel)) } else { (kernel, None) }
    }

    /// The frame of the next buffer, which holds `fetched`; `counter` was read after the call, if it stamps.
    fn frame(&mut self, fetched: Fetched, counter: Option<u64>) -> Frame {
        let Fetched { captured, facts } = fetched;
        let (raw, kernel) = match counter {
            Some(counter) => (counter, facts.arrival),
            None => self.stamps(facts),
        };
        let place = self.pool.place(self.acquired, captured);
        let length = facts.length.unwrap_or(captured);
        let frame = Frame::new(raw, kernel, place, length, Ticket::Release(self.acquired));
        let frame = frame.with_tag(place, facts.tag, self.pool.snaplen());
        self.acquired += 1;
        frame
    }
}

/// Sets the size of the socket's queue to `bytes`. Returns a note if the kernel grants less: without
/// `CAP_NET_ADMIN`, `net.core.rmem_max` is the limit (socket(7), `SO_RCVBUFFORCE`).
fn size_queue(socket: &PacketSocket, bytes: usize) -> io::Result<Option<String>> {
    // The kernel doubles the requested size, in a number of the same type.
    let half = u32::try_from(bytes / 2).unwrap_or(u32::MAX).min(i32::MAX.cast_unsigned() / 2);
    enlarge_receive_buffer(socket, half as usize)?;
    let granted: u32 = option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    Ok((granted < 2 * half).then(|| {
        format!(
            "the socket's queue holds {} KiB instead of {}: grant cap_net_admin too, or raise \
             net.core.rmem_max with sysctl",
            granted / 1024,
            2 * half / 1024
        )
    }))
}

/// Stamp for a packet that the kernel did not stamp, in nanoseconds of `CLOCK_REALTIME`.
fn now() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Makes a system call that does not wait. None if there is no packet.
fn attempt<T>(mut call: impl FnMut() -> io::Result<T>) -> Option<T> {
    loop {
        match call().map_err(|error| error.raw_os_error()) {
            Ok(fetched) => return Some(fetched),
            // The kernel reports an interface that goes down once, before the packets that arrived earlier.
            Err(Some(libc::EINTR | libc::ENETDOWN)) => {}
            Err(_) => return None,
        }
    }
}

impl<C: Call> Receiver for Socket<C> {
    fn frame_memory(&self) -> Arc<dyn FrameMemory> {
        Arc::clone(&self.pool) as _
    }

    fn capacity(&self) -> usize {
        self.pool.count()
    }

    fn acquire(&mut self, room: usize, mut take: impl FnMut(Frame)) -> usize {
        let room = room.min(BATCH).min(self.pool.free(self.acquired));
        let mut taken = 0;
        while taken < room {
            let count =
                self.call.fetch(self.socket.as_fd(), &self.pool, self.acquired, room - taken);
            let counter = self.counter.map(|counter| counter.read());
            if count == 0 {
                break;
            }
            for nth in 0..count {
                take(self.frame(self.call.fetched(nth), counter));
            }
            taken += count;
        }
        taken
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
        let counts = self.socket.counts()?;
        Ok(KernelCounts { stamped_late: self.stamped_late, ..counts })
    }
}
