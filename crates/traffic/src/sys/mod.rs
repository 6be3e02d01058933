//! The system calls and socket options that the standard library lacks. But for the memory of
//! `transmit::ring` and the XDP program of `live`, all of this crate's `unsafe` is here.
#![expect(unsafe_code, reason = "system calls")]

pub(crate) mod interface;
pub(crate) mod packet;
pub(crate) mod stamps;

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_ulong, c_void, socklen_t};

/// The option value's length as the kernel wants it.
fn length<T: ?Sized>(value: &T) -> socklen_t {
    socklen_t::try_from(size_of_val(value)).expect("an option is a few bytes long")
}

/// Sets a socket option to the bytes of `value`.
fn set<T: Copy>(socket: &impl AsFd, level: c_int, name: c_int, value: &[T]) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of `value`, which is alive and only read.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            value.as_ptr().cast::<c_void>(),
            length(value),
        )
    };
    if status == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends over the interface of this name only (`SO_BINDTODEVICE`, socket(7)).
pub(crate) fn bind_to_interface(socket: &UdpSocket, interface: &str) -> io::Result<()> {
    // The kernel takes no name for "any interface", and cuts a long one short.
    if !(1..libc::IFNAMSIZ).contains(&interface.len()) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    set(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, interface.as_bytes())
}

/// Has packets neither fragmented here nor on the way: `DF` in IPv4 (`IP_MTU_DISCOVER`, ip(7)), no
/// fragment header in IPv6 (`IPV6_DONTFRAG`, RFC 3542). One that is too long is refused.
pub(crate) fn forbid_fragments(socket: &UdpSocket, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &[libc::IPV6_PMTUDISC_DO])?;
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, &[1 as c_int])
    } else {
        set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &[libc::IP_PMTUDISC_DO])
    }
}

/// Marks packets with a differentiated services code point (RFC 2474: the upper six bits).
pub(crate) fn set_dscp(socket: &UdpSocket, ipv6: bool, dscp: u8) -> io::Result<()> {
    let class = [c_int::from(dscp) << 2];
    if ipv6 {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class)
    } else {
        set(socket, libc::IPPROTO_IP, libc::IP_TOS, &class)
    }
}

/// Asks for a receive buffer of `bytes`: beyond the system's limit where this process may
/// (`SO_RCVBUFFORCE`, socket(7)), up to the limit where it may not.
pub(crate) fn enlarge_receive_buffer(socket: &impl AsFd, bytes: c_int) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &[bytes])
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &[bytes]))
}

/// Index of the drop counter among the values of `SO_MEMINFO` (`linux/sock_diag.h`).
const SK_MEMINFO_DROPS: usize = 8;
/// How many values `SO_MEMINFO` has (`SK_MEMINFO_VARS`).
const SK_MEMINFO_VARS: usize = 9;

/// Packets that the kernel dropped at this socket since it was made: its buffer was full, or a
/// checksum was wrong. Unlike the count that comes along with packets (`SO_RXQ_OVFL`), it has those
/// behind the last packet received.
pub(crate) fn dropped(socket: &UdpSocket) -> io::Result<u32> {
    let mut values = [0_u32; SK_MEMINFO_VARS];
    let mut bytes = length(&values);
    // SAFETY: the pointer and the length are those of `values`, which is alive; the kernel writes
    // at most that much.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast::<c_void>(),
            &raw mut bytes,
        )
    };
    if status == -1 { Err(io::Error::last_os_error()) } else { Ok(values[SK_MEMINFO_DROPS]) }
}

/// Has the calling thread's sleeps end on time instead of up to 50 us late
/// (`PR_SET_TIMERSLACK`, prctl(2)).
pub(crate) fn end_sleeps_on_time() {
    let nanos: c_ulong = 1;
    // Cannot fail with these arguments; a sleep that ends late is noticed and allowed for anyway.
    // SAFETY: this option takes a number and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos) };
}
