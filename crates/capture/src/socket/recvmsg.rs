//! `recvmsg`: one packet a call, recvmsg(2).

use std::os::fd::BorrowedFd;

use wirestamp_sys::control_message::PacketControl;
use wirestamp_sys::socket::receive_packet;

use super::{Call, Fetched, attempt};
use crate::pool::Pool;

/// The memory of the call, with the packet of the last call.
#[derive(Debug)]
pub(crate) struct Recvmsg {
    control: PacketControl,
    fetched: Fetched,
}

impl Call for Recvmsg {
    fn new() -> Self {
        Self { control: PacketControl::EMPTY, fetched: Fetched::default() }
    }

    fn fetch(&mut self, socket: BorrowedFd<'_>, pool: &Pool, first: usize, _: usize) -> usize {
        let Some(part) = pool.parts(first).next() else { return 0 };
        let fetch = || receive_packet(&socket, pool.memory(), part, &mut self.control);
        let Some((length, control)) = attempt(fetch) else { return 0 };
        self.fetched = Fetched {
            captured: u32::try_from(length).unwrap_or(pool.snaplen()),
            facts: self.control.read(control),
        };
        1
    }

    fn fetched(&self, _: usize) -> Fetched {
        self.fetched
    }
}
