//! A stop request that wakes waiting threads at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// Requests the end of a capture. Clones refer to the same capture; a request is final.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requested: AtomicBool,
    event: OwnedFd,
}

impl Stop {
    /// A stop that is not requested yet.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Inner { requested: AtomicBool::new(false), event })))
    }

    /// Requests the stop and wakes waiting threads.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::Release);
        // Fails only if the counter is full; then the event is already signalled.
        let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Acquire)
    }

    /// Waits for the request for at most `duration`. A `duration` beyond the range of `Instant` is no limit.
    pub fn wait(&self, duration: Duration) {
        let end = Instant::now().checked_add(duration);
        let mut event = [PollFd::new(&self.0.event, PollFlags::IN)];
        while !self.is_requested() {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // A signal interrupts; every other result ends the wait.
            if poll(&mut event, left.as_ref()) != Err(Errno::INTR) {
                return;
            }
        }
    }

    /// The flag, for senders and receivers that poll it while they spin.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.0.requested
    }

    /// A descriptor that becomes readable with the request.
    pub(crate) fn event(&self) -> &OwnedFd {
        &self.0.event
    }
}

/// The descriptor becomes readable with the request, for threads that wait for several events.
impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
