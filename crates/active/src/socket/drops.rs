//! Datagrams that the kernel dropped at a socket.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::CaptureLoss;

use crate::system_clock::SystemClock;

/// Max time of a stamped packet in the kernel's backlog: two ticks of its timer (`netdev_budget_usecs`,
/// `Documentation/admin-guide/sysctl/net.rst`), which are 8 ms at 250 Hz.
pub(crate) const BACKLOG: Span = Span::from_millis(10);

/// The kernel's count of dropped datagrams at the last reading.
pub(crate) struct DropCounter {
    dropped: u32,
    read_at: Time<Utc>,
}

impl DropCounter {
    /// A counter of a socket that is opened after `now`.
    pub(crate) fn new(now: Time<Utc>) -> Self {
        Self { dropped: 0, read_at: now }
    }

    /// Datagrams dropped since the last reading, when the count is `dropped` now. They arrived at a time between that
    /// reading and this one, which began at `now`.
    pub(crate) fn missed(
        &mut self,
        dropped: u32,
        now: Time<Utc>,
        clock: &dyn SystemClock,
    ) -> Option<CaptureLoss> {
        let packets = u64::from(dropped.wrapping_sub(self.dropped));
        let from = std::mem::replace(&mut self.read_at, now);
        self.dropped = dropped;
        // A stamp is from before the packet reached the socket.
        let missed = |until| CaptureLoss { from: (from - BACKLOG).min(until), until, packets };
        (packets > 0).then(|| missed(clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_clock::ClockState;

    /// A clock that always reads 500 ms.
    struct Fixed;

    impl SystemClock for Fixed {
        fn now(&self) -> Time<Utc> {
            at(500)
        }

        fn state(&mut self) -> ClockState {
            ClockState { synchronised: true, error: Span::ZERO, tai: None }
        }
    }

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn drops_lie_between_two_readings() {
        let mut counter = DropCounter::new(at(100));
        assert_eq!(counter.missed(0, at(200), &Fixed), None);
        let missed = counter.missed(3, at(400), &Fixed).unwrap();
        assert_eq!((missed.from, missed.until, missed.packets), (at(190), at(500), 3));
        assert_eq!(counter.missed(3, at(450), &Fixed), None);
        // The kernel's count wraps around.
        counter.dropped = u32::MAX;
        assert_eq!(counter.missed(1, at(460), &Fixed).unwrap().packets, 2);
    }
}
