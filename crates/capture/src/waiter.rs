//! Waiting for the next packet or the stop request: epoll(7), edge-triggered.
//!
//! Edge-triggered, because a ring counts as readable for as long as a frame of it is out on loan.
//! With poll(2) the acquisition thread would spin until the consumer has given everything back,
//! and on the consumer's core, with real-time priority, it would keep it from ever doing so.

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
    /// A waiter for news at `descriptor` and for the request of `stop`.
    pub(crate) fn new(descriptor: BorrowedFd<'_>, stop: &Stop) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for source in [descriptor, stop.event().as_fd()] {
            let nothing = epoll::EventData::new_u64(0); // who has the news does not matter
            epoll::add(&epoll, source, nothing, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        Ok(Self { epoll })
    }

    /// Waits until there is news since the last wait, or `limit` has passed. A signal counts as
    /// news.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<()> {
        // A limit that is too long for the kernel's type is none.
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
    fn news_is_told_once_and_then_only_news() {
        let (stop, packets) = (Stop::new().unwrap(), Stop::new().unwrap());
        let waiter = Waiter::new(packets.event().as_fd(), &stop).unwrap();
        packets.request();
        waiter.wait(LONG).unwrap();
        // Nobody has read it, so poll(2) would return at once; here the limit has to pass.
        let before = std::time::Instant::now();
        waiter.wait(Duration::from_millis(30)).unwrap();
        assert!(before.elapsed() >= Duration::from_millis(30));
        packets.request();
        waiter.wait(LONG).unwrap();
    }
}
