//! Packet sockets that only send: packet(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use libc::c_int;

use super::set;

/// A packet socket through which nothing is received: its protocol is 0 (packet(7)).
pub(crate) fn open() -> io::Result<OwnedFd> {
    // SAFETY: socket takes no pointers; its result is checked before it is owned.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Has the socket send over the interface of this index.
pub(crate) fn bind(socket: &impl AsFd, index: u32) -> io::Result<()> {
    // SAFETY: sockaddr_ll is plain data, for which all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).expect("AF_PACKET is 17");
    address.sll_ifindex = c_int::try_from(index).map_err(io::Error::other)?;
    let bytes = super::length(&address);
    // SAFETY: the pointer and the length are those of `address`, which is alive and only read.
    let status =
        unsafe { libc::bind(socket.as_fd().as_raw_fd(), ptr::from_ref(&address).cast(), bytes) };
    if status == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Goes round the interface's queueing discipline (`PACKET_QDISC_BYPASS`, packet(7)).
pub(crate) fn bypass_queue(socket: &impl AsFd) -> io::Result<()> {
    set(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &[1 as c_int])
}

/// Asks for a ring of slots to send from, with a status word of 32 bits each (`TPACKET_V2`,
/// `PACKET_TX_RING`, Documentation/networking/packet_mmap.rst).
pub(crate) fn make_ring(socket: &impl AsFd, layout: libc::tpacket_req) -> io::Result<()> {
    let version = libc::tpacket_versions::TPACKET_V2 as c_int;
    set(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &[version])?;
    set(socket, libc::SOL_PACKET, libc::PACKET_TX_RING, &[layout])
}

/// Asks for a send buffer of `bytes`: beyond the system's limit where this process may
/// (`SO_SNDBUFFORCE`, socket(7)), up to the limit where it may not.
pub(crate) fn enlarge_send_buffer(socket: &impl AsFd, bytes: c_int) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &[bytes])
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &[bytes]))
}

/// How long a call that sends may wait for room (`SO_SNDTIMEO`, socket(7)).
pub(crate) fn set_patience(socket: &impl AsFd, patience: Duration) -> io::Result<()> {
    let time = libc::timeval {
        tv_sec: i64::try_from(patience.as_secs()).map_err(io::Error::other)?,
        tv_usec: patience.subsec_micros().into(),
    };
    set(socket, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &[time])
}

/// Sends a frame; none has the kernel look for frames in the socket's ring, without waiting.
pub(crate) fn send(socket: &impl AsFd, frame: Option<&[u8]>) -> io::Result<()> {
    let (start, length, flags) = match frame {
        Some(frame) => (frame.as_ptr(), frame.len(), 0),
        None => (ptr::null(), 0, libc::MSG_DONTWAIT),
    };
    // SAFETY: the pointer and the length are those of `frame`, which is alive and only read, or
    // a length of 0, for which nothing is read.
    let status = unsafe { libc::send(socket.as_fd().as_raw_fd(), start.cast(), length, flags) };
    if status == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
