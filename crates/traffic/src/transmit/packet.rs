//! `packet`: a packet socket, one system call for each frame.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{SEND_TIMEOUT, SendOptions, Transmit};
use crate::netlink::Link;
use crate::sys::packet as sys;

/// A packet socket that sends over one interface.
#[derive(Debug)]
pub(super) struct Packet {
    socket: OwnedFd,
}

impl Packet {
    /// A socket that sends over `link`.
    pub(super) fn open(link: &Link, options: &SendOptions) -> io::Result<Self> {
        let socket = sys::open()?;
        sys::set_patience(&socket, SEND_TIMEOUT)?;
        if options.bypass_queue {
            sys::bypass_queue(&socket)?;
        }
        sys::bind(&socket, link.index)?;
        Ok(Self { socket })
    }
}

impl Transmit for Packet {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        sys::send(&self.socket, Some(frame))
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
