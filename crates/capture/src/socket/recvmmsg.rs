//! `recvmmsg`: up to [`BATCH`] packets per call, recvmmsg(2).
//!
//! It saves system calls where packets arrive faster than they are read. The packets of a call share one raw stamp,
//! which is late for all but the last.

use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::control::Control;
use super::{BATCH, Call, Fetched, attempt, header};
use crate::pool::Pool;

/// Memory that the kernel reads and writes in a call, except the packets'.
struct Batch {
    messages: [libc::mmsghdr; BATCH],
    vectors: [libc::iovec; BATCH],
    controls: [Control; BATCH],
}

/// The call and its results.
pub(crate) struct Recvmmsg(Box<Batch>);

// SAFETY: its pointers are used only during a call, and set before each.
unsafe impl Send for Recvmmsg {}

impl Batch {
    /// Points the first `count` headers to the buffers from the `first` on.
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
            // SAFETY: each header points to one free buffer of the pool and to room for control messages, with
            // their sizes; all of them outlive the call.
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
