//! `recvmmsg`: as many packets a call as there are, up to [`BATCH`], recvmmsg(2).
//!
//! It spares system calls where packets come faster than they are fetched. Nothing runs between
//! two packets of a call, so they share one raw stamp, which is late for all but the last.

use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::control::Control;
use super::{BATCH, Call, Fetched, attempt, header};
use crate::pool::Pool;

/// What the kernel reads and writes in a call, but for the packets.
struct Batch {
    messages: [libc::mmsghdr; BATCH],
    vectors: [libc::iovec; BATCH],
    controls: [Control; BATCH],
}

/// The call and what it leaves behind.
pub(crate) struct Recvmmsg(Box<Batch>);

// SAFETY: its pointers are followed during a call only, and set anew before each.
unsafe impl Send for Recvmmsg {}

impl Batch {
    /// Makes the first `count` headers lead to the buffers from the `first` on.
    fn prepare(&mut self, pool: &Pool, first: usize, count: usize) {
        let parts = self.messages.iter_mut().zip(&mut self.vectors).zip(&mut self.controls);
        for (((message, place), control), vector) in parts.zip(pool.vectors(first)).take(count) {
            *place = vector;
            message.msg_hdr = header(place, control);
        }
    }
}

impl Call for Recvmmsg {
    fn new() -> Self {
        // SAFETY: an mmsghdr is plain data, for which all zeroes is a valid value.
        let messages = [unsafe { mem::zeroed() }; BATCH];
        let vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        Self(Box::new(Batch { messages, vectors, controls: [Control::EMPTY; BATCH] }))
    }

    fn fetch(&mut self, socket: BorrowedFd<'_>, pool: &Pool, first: usize, most: usize) -> usize {
        let most = most.min(BATCH);
        self.0.prepare(pool, first, most);
        let length = libc::c_uint::try_from(most).unwrap_or(0);
        let messages = self.0.messages.as_mut_ptr();
        let count = attempt(|| {
            // SAFETY: each of the headers leads to one buffer of the pool that is not out on loan,
            // and to room for control messages, with their sizes; all of them outlive the call.
            unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    messages,
                    length,
                    libc::MSG_DONTWAIT,
                    ptr::null_mut(),
                )
            }
        });
        count.unwrap_or(0)
    }

    fn fetched(&self, nth: usize) -> Fetched {
        let message = &self.0.messages[nth];
        let said = self.0.controls[nth].read(message.msg_hdr.msg_controllen);
        Fetched { captured: message.msg_len, said }
    }
}
