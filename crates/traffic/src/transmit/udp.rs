//! `udp`: a UDP socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use wirestamp_sys::socket::{bind_to_interface, set_option};

use super::{SEND_TIMEOUT, Transmit};
use crate::{SendError, Stream};

/// A UDP socket, not connected: a connected socket would refuse to send the next packet after an ICMP
/// "port unreachable".
#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    destination: SocketAddr,
}

impl Udp {
    /// A socket for the packets of `stream`.
    pub(crate) fn open(stream: &Stream) -> Result<Self, SendError> {
        let Stream { destination, .. } = *stream;
        let socket =
            open_socket(stream).map_err(|cause| SendError::Socket { destination, cause })?;
        if let Some(interface) = &stream.interface {
            bind_to_interface(&socket, interface)
                .map_err(|cause| SendError::Interface { interface: interface.clone(), cause })?;
        }
        Ok(Self { socket, destination })
    }
}

impl Transmit for Udp {
    fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        self.socket.send_to(payload, self.destination).map(drop)
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn open_socket(stream: &Stream) -> io::Result<UdpSocket> {
    let ipv6 = stream.destination.is_ipv6();
    let socket = if ipv6 {
        UdpSocket::bind((Ipv6Addr::UNSPECIFIED, stream.source_port))?
    } else {
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, stream.source_port))?
    };
    forbid_fragments(&socket, ipv6)?;
    set_dscp(&socket, ipv6, stream.dscp)?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    Ok(socket)
}

/// Prevents fragments here and on the path: `DF` in IPv4 (`IP_MTU_DISCOVER`, ip(7)), no fragment
/// header in IPv6 (`IPV6_DONTFRAG`, RFC 3542). A packet that is too long is refused.
fn forbid_fragments(socket: &UdpSocket, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)?;
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, &1)
    } else {
        Ok(sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)?)
    }
}

/// Marks packets with a differentiated services code point (RFC 2474: the upper six bits).
fn set_dscp(socket: &UdpSocket, ipv6: bool, dscp: u8) -> io::Result<()> {
    if ipv6 {
        Ok(sockopt::set_ipv6_tclass(socket, u32::from(dscp) << 2)?)
    } else {
        Ok(sockopt::set_ip_tos(socket, dscp << 2)?)
    }
}
