//! UDP sockets with kernel stamps: `Documentation/networking/timestamping.rst`.

mod control_data;
mod drops;

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, MsgFlags, SockaddrStorage, TimestampingFlag, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt as option};
use wirestamp_capture::Stop;
use wirestamp_clock::{Time, Utc};

use self::control_data::ControlData;
pub(crate) use self::drops::{BACKLOG, DropCounter};

/// Receive buffer: a second of about 100,000 short packets.
const BUFFER: usize = 64 << 20;
/// Buffer for control messages of a packet.
const CONTROL: usize = 512;
/// Max wait for packets, so that timeouts are processed and observers notified without packets.
pub(crate) const POLL_TIMEOUT: Duration = Duration::from_millis(100);
/// Max size of a datagram.
const MAX_DATAGRAM: usize = 65_535;

/// A socket cannot be opened, or failed.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The address is not available.
    #[error("cannot receive at {address}: {cause}{}", hint(.cause))]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The socket failed.
    #[error("cannot receive test packets: {0}")]
    Receive(io::Error),
}

/// The next step.
fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 require root or cap_net_bind_service; use another port"
        }
        io::ErrorKind::AddrInUse => "; find the program that uses it with `ss -ulnp`",
        _ => "",
    }
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) from: SocketAddr,
    /// The kernel's receive stamp, if any.
    pub(crate) at: Option<Time<Utc>>,
    /// Destination address, and index of the receiving interface.
    pub(crate) to: Option<(IpAddr, u32)>,
    /// Its TTL or hop limit; 255 if it is not known (RFC 8762 section 4.3.1).
    pub(crate) ttl: u8,
    /// Its differentiated services code point and congestion bits.
    pub(crate) class: u8,
}

/// Source address and traffic class of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendParameters {
    /// Source address and index of the interface; if none, the kernel chooses them.
    pub(crate) from: Option<(IpAddr, u32)>,
    /// The upper six bits are the differentiated services code point.
    pub(crate) class: Option<u8>,
}

/// A UDP socket, not connected: a connected socket would refuse to send the next packet after an ICMP "port
/// unreachable".
#[derive(Debug)]
pub(crate) struct StampedSocket {
    socket: UdpSocket,
    control: Vec<u8>,
    bytes: Vec<u8>,
    /// The kernel's number of the next packet.
    next: u32,
}

impl StampedSocket {
    /// A socket at this address.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, SocketError> {
        open(address).map_err(|cause| SocketError::Bind { address, cause })
    }

    /// Number of datagrams that the kernel dropped at this socket so far.
    pub(crate) fn dropped(&self) -> Result<u32, SocketError> {
        wirestamp_sys::socket::dropped(&self.socket).map_err(SocketError::Receive)
    }

    pub(crate) fn local_addr(&self) -> Result<SocketAddr, SocketError> {
        self.socket.local_addr().map_err(SocketError::Receive)
    }

    /// Sends a packet; returns the kernel's number for it.
    pub(crate) fn send(
        &mut self,
        packet: &[u8],
        to: SocketAddr,
        parameters: SendParameters,
    ) -> io::Result<u32> {
        let class = parameters.class.map(i32::from);
        let byte = parameters.class.unwrap_or(0);
        let v4 = parameters
            .from
            .and_then(|(address, interface)| control_data::source_v4(address, interface));
        let v6 = parameters
            .from
            .and_then(|(address, interface)| control_data::source_v6(address, interface));
        let is_v4 = to.is_ipv4();
        let messages = [
            v4.as_ref().filter(|_| is_v4).map(ControlMessage::Ipv4PacketInfo),
            v6.as_ref().filter(|_| !is_v4).map(ControlMessage::Ipv6PacketInfo),
            class.as_ref().filter(|_| is_v4).map(|_| ControlMessage::Ipv4Tos(&byte)),
            class.as_ref().filter(|_| !is_v4).map(ControlMessage::Ipv6TClass),
        ];
        let messages: Vec<_> = messages.into_iter().flatten().collect();
        let to = SockaddrStorage::from(to);
        let fd = self.socket.as_raw_fd();
        let sent =
            sendmsg(fd, &[IoSlice::new(packet)], &messages, MsgFlags::MSG_DONTWAIT, Some(&to));
        match sent {
            Ok(_) => {
                let number = self.next;
                self.next = self.next.wrapping_add(1);
                Ok(number)
            }
            Err(error) => {
                // The kernel does not report whether it numbered the packet, so the numbers restart at 0.
                self.next = 0;
                stamp(&self.socket, true)?;
                Err(error.into())
            }
        }
    }

    /// Reads the next packet; none if no packet waits.
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
        let data = ControlData::of(&message);
        let Some(from) = message.address.as_ref().and_then(control_data::address) else {
            return Ok(None);
        };
        let length = message.bytes;
        let bytes = self.bytes.get(..length).unwrap_or_default();
        let ControlData { at, to, ttl, class, .. } = data;
        Ok(Some(Received { bytes, from, at, to, ttl, class }))
    }

    /// Reads the next transmit stamp, with the packet's number.
    pub(crate) fn left(&mut self) -> Option<(u32, Time<Utc>)> {
        let fd = self.socket.as_raw_fd();
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        loop {
            let mut room = [IoSliceMut::new(&mut self.bytes)];
            let control = Some(&mut self.control[..]);
            let message = recvmsg::<SockaddrStorage>(fd, &mut room, control, flags).ok()?;
            let data = ControlData::of(&message);
            // The queue also has other errors.
            if let Some(left) = data.number.zip(data.at) {
                return Some(left);
            }
        }
    }
}

/// Waits for a packet or a stamp on a socket, or for a stop request; at most for `timeout` and [`POLL_TIMEOUT`].
pub(crate) fn wait<'a>(
    sockets: impl IntoIterator<Item = &'a StampedSocket>,
    stop: Option<&Stop>,
    timeout: Duration,
) -> Result<(), SocketError> {
    let timeout = Timespec::try_from(timeout.min(POLL_TIMEOUT)).unwrap_or_default();
    let sockets = sockets.into_iter().map(|socket| PollFd::new(socket, PollFlags::IN));
    let stop = stop.map(|stop| PollFd::new(stop, PollFlags::IN));
    match poll(&mut sockets.chain(stop).collect::<Vec<_>>(), Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(SocketError::Receive(error.into())),
    }
}

impl AsFd for StampedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket of one address family: a dual-stack socket has two kinds of options and messages.
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
    Ok(StampedSocket { socket, control: vec![0; CONTROL], bytes: vec![0; MAX_DATAGRAM], next: 0 })
}

/// Makes the kernel stamp received and sent packets, and number sent packets: from 0 for a new socket or
/// with `anew`.
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
