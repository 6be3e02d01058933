//! Socket options, and messages with control messages: socket(7), recvmsg(2), recvmmsg(2).
#![expect(unsafe_code, reason = "calls with pointers to memory and its size")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use libc::{c_int, c_void, socklen_t};
use rustix::net::sockopt;

use crate::control_message::PacketControl;
use crate::mmap::Mapping;
use crate::plain::Plain;

/// Sets a socket option.
///
/// # Errors
/// Those of setsockopt(2).
pub fn set_option<T: Plain>(
    socket: &impl AsFd,
    level: c_int,
    option: c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: a plain type, alive and only read; it has no addresses that the kernel could follow.
    unsafe { set_raw(socket, level, option, ptr::from_ref(value).cast(), length(value)) }
}

/// Sends over the interface of this name only (`SO_BINDTODEVICE`, socket(7)).
///
/// # Errors
/// `ENODEV` where there is no such interface.
pub fn bind_to_interface(socket: &impl AsFd, interface: &str) -> io::Result<()> {
    // The kernel interprets an empty name as "any interface", and truncates a long name.
    if !(1..libc::IFNAMSIZ).contains(&interface.len()) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let name = interface.as_bytes();
    let (level, option) = (libc::SOL_SOCKET, libc::SO_BINDTODEVICE);
    // SAFETY: bytes, alive and only read.
    unsafe { set_raw(socket, level, option, name.as_ptr().cast(), length(name)) }
}

/// Requests a receive buffer of `bytes`: beyond the system's limit where this process may
/// (`SO_RCVBUFFORCE`, socket(7)), up to the limit otherwise.
///
/// # Errors
/// Those of setsockopt(2).
pub fn enlarge_receive_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let set = sockopt::set_socket_recv_buffer_size_force(socket, bytes);
    Ok(set.or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes))?)
}

/// Requests a send buffer of `bytes`, as [`enlarge_receive_buffer`] does.
///
/// # Errors
/// Those of setsockopt(2).
pub fn enlarge_send_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let set = sockopt::set_socket_send_buffer_size_force(socket, bytes);
    Ok(set.or_else(|_| sockopt::set_socket_send_buffer_size(socket, bytes))?)
}

/// Number of packets that the kernel dropped at this socket since its creation, because its buffer
/// was full or a checksum was wrong. It includes drops after the last received packet, unlike
/// `SO_RXQ_OVFL`, which arrives with packets.
///
/// # Errors
/// Those of getsockopt(2).
pub fn dropped(socket: &impl AsFd) -> io::Result<u32> {
    const DROPS: usize = 8; // SK_MEMINFO_DROPS of linux/sock_diag.h
    let values: [u32; DROPS + 1] = option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    Ok(values[DROPS])
}

/// The cookie of the socket's network namespace, unique since the machine was started.
///
/// # Errors
/// `ENOPROTOOPT` from a kernel before 5.14.
pub fn namespace_cookie(socket: &impl AsFd) -> io::Result<u64> {
    const SO_NETNS_COOKIE: c_int = 71; // asm-generic/socket.h
    option(socket, libc::SOL_SOCKET, SO_NETNS_COOKIE)
}

/// Attaches a classic BPF program as the socket's filter (`SO_ATTACH_FILTER`, socket(7)).
///
/// # Errors
/// The kernel refuses the program.
pub fn attach_filter(socket: &impl AsFd, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel only reads the program (`copy_from_user`), although the field is a mutable pointer.
    let filter = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let (level, option) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
    // SAFETY: the struct leads to `len` instructions, alive and only read.
    unsafe { set_raw(socket, level, option, (&raw const filter).cast(), length(&filter)) }
}

/// # Safety
/// `value` leads to `length` bytes that may be read, and so do the addresses in them that the
/// kernel follows for this option.
unsafe fn set_raw(
    socket: &impl AsFd,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: as the caller promises.
    check(unsafe { libc::setsockopt(fd, level, option, value, length) })
}

/// Reads a socket option; bytes that the kernel does not write keep their default.
///
/// # Errors
/// Those of getsockopt(2).
pub fn option<T: Plain + Default>(
    socket: &impl AsFd,
    level: c_int,
    option: c_int,
) -> io::Result<T> {
    let mut value = T::default();
    let mut bytes = length(&value);
    let (fd, to) = (socket.as_fd().as_raw_fd(), (&raw mut value).cast());
    // SAFETY: a plain type, which the kernel may fill with any bits up to its size.
    check(unsafe { libc::getsockopt(fd, level, option, to, &raw mut bytes) })?;
    Ok(value)
}

/// Binds a packet socket to an interface. It then receives packets of `protocol`: all packets for
/// `ETH_P_ALL`, none for 0 (packet(7)).
///
/// # Errors
/// Those of bind(2).
pub(crate) fn bind_packet(socket: &impl AsFd, index: c_int, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let (from, bytes) = ((&raw const address).cast(), length(&address));
    // SAFETY: the address is a sockaddr_ll, alive and only read, and its size is passed.
    check(unsafe { libc::bind(socket.as_fd().as_raw_fd(), from, bytes) })
}

