//! A stop request that a waiting thread notices at once.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a capture to end. Clones ask the same capture; a request cannot be taken back.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requested: AtomicBool,
    event: OwnedFd,
}

impl Stop {
    /// A stop that nobody has requested yet.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes no pointers; its result is checked before it is owned.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened and nothing else owns it.
        let event = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self(Arc::new(Inner { requested: AtomicBool::new(false), event })))
    }

    /// Requests the stop and wakes whoever waits for packets.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::Release);
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the buffer holds the eight bytes that are passed. The result does not matter:
        // the counter can only be full if the event is signalled already.
        unsafe { libc::write(self.0.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Acquire)
    }

    /// The flag itself, for senders and receivers that look at it while they spin.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.0.requested
    }

    /// A descriptor that becomes readable with the request.
    pub(crate) fn event(&self) -> &OwnedFd {
        &self.0.event
    }
}
