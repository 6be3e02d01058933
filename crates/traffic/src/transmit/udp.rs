//! `udp`: a UDP socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use super::{SEND_TIMEOUT, Transmit};
use crate::{SendError, Stream, sys};

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
            sys::bind_to_interface(&socket, interface)
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
    sys::forbid_fragments(&socket, ipv6)?;
    sys::set_dscp(&socket, ipv6, stream.dscp)?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    Ok(socket)
}
