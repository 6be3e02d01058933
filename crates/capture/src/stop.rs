//! A stop request that a waiting thread notices at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

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
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Inner { requested: AtomicBool::new(false), event })))
    }

    /// Requests the stop and wakes whoever waits for packets.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::Release);
        // Fails only if the counter is full, and then the event is signalled already.
        let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Acquire)
    }

    /// Waits for the request, `duration` at the most; a duration beyond the end of time is no limit.
    pub fn wait(&self, duration: Duration) {
        let end = Instant::now().checked_add(duration);
        let mut event = [PollFd::new(&self.0.event, PollFlags::IN)];
        while !self.is_requested() {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // A signal interrupts; anything else ends the wait.
            if poll(&mut event, left.as_ref()) != Err(Errno::INTR) {
                return;
            }
        }
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

/// The descriptor becomes readable with the request, for those who wait for more than that.
impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
