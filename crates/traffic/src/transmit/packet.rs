//! `packet`: a packet socket, one system call for each frame.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{SendFlags, send};
use wirestamp_sys::packet_socket;

use super::{SEND_TIMEOUT, SendOptions, Transmit};
use crate::netlink::Link;

/// A packet socket that sends over one interface.
#[derive(Debug)]
pub(super) struct Packet {
    socket: OwnedFd,
}

impl Packet {
    /// A socket that sends over `link`.
    pub(super) fn open(link: &Link, options: &SendOptions) -> io::Result<Self> {
        let socket = packet_socket::open()?;
        set_socket_timeout(&socket, Timeout::Send, Some(SEND_TIMEOUT))?;
        if options.bypass_queue {
            packet_socket::bypass_queue(&socket)?;
        }
        packet_socket::bind_to_send(&socket, link.index.cast_signed())?;
        Ok(Self { socket })
    }
}

impl Transmit for Packet {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        Ok(send(&self.socket, frame, SendFlags::empty()).map(drop)?)
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
