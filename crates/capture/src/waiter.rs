//! Waiting for the next packet or the stop request: epoll(7), edge-triggered.
//!
//! Edge-triggered, because a ring counts as readable for as long as a frame of it is out on loan.
//! With poll(2) the acquisition thread would spin until the consumer has given everything back,
//! and on the consumer's core, with real-time priority, it would keep it from ever doing so.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::Stop;

/// Waits for a receiver and a stop.
#[derive(Debug)]
pub(crate) struct Waiter {
    epoll: OwnedFd,
}

impl Waiter {
    /// A waiter for news at `descriptor` and for the request of `stop`.
    pub(crate) fn new(descriptor: RawFd, stop: &Stop) -> io::Result<Self> {
        // SAFETY: epoll_create1 takes no pointers; its result is checked before it is owned.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened and nothing else owns it.
        let waiter = Self { epoll: unsafe { OwnedFd::from_raw_fd(fd) } };
        waiter.add(descriptor)?;
        waiter.add(stop.event().as_raw_fd())?;
        Ok(waiter)
    }

    fn add(&self, descriptor: RawFd) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLET).cast_unsigned();
        let mut event = libc::epoll_event { events, u64: 0 };
        // SAFETY: the event is readable, and the kernel copies it.
        let result = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &raw mut event)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until there is news since the last wait, or `limit` has passed. A signal counts as
    /// news.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<()> {
        let limit = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
        // SAFETY: `events` is writable and has room for the two that are asked for.
        let ready =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), 2, limit) };
        match ready {
            0.. => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
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
        let waiter = Waiter::new(quiet.event().as_raw_fd(), &stop).unwrap();
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
        let waiter = Waiter::new(packets.event().as_raw_fd(), &stop).unwrap();
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
