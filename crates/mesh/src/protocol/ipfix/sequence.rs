//! Sequence numbers of messages (RFC 7011 section 3.1).

use std::collections::VecDeque;

use super::Order;

/// Number of messages remembered to detect reordering and duplicates.
const RECENT: usize = 64;

/// Sequence state of an observation domain.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// Expected sequence number.
    next: Option<u32>,
    /// Last messages, in order of arrival.
    recent: VecDeque<ReceivedMessage>,
    /// Missing records: first number and count.
    gaps: VecDeque<(u32, u32)>,
}

/// A message: number of its first record, number of records, export time in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReceivedMessage {
    sequence: u32,
    count: u32,
    second: u32,
}

impl Sequence {
    /// Classifies the next message.
    pub(super) fn follow(&mut self, sequence: u32, count: u32, second: u32) -> Order {
        let received = ReceivedMessage { sequence, count, second };
        let order = match self.next {
            None => Order::First,
            Some(next) => {
                let ahead = sequence.wrapping_sub(next);
                // Distances of more than half the range are backwards.
                if ahead >> 31 == 0 { Order::Missed(ahead) } else { self.behind(next, received) }
            }
        };
        match order {
            Order::Missed(0) | Order::Late(_) | Order::Copy => {}
            Order::Missed(missed) => {
                remember(&mut self.gaps, (sequence.wrapping_sub(missed), missed))
            }
            Order::First | Order::Back => {
                self.gaps.clear();
                self.recent.clear();
            }
        }
        if !matches!(order, Order::Late(_) | Order::Copy) {
            self.next = Some(sequence.wrapping_add(count));
        }
        if order != Order::Copy {
            remember(&mut self.recent, received);
        }
        order
    }

    /// Classifies a message that was overtaken, or seems to be.
    fn behind(&mut self, next: u32, received: ReceivedMessage) -> Order {
        if self.recent.contains(&received) {
            return Order::Copy;
        }
        let back = |sequence: u32| next.wrapping_sub(sequence);
        let farthest = self.recent.iter().map(|it| back(it.sequence));
        let farthest = farthest.chain(self.gaps.iter().map(|it| back(it.0))).max().unwrap_or(0);
        if received.count == 0 && back(received.sequence) <= farthest {
            // A message with templates only.
            return Order::Late(0);
        }
        if self.fill(received) { Order::Late(received.count) } else { Order::Back }
    }

    /// Removes records from the gap that they belong to. Returns whether there is one.
    fn fill(&mut self, received: ReceivedMessage) -> bool {
        let offset = |(from, _): (u32, u32)| received.sequence.wrapping_sub(from);
        let holds = |gap: (u32, u32)| {
            received.count > 0
                && offset(gap).checked_add(received.count).is_some_and(|end| end <= gap.1)
        };
        let Some(place) = self.gaps.iter().position(|gap| holds(*gap)) else { return false };
        let Some(gap) = self.gaps.remove(place) else { return false };
        let before = offset(gap);
        let rest = [
            (gap.0, before),
            (received.sequence.wrapping_add(received.count), gap.1 - before - received.count),
        ];
        rest.into_iter().filter(|(_, left)| *left > 0).for_each(|it| remember(&mut self.gaps, it));
        true
    }
}

fn remember<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() >= RECENT {
        all.pop_front();
    }
    all.push_back(one);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn overtaken_message_fills_its_gap() {
        let mut sequence = Sequence::default();
        let mut follow = |number, count| sequence.follow(number, count, 7);
        assert_eq!(follow(u32::MAX - 9, 10), Order::First);
        assert_eq!(follow(30, 5), Order::Missed(30));
        assert_eq!(follow(10, 10), Order::Late(10));
        assert_eq!(follow(10, 10), Order::Copy);
        assert_eq!(follow(0, 10), Order::Late(10));
        assert_eq!(follow(35, 1), Order::Missed(0));
        // Only templates were sent in between.
        assert_eq!(follow(30, 0), Order::Late(0));
        assert_eq!(follow(20, 10), Order::Late(10));
        assert_eq!(follow(36, 1), Order::Missed(0));
        assert_eq!(follow(36, 1), Order::Copy);
    }

    #[test]
    fn restart_is_not_a_duplicate() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.follow(0, 5, 7), Order::First);
        assert_eq!(sequence.follow(9, 1, 7), Order::Missed(4));
        assert_eq!(sequence.follow(0, 5, 8), Order::Back);
        assert_eq!(sequence.follow(5, 5, 8), Order::Missed(0));
    }

    proptest! {
        /// In any order of arrival, only lost records count as missed.
        #[test]
        fn missed_minus_late_equals_lost(
            counts in prop::collection::vec((1..9_u32, any::<bool>(), 0..6_usize), 1..40), first: u32,
        ) {
            let mut next = first;
            let messages = counts.iter().enumerate().map(|(nth, (count, comes, later))| {
                let message = (nth + later, next, *count, *comes || nth == 0);
                next = next.wrapping_add(*count);
                message
            });
            let mut messages: Vec<_> = messages.collect();
            // The first and last messages keep their places: losses outside cannot be detected.
            let last = messages.pop().filter(|_| messages.len() > 1);
            if let Some(rest) = messages.get_mut(1..) {
                rest.sort_by_key(|it| it.0);
            }
            messages.extend(last.map(|it| (it.0, it.1, it.2, true)));
            let mut sequence = Sequence::default();
            let mut missed = 0_i64;
            for (_, number, count, _) in messages.iter().filter(|it| it.3) {
                match sequence.follow(*number, *count, 7) {
                    Order::First => {}
                    Order::Missed(more) => missed += i64::from(more),
                    Order::Late(less) => missed -= i64::from(less),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            let newest = messages.iter().filter(|it| it.3).map(|it| it.1.wrapping_sub(first)).max();
            let gone = messages.iter().filter(|it| !it.3 && Some(it.1.wrapping_sub(first)) < newest);
            prop_assert_eq!(missed, gone.map(|it| i64::from(it.2)).sum::<i64>());
        }
    }
}
