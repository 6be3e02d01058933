//! The sockets of the stage: whole frames in with the kernel's stamp, whole frames out.
//!
//! All packet sockets of an interface are given the same stamp of a frame, which the kernel takes
//! once, where the frame enters its network stack (`net_timestamp_check` of net/core/dev.c). So
//! what is read here is what a capture with the kernel's stamps on the same interface reads.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use wirestamp_clock::{Span, Time, Utc};

const ETH_P_ALL: u16 = 0x0003; // linux/if_ether.h
/// The header that goes before each frame, in and out: what is left to do for checksums and
/// segments (`PACKET_VNET_HDR` of packet(7), struct `virtio_net_hdr`). Without it, frames whose
/// checksum the kernel has put off would be sent on with a wrong one.
const VNET_HEADER: usize = 10;
/// More than the longest frame there is: 64 KiB joined from segments, and its Ethernet header.
const FRAME_BYTES: usize = 70_000;
/// Ethernet's shortest, without check sequence, and where its type is (IEEE 802.3).
const SHORTEST_FRAME: usize = 60;
const ETHERTYPE: usize = 12;
/// For experiments within one network (IEEE 802, "Local Experimental EtherType 1").
const LOCAL_EXPERIMENT: u16 = 0x88b5;
/// What may wait to be read, in bytes of the kernel's: some 80,000 short frames.
const QUEUE_BYTES: libc::c_int = 64 << 20;
/// Room for a control message with struct `scm_timestamping`, three times.
const CONTROL_BYTES: usize = 128;

/// A socket that receives and sends all frames of one interface.
#[derive(Debug)]
pub(super) struct FrameSocket {
    fd: OwnedFd,
    buffer: Vec<u8>,
    missed: u64,
}

/// A frame that was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received<'a> {
    /// When it entered the network stack; `None` from before the kernel had begun to stamp.
    pub(super) stamp: Option<Time<Utc>>,
    /// As [`FrameSocket::send`] wants it.
    pub(super) raw: &'a [u8],
}

impl<'a> Received<'a> {
    /// The frame from its Ethernet header on.
    pub(super) fn frame(&self) -> &'a [u8] {
        self.raw.get(VNET_HEADER..).unwrap_or_default()
    }
}

impl FrameSocket {
    /// Opens a socket on an interface of the calling thread's network namespace.
    pub(super) fn open(interface: &str) -> io::Result<Self> {
        // Of no protocol, so that nothing comes in before it is set up.
        // SAFETY: takes no pointers; the result is checked before it is owned.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        check(fd)?;
        // SAFETY: `fd` was just opened and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = Self { fd, buffer: vec![0; FRAME_BYTES], missed: 0 };
        let stamps = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, stamps.cast_signed())?;
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, QUEUE_BYTES)?;
        socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        socket.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        socket.bind(interface)?;
        Ok(socket)
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        let (value, length) = (ptr::from_ref(&value).cast(), size::<libc::c_int>());
        // SAFETY: the value is readable and its size is passed.
        check(unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, option, value, length) })
    }

    fn bind(&self, interface: &str) -> io::Result<()> {
        let name = CString::new(interface)?;
        // SAFETY: a string that ends in NUL, alive during the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: sockaddr_ll is plain data, for which all zeroes is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?;
        address.sll_protocol = ETH_P_ALL.to_be();
        address.sll_ifindex = index.cast_signed();
        let (address, length) = (ptr::from_ref(&address).cast(), size::<libc::sockaddr_ll>());
        // SAFETY: the address is a sockaddr_ll and its size is passed.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), address, length) })
    }

    /// The next frame that waits, if there is one.
    pub(super) fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let mut control = [0_u64; CONTROL_BYTES / size_of::<u64>()];
        let mut vector =
            libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
        // SAFETY: msghdr is plain data, for which all zeroes is a valid value.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES;
        // SAFETY: the header leads to a buffer and to room for control messages, both writable,
        // with their sizes; all of them outlive the call.
        let length =
            unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
        match usize::try_from(length) {
            Ok(length) => {
                let raw = self.buffer.get(..length).unwrap_or_default();
                Ok(Some(Received { stamp: stamp(&message), raw }))
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Sends a frame with its header, as [`Received::raw`] has it.
    pub(super) fn send(&self, raw: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and the length are those of `raw`, which is alive and only read.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), raw.as_ptr().cast(), raw.len(), 0) };
        if sent == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends a frame that is for nobody.
    pub(super) fn send_probe(&self) -> io::Result<()> {
        let mut raw = [0; VNET_HEADER + SHORTEST_FRAME];
        raw[VNET_HEADER + ETHERTYPE..][..2].copy_from_slice(&LOCAL_EXPERIMENT.to_be_bytes());
        self.send(&raw)
    }

    /// How many frames found no room in the queue since the socket was opened.
    pub(super) fn missed(&mut self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size::<libc::tpacket_stats>();
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        let to = (&raw mut statistics).cast();
        // SAFETY: the room is writable and its size is passed.
        check(unsafe {
            libc::getsockopt(self.fd.as_raw_fd(), level, option, to, &raw mut length)
        })?;
        // The kernel begins anew with each reading (packet(7)).
        self.missed += u64::from(statistics.tp_drops);
        Ok(self.missed)
    }

    /// Waits until a frame is there, for `patience` at most.
    pub(super) fn wait(&self, patience: Span) -> io::Result<()> {
        let patience = libc::timespec::from(patience.max(Span::ZERO));
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, as the count says, and a time; both alive during the call, which
        // keeps the signal mask as it is.
        let status = unsafe { libc::ppoll(&raw mut poll, 1, &raw const patience, ptr::null()) };
        match check(status) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

/// The system clock, which the kernel stamps packets with.
pub(super) fn now() -> Time<Utc> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec. It cannot fail for this clock (clock_gettime(2)).
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    Time::try_from(now).unwrap_or(Time::from_nanos(0))
}

/// The kernel's stamp among the control messages that the kernel has written.
fn stamp(message: &libc::msghdr) -> Option<Time<Utc>> {
    // SAFETY: the header is that of a successful recvmsg, and its control buffer is alive.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: `next` is null or points to a whole header inside the buffer.
    while let Some(header) = unsafe { next.as_ref() } {
        if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            // SAFETY: a message of this kind has three timespecs, the first of them the kernel's
            // (Documentation/networking/timestamping.rst, 2.1); read where they are, whatever the
            // alignment.
            let first: libc::timespec =
                unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
            return Time::try_from(first).ok().filter(|time: &Time<Utc>| time.as_nanos() > 0);
        }
        // SAFETY: as for the first, and `header` is inside the buffer.
        next = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}

/// The size of a `T` as socket calls want it.
fn size<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("what goes to the kernel is small")
}

fn check(status: libc::c_int) -> io::Result<()> {
    if status == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
