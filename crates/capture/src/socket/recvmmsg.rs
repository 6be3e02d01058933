//! `recvmmsg`: up to [`BATCH`] packets per call, recvmmsg(2).
//!
//! It saves system calls where packets arrive faster than they are read. The packets of a call share one raw stamp,
//! which is late for all but the last.

use std::os::fd::BorrowedFd;

use wirestamp_sys::socket::PacketBatch;

use super::{BATCH, Call, Fetched, attempt};
use crate::pool::Pool;

/// The memory of the call, with the packets of the last call.
pub(crate) struct Recvmmsg(PacketBatch<BATCH>);

impl Call for Recvmmsg {
    fn new() -> Self {
        Self(PacketBatch::new())
    }

    fn fetch(&mut self, socket: BorrowedFd<'_>, pool: &Pool, first: usize, most: usize) -> usize {
        let fetch = || self.0.receive(&socket, pool.memory(), pool.parts(first).take(most));
        attempt(fetch).unwrap_or(0)
    }

    fn fetched(&self, nth: usize) -> Fetched {
        let (captured, control, length) = self.0.packet(nth);
        Fetched { captured, facts: control.read(length) }
    }
}
