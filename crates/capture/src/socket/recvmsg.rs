//! `recvmsg`: one packet a call, recvmsg(2).

use std::os::fd::{AsRawFd, BorrowedFd};

use super::control::Control;
use super::{Call, Fetched, attempt, header};
use crate::pool::Pool;

/// The call and its result.
#[derive(Debug)]
pub(crate) struct Recvmsg {
    control: Control,
    fetched: Fetched,
}

impl Call for Recvmsg {
    fn new() -> Self {
        Self { control: Control::EMPTY, fetched: Fetched::default() }
    }

    fn fetch(&mut self, socket: BorrowedFd<'_>, pool: &Pool, first: usize, _: usize) -> usize {
        let Some(mut vector) = pool.vectors(first).next() else { return 0 };
        let mut message = header(&mut vector, &mut self.control);
        let length = attempt(|| {
            // SAFETY: the header points to one free buffer of the pool and to room for control messages, with their
            // sizes; all of them outlive the call.
            unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) }
        });
        let Some(length) = length else { return 0 };
        self.fetched = Fetched {
            captured: u32::try_from(length).unwrap_or(pool.snaplen()),
            said: self.control.read(message.msg_controllen),
        };
        1
    }

    fn fetched(&self, _: usize) -> Fetched {
        self.fetched
    }
}
