//! `recvmsg` and `recvmmsg`: a packet socket without a ring, packet(7), whose packets a system
//! call copies into a pool of buffers of ours.
//!
//! A packet waits in the socket's queue until a buffer is free; what finds no room in the queue is
//! dropped and counted by the kernel. The memory asked for is shared between the two: one half
//! for the queue, one for the pool.
#![expect(unsafe_code, reason = "system calls that write to memory of ours")]

mod control;
mod recvmmsg;
mod recvmsg;

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use wirestamp_clock::Counter;

#[cfg(fuzzing)]
pub(crate) use self::control::read_any;
use self::control::{Control, Said};
pub(crate) use self::recvmmsg::Recvmmsg;
pub(crate) use self::recvmsg::Recvmsg;
use crate::Error;
use crate::card_stamps;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::packet_socket::{PacketSocket, Setup, longest_frame};
use crate::pool::Pool;
use crate::receiver::{Frame, KernelCounts, Lender, Receiver, Ticket};
use crate::vlan;

/// Packets that are handed over at once: enough to spread the cost of a call that can fetch so
/// many, few enough for the converter to be woken before many wait for it.
const BATCH: usize = 64;

/// A packet of the last call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fetched {
    /// How many bytes of it were captured.
    captured: u32,
    said: Said,
}

/// The system call that a method is named after.
pub(crate) trait Call: Send {
    /// The call, with the memory that it needs besides the packets'.
    fn new() -> Self;

    /// Fetches up to `most` packets from `socket` into the pool's buffers from the `first` on, or
    /// one if it can do no more. Returns how many; none waits if it is 0.
    fn fetch(&mut self, socket: BorrowedFd<'_>, pool: &Pool, first: usize, most: usize) -> usize;

    /// The `nth` packet of the last call.
    fn fetched(&self, nth: usize) -> Fetched;
}

/// A packet socket whose packets are fetched by system calls.
pub(crate) struct Socket<C> {
    socket: PacketSocket,
    pool: Arc<Pool>,
    call: C,
    /// What is read for a stamp when a call has returned; without it, the kernel's word for the
    /// packet's arrival is the stamp.
    counter: Option<Counter>,
    /// Whether the stamp is the network card's.
    by_card: bool,
    /// Packets handed over since the socket was opened; the next one's buffer is the pool's
    /// `acquired`th.
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

    /// Bytes kept of each packet at the most: what was asked for, or a full frame of the interface
    /// if that is less, because every buffer could hold the longest.
    pub(crate) fn snaplen(&self) -> u32 {
        self.pool.snaplen()
    }

    /// Where the kernel granted a shorter queue than was asked for, in words.
    pub(crate) fn shortage(&self) -> Option<&str> {
        self.shortage.as_deref()
    }

    /// The stamp that the kernel hands over, and its own where it is not that.
    fn stamps(&mut self, said: Said) -> (u64, Option<u64>) {
        let asked_for = if self.by_card { said.by_card } else { said.arrival };
        if let Some(stamp) = asked_for {
            return (stamp, None);
        }
        self.stamped_late += 1;
        let kernel = said.arrival.unwrap_or_else(now);
        if self.by_card { (card_stamps::NONE, Some(kernel)) } else { (kernel, None) }
    }

    /// The frame of the next buffer, which holds `fetched`, and the counter after the call, if that
    /// is what stamps.
    fn frame(&mut self, fetched: Fetched, counter: Option<u64>) -> Frame {
        let Fetched { captured, said } = fetched;
        let (raw, kernel) = match counter {
            Some(counter) => (counter, said.arrival),
            None => self.stamps(said),
        };
        let mut frame = Frame {
            raw,
            kernel,
            data: self.pool.packet(self.acquired),
            captured,
            length: said.length.unwrap_or(captured),
            ticket: Ticket::Release(self.acquired),
        };
        // SAFETY: the buffer is ours until it is given back, and has room for a tag before the
        // packet.
        unsafe { vlan::restore(&mut frame, said.tag) };
        // The tag came on top of the snap length.
        frame.captured = frame.captured.min(self.pool.snaplen());
        self.acquired += 1;
        frame
    }
}

/// Has the kernel keep up to `bytes` of packets that wait. Says so if it keeps less: without
/// `CAP_NET_ADMIN`, `net.core.rmem_max` is the limit (socket(7), `SO_RCVBUFFORCE`).
fn size_queue(socket: &PacketSocket, bytes: usize) -> io::Result<Option<String>> {
    // The kernel doubles what it is told, in a number of the same type.
    let half = u32::try_from(bytes / 2).unwrap_or(u32::MAX).min(i32::MAX.cast_unsigned() / 2);
    if socket.set_level(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &half).is_err() {
        socket.set_level(libc::SOL_SOCKET, libc::SO_RCVBUF, &half)?;
    }
    let [granted] = socket.get_level(libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    Ok((granted < 2 * half).then(|| {
        format!(
            "the socket's queue holds {} KiB instead of {}: grant cap_net_admin too, or raise \
             net.core.rmem_max with sysctl",
            granted / 1024,
            2 * half / 1024
        )
    }))
}

/// The time for a packet that the kernel did not stamp, in nanoseconds of `CLOCK_REALTIME`.
fn now() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// The header of a message that goes to `vector`, and what is said of it to `control`.
fn header(vector: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    let room = control.room();
    // SAFETY: a msghdr is plain data, for which all zeroes is a valid value.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header.msg_controllen = room.len();
    header.msg_control = room.as_mut_ptr().cast();
    header
}

/// Makes a system call that does not wait. None says that there is nothing to fetch.
fn attempt<N: TryInto<usize>>(mut call: impl FnMut() -> N) -> Option<usize> {
    loop {
        if let Ok(number) = call().try_into() {
            return Some(number);
        }
        match io::Error::last_os_error().raw_os_error() {
            // An interface that goes down is told once, ahead of the packets that came before.
            Some(libc::EINTR | libc::ENETDOWN) => {}
            _ => return None,
        }
    }
}

impl<C: Call> Receiver for Socket<C> {
    fn lender(&self) -> Arc<dyn Lender> {
        Arc::clone(&self.pool) as _
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

    fn is_lent_out(&self) -> bool {
        self.pool.free(self.acquired) == 0
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn close_intake(&mut self) -> io::Result<()> {
        self.socket.refuse_all()
    }

    fn counts(&mut self) -> io::Result<KernelCounts> {
        let counts = self.socket.counts()?;
        Ok(KernelCounts { stamped_late: self.stamped_late, ..counts })
    }
}