/// Receives a message into `buffer`, and its control messages into `control`, without waiting.
/// Returns the lengths of both.
///
/// # Errors
/// Those of recvmsg(2): `WouldBlock` where no message waits.
pub fn receive_message(
    socket: &impl AsFd,
    buffer: &mut [u8],
    control: &mut [u8],
    flags: c_int,
) -> io::Result<(usize, usize)> {
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = header(&mut vector, control);
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the header leads to a buffer and to room for control messages, both writable, with
    // their sizes; all of them outlive the call.
    let received = unsafe { libc::recvmsg(fd, &raw mut message, flags | libc::MSG_DONTWAIT) };
    let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    Ok((bytes, message.msg_controllen))
}

/// A part of a mapping that a packet is received into: offset and length in bytes.
pub type Part = (usize, usize);

/// Receives one packet into a part of `memory`, without waiting (recvmsg(2)). Returns its length
/// and that of its control messages.
///
/// # Errors
/// Those of recvmsg(2): `WouldBlock` where no packet waits.
#[inline]
pub fn receive_packet(
    socket: &impl AsFd,
    memory: &Mapping,
    (offset, length): Part,
    control: &mut PacketControl,
) -> io::Result<(usize, usize)> {
    let buffer = memory.at(offset, length).as_ptr();
    let mut vector = libc::iovec { iov_base: buffer.cast(), iov_len: length };
    let mut message = header(&mut vector, control.room());
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the header leads to a part of a mapping, which the kernel may write to, and to room
    // for control messages, with their sizes; all of them outlive the call.
    let received = unsafe { libc::recvmsg(fd, &raw mut message, libc::MSG_DONTWAIT) };
    let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    Ok((bytes, message.msg_controllen))
}

/// Memory for one call of recvmmsg(2) that receives up to `N` packets.
pub struct PacketBatch<const N: usize>(Box<Headers<N>>);

struct Headers<const N: usize> {
    messages: [libc::mmsghdr; N],
    vectors: [libc::iovec; N],
    controls: [PacketControl; N],
}

// SAFETY: its pointers are followed during a call only, and set anew before each.
unsafe impl<const N: usize> Send for PacketBatch<N> {}

impl<const N: usize> PacketBatch<N> {
    /// Memory without packets.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it allocates")]
    pub fn new() -> Self {
        // SAFETY: an mmsghdr is plain data, for which all zeroes is a valid value.
        let messages = [unsafe { mem::zeroed() }; N];
        let vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; N];
        Self(Box::new(Headers { messages, vectors, controls: [PacketControl::EMPTY; N] }))
    }

    /// Receives packets into the parts of `memory`, in their order, without waiting. Returns how
    /// many were received.
    ///
    /// # Errors
    /// Those of recvmmsg(2): `WouldBlock` where no packet waits.
    pub fn receive(
        &mut self,
        socket: &impl AsFd,
        memory: &Mapping,
        parts: impl Iterator<Item = Part>,
    ) -> io::Result<usize> {
        let Headers { messages, vectors, controls } = &mut *self.0;
        let mut count: libc::c_uint = 0;
        let headers = messages.iter_mut().zip(vectors).zip(controls);
        for (((message, vector), control), (offset, length)) in headers.zip(parts) {
            let buffer = memory.at(offset, length).as_ptr();
            *vector = libc::iovec { iov_base: buffer.cast(), iov_len: length };
            message.msg_hdr = header(vector, control.room());
            count += 1;
        }
        let (fd, first) = (socket.as_fd().as_raw_fd(), messages.as_mut_ptr());
        // SAFETY: each of the `count` headers leads to a part of a mapping, which the kernel may
        // write to, and to room for control messages, with their sizes; all of them outlive the
        // call.
        let received =
            unsafe { libc::recvmmsg(fd, first, count, libc::MSG_DONTWAIT, ptr::null_mut()) };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// Length of the `nth` packet of the last call, its control messages, and their length.
    #[inline]
    #[must_use]
    pub fn packet(&self, nth: usize) -> (u32, &PacketControl, usize) {
        let message = &self.0.messages[nth];
        (message.msg_len, &self.0.controls[nth], message.msg_hdr.msg_controllen)
    }
}

/// The header of a message that goes to `vector`, and whose control messages go to `control`.
#[inline]
fn header(vector: &mut libc::iovec, control: &mut [u8]) -> libc::msghdr {
    // SAFETY: a msghdr is plain data, for which all zeroes is a valid value.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = control.len();
    header
}

/// The size of a value as socket calls take it.
fn length<T: ?Sized>(value: &T) -> socklen_t {
    socklen_t::try_from(size_of_val(value)).expect("an option has at most some hundred bytes")
}

fn check(status: c_int) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn option_is_read_as_it_was_set() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &3).unwrap();
        assert_eq!(option::<c_int>(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY).unwrap(), 3);
        assert_eq!(bind_to_interface(&socket, "").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn message_is_received_with_its_length() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(b"three", socket.local_addr().unwrap()).unwrap();
        let (mut buffer, mut control) = ([0; 16], [0; 64]);
        assert_eq!(receive_message(&socket, &mut buffer, &mut control, 0).unwrap(), (5, 0));
        let error = receive_message(&socket, &mut buffer, &mut control, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
