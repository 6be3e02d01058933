//! Queue of frames that wait until they are due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use wirestamp_clock::{Time, Utc};

/// A waiting frame. Ordered for a max-heap: the earliest due frame is the max.
#[derive(Debug)]
pub(crate) struct QueuedFrame {
    /// Earliest send time.
    pub(crate) due: Time<Utc>,
    /// Number of the frame in the order of insertion.
    order: u64,
    /// The frame as received from the socket.
    pub(crate) frame: Box<[u8]>,
    /// Index of the packet in the report.
    pub(crate) packet: usize,
    /// 0 for the first transmission, 1 for the duplicate.
    pub(crate) copy: usize,
}

/// Frames sorted by due time, then by insertion.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    queued: BinaryHeap<QueuedFrame>,
    push: u64,
}

impl Queue {
    /// Inserts a frame that is due at `due`.
    pub(crate) fn push(&mut self, due: Time<Utc>, frame: Box<[u8]>, packet: usize, copy: usize) {
        self.queued.push(QueuedFrame { due, order: self.push, frame, packet, copy });
        self.push += 1;
    }

    /// Due time of the next frame.
    pub(crate) fn next_due(&self) -> Option<Time<Utc>> {
        self.queued.peek().map(|queued| queued.due)
    }

    /// Removes and returns the next frame, if it is due at `now`.
    pub(crate) fn take_due(&mut self, now: Time<Utc>) -> Option<QueuedFrame> {
        self.next_due().filter(|due| *due <= now)?;
        self.queued.pop()
    }
}

impl Ord for QueuedFrame {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

impl PartialOrd for QueuedFrame {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for QueuedFrame {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for QueuedFrame {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_frame_leaves_before_it_is_due() {
        let mut queue = Queue::default();
        queue.push(Time::from_nanos(10), Box::default(), 0, 0);
        assert!(queue.take_due(Time::from_nanos(9)).is_none());
        assert_eq!(queue.next_due(), Some(Time::from_nanos(10)));
        assert!(queue.take_due(Time::from_nanos(10)).is_some());
        assert_eq!(queue.next_due(), None);
    }

    proptest! {
        #[test]
        fn frames_leave_by_due_time_then_insertion(
            due in prop::collection::vec(0_i64..20, 0..100),
        ) {
            let mut queue = Queue::default();
            for (packet, due) in due.iter().enumerate() {
                queue.push(Time::from_nanos(*due), Box::default(), packet, 0);
            }
            let latest = Time::from_nanos(20);
            let left: Vec<_> = std::iter::from_fn(|| queue.take_due(latest))
                .map(|queued| (queued.due.as_nanos(), queued.packet))
                .collect();
            let mut expected: Vec<_> = due.into_iter().zip(0..).collect();
            expected.sort_unstable();
            prop_assert_eq!(left, expected);
        }
    }
}
