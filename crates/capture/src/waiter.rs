//! Waits for the next packet or the stop request: epoll(7), edge-triggered.
//!
//! A ring counts as readable while a frame of it is in use. With poll(2) the acquisition thread would spin until
//! the consumer has released everything. On the consumer's core, with real-time priority, it would block the
//! consumer forever.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::Stop;

/// Waits for a receiver and a stop.
#[derive(Debug)]
pub(crate) struct Waiter {
    epoll: OwnedFd,
}

impl Waiter {
    /// A waiter for events at `descriptor` and for the request of `stop`.
    pub(crate) fn new(descriptor: BorrowedFd<'_>, stop: &Stop) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for source in [descriptor, stop.event().as_fd()] {
            let data = epoll::EventData::new_u64(0); // the source of the event does not matter
            epoll::add(&epoll, source, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        Ok(Self { epoll })
    }

    /// Returns when an event has occurred since the last wait, or after `limit`. A signal counts as an event.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<()> {
        // A limit beyond the range of the kernel's type is no limit.
        let limit = Timespec::try_from(limit).ok();
        let mut events = [MaybeUninit::uninit(); 2];
        match epoll::wait(&self.epoll, &mut events, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_request_wakes_a_waiting_thread() {
        let (stop, quiet) = (Stop::new().unwrap(), Stop::new().unwrap());
        let waiter = Waiter::new(quiet.event().as_fd(), &stop).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                waiter.wait(LONG).unwrap();
                stop.is_requested()
            });
            stop.request();
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn each_event_ends_one_wait() {
        let (stop, packets) = (Stop::new().unwrap(), Stop::new().unwrap());
        let waiter = Waiter::new(packets.event().as_fd(), &stop).unwrap();
        packets.request();
        waiter.wait(LONG).unwrap();
        // The event stays unread, so poll(2) would return at once; here the limit has to pass.
        let before = std::time::Instant::now();
        waiter.wait(Duration::from_millis(30)).unwrap();
        assert!(before.elapsed() >= Duration::from_millis(30));
        packets.request();
        waiter.wait(LONG).unwrap();
    }
}
