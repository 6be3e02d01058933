//! UDP whose packets the kernel stamps: `Documentation/networking/timestamping.rst`.

mod said;

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, MsgFlags, SockaddrStorage, TimestampingFlag, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt as option};
use wirestamp_clock::{Time, Utc};

use self::said::Said;

/// Room for packets that wait: a second of some 100,000 short ones.
const BUFFER: usize = 64 << 20;
/// Room for what is said beside a packet.
const CONTROL: usize = 512;
/// The longest datagram.
const LONGEST: usize = 65_535;

/// A socket could not be had, or failed.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The address could not be had.
    #[error("cannot receive at {address}: {cause}{}", hint(.cause))]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The socket failed.
    #[error("receiving failed: {0}")]
    Receive(io::Error),
}

/// What to do about it.
fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 take root or cap_net_bind_service, others do not"
        }
        io::ErrorKind::AddrInUse => "; `ss -ulnp` shows who has it",
        _ => "",
    }
}

/// A datagram that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) from: SocketAddr,
    /// When the kernel took it from the driver; none if it did not stamp it.
    pub(crate) at: Option<Time<Utc>>,
    /// The address that it was sent to, and which of the machine's interfaces it came by.
    pub(crate) to: Option<(IpAddr, u32)>,
    /// Its TTL or hop limit; 255 if it is not known (RFC 8762 section 4.3.1).
    pub(crate) ttl: u8,
    /// Its differentiated services code point and congestion bits.
    pub(crate) class: u8,
}

/// How a packet is to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// The address to send from; any, unless it is given.
    pub(crate) from: Option<(IpAddr, u32)>,
    /// The upper six bits are the differentiated services code point.
    pub(crate) class: Option<u8>,
}

/// A UDP socket. It is not connected: a connected one reports a "port unreachable" of an earlier packet by
/// refusing to send the next.
#[derive(Debug)]
pub(crate) struct StampedSocket {
    socket: UdpSocket,
    control: Vec<u8>,
    bytes: Vec<u8>,
    /// The number that the kernel will give to the next packet.
    next: u32,
}

impl StampedSocket {
    /// A socket at this address; what the kernel cannot say of packets goes without saying.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, SocketError> {
        open(address).map_err(|cause| SocketError::Bind { address, cause })
    }

    pub(crate) fn local_addr(&self) -> Result<SocketAddr, SocketError> {
        self.socket.local_addr().map_err(SocketError::Receive)
    }

    /// Sends a packet; returns the kernel's number for it.
    pub(crate) fn send(
        &mut self,
        packet: &[u8],
        to: SocketAddr,
        manner: Manner,
    ) -> io::Result<u32> {
        let class = manner.class.map(i32::from);
        let byte = manner.class.unwrap_or(0);
        let v4 = manner.from.and_then(|(address, interface)| said::source_v4(address, interface));
        let v6 = manner.from.and_then(|(address, interface)| said::source_v6(address, interface));
        let is_v4 = to.is_ipv4();
        let said = [
            v4.as_ref().filter(|_| is_v4).map(ControlMessage::Ipv4PacketInfo),
            v6.as_ref().filter(|_| !is_v4).map(ControlMessage::Ipv6PacketInfo),
            class.as_ref().filter(|_| is_v4).map(|_| ControlMessage::Ipv4Tos(&byte)),
            class.as_ref().filter(|_| !is_v4).map(ControlMessage::Ipv6TClass),
        ];
        let said: Vec<_> = said.into_iter().flatten().collect();
        let to = SockaddrStorage::from(to);
        let fd = self.socket.as_raw_fd();
        let sent = sendmsg(fd, &[IoSlice::new(packet)], &said, MsgFlags::MSG_DONTWAIT, Some(&to));
        match sent {
            Ok(_) => {
                let number = self.next;
                self.next = self.next.wrapping_add(1);
                Ok(number)
            }
            Err(error) => {
                // The kernel does not say whether it had numbered the packet.
                self.count_again()?;
                Err(error.into())
            }
        }
    }

    /// Has the kernel number packets from 0 again.
    fn count_again(&mut self) -> io::Result<()> {
        self.next = 0;
        stamp(&self.socket, true)
    }

    /// Takes the next packet; none waits if there is none.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let fd = self.socket.as_raw_fd();
        let mut room = [IoSliceMut::new(&mut self.bytes)];
        let message = loop {
            let control = Some(&mut self.control[..]);
            match recvmsg::<SockaddrStorage>(fd, &mut room, control, MsgFlags::MSG_DONTWAIT) {
                Ok(message) => break message,
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let said = Said::of(&message);
        let Some(from) = message.address.as_ref().and_then(said::address) else { return Ok(None) };
        let length = message.bytes;
        let bytes = self.bytes.get(..length).unwrap_or_default();
        let Said { at, to, ttl, class, .. } = said;
        Ok(Some(Received { bytes, from, at, to, ttl, class }))
    }

    /// Takes the next stamp of a packet that was sent, with the packet's number.
    pub(crate) fn left(&mut self) -> Option<(u32, Time<Utc>)> {
        let fd = self.socket.as_raw_fd();
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        loop {
            let mut room = [IoSliceMut::new(&mut self.bytes)];
            let control = Some(&mut self.control[..]);
            let message = recvmsg::<SockaddrStorage>(fd, &mut room, control, flags).ok()?;
            let said = Said::of(&message);
            // Other errors come by this queue too.
            if let Some(left) = said.number.zip(said.at) {
                return Some(left);
            }
        }
    }
}

impl AsFd for StampedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket of one family: one of both would have two kinds of options and answers.
fn open(address: SocketAddr) -> io::Result<StampedSocket> {
    let is_v6 = address.is_ipv6();
    let family = if is_v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = UdpSocket::from(socket_with(family, SocketType::DGRAM, flags, None)?);
    let _ = option::set_socket_recv_buffer_size_force(&socket, BUFFER)
        .or_else(|_| option::set_socket_recv_buffer_size(&socket, BUFFER));
    if is_v6 {
        option::set_ipv6_v6only(&socket, true)?;
        setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        setsockopt(&socket, sockopt::Ipv6RecvHopLimit, &true)?;
        option::set_ipv6_recvtclass(&socket, true)?;
    } else {
        setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        setsockopt(&socket, sockopt::Ipv4RecvTtl, &true)?;
        option::set_ip_recvtos(&socket, true)?;
    }
    stamp(&socket, false)?;
    bind(&socket, &address)?;
    Ok(StampedSocket { socket, control: vec![0; CONTROL], bytes: vec![0; LONGEST], next: 0 })
}

/// Has the kernel stamp what comes and what goes, and number the latter, from 0 on where it did not before
/// or is told `anew`.
fn stamp(socket: &UdpSocket, anew: bool) -> io::Result<()> {
    let both = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE;
    let numbered = both
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
    if anew {
        setsockopt(socket, sockopt::Timestamping, &both)?;
    }
    Ok(setsockopt(socket, sockopt::Timestamping, &numbered)?)
}

#[cfg(test)]
mod tests;
