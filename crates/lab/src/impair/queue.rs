//! Frames that wait until they are due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use wirestamp_clock::{Time, Utc};

/// A frame that is to be sent.
#[derive(Debug)]
pub(super) struct Held {
    /// When, at the earliest.
    pub(super) due: Time<Utc>,
    /// Its place in the order in which frames were put in.
    order: u64,
    /// The frame as the socket gave it.
    pub(super) frame: Box<[u8]>,
    /// Which passage it belongs to, and which of its copies it is.
    pub(super) passage: usize,
    pub(super) copy: usize,
}

/// Lets frames out in the order in which they are due; those due at once, as they came in.
#[derive(Debug, Default)]
pub(super) struct Queue {
    held: BinaryHeap<Held>,
    put: u64,
}

impl Queue {
    /// Holds a frame until `due`.
    pub(super) fn put(&mut self, due: Time<Utc>, frame: Box<[u8]>, passage: usize, copy: usize) {
        self.held.push(Held { due, order: self.put, frame, passage, copy });
        self.put += 1;
    }

    /// When the next frame is due.
    pub(super) fn next_due(&self) -> Option<Time<Utc>> {
        self.held.peek().map(|held| held.due)
    }

    /// Lets out the next frame, if it is due by `now`.
    pub(super) fn take_due(&mut self, now: Time<Utc>) -> Option<Held> {
        self.next_due().filter(|due| *due <= now)?;
        self.held.pop()
    }
}

/// The greatest is the one that is let out first.
impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Held {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_leaves_before_it_is_due() {
        let mut queue = Queue::default();
        queue.put(Time::from_nanos(10), Box::default(), 0, 0);
        assert!(queue.take_due(Time::from_nanos(9)).is_none());
        assert_eq!(queue.next_due(), Some(Time::from_nanos(10)));
        assert!(queue.take_due(Time::from_nanos(10)).is_some());
        assert_eq!(queue.next_due(), None);
    }

    proptest! {
        #[test]
        fn frames_leave_as_they_are_due_and_ties_as_they_came(
            due in prop::collection::vec(0_i64..20, 0..100),
        ) {
            let mut queue = Queue::default();
            for (passage, due) in due.iter().enumerate() {
                queue.put(Time::from_nanos(*due), Box::default(), passage, 0);
            }
            let latest = Time::from_nanos(20);
            let left: Vec<_> = std::iter::from_fn(|| queue.take_due(latest))
                .map(|held| (held.due.as_nanos(), held.passage))
                .collect();
            let mut expected: Vec<_> = due.into_iter().zip(0..).collect();
            expected.sort_unstable();
            prop_assert_eq!(left, expected);
        }
    }
}
