//! How messages follow each other, by their sequence numbers (RFC 7011 section 3.1).

use std::collections::VecDeque;

use super::Order;

/// How many messages are remembered: as many may overtake another.
const RECENT: usize = 64;

/// What has come of an observation domain.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// The number of the message that is to come.
    next: Option<u32>,
    /// The last messages, in the order in which they came.
    recent: VecDeque<Came>,
    /// Numbers of records that have not come: the first, and how many.
    gaps: VecDeque<(u32, u32)>,
}

/// A message: the number of its first record, how many it has, and the second in which it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Came {
    sequence: u32,
    count: u32,
    second: u32,
}

impl Sequence {
    /// Takes note of a message of this number, with so many records, which was sent in a second.
    pub(super) fn follow(&mut self, sequence: u32, count: u32, second: u32) -> Order {
        let came = Came { sequence, count, second };
        let order = match self.next {
            None => Order::First,
            Some(next) => {
                let ahead = sequence.wrapping_sub(next);
                // More than half of all numbers ahead is behind.
                if ahead >> 31 == 0 { Order::Missed(ahead) } else { self.behind(next, came) }
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
            remember(&mut self.recent, came);
        }
        order
    }

    /// What a message is that was sent before the one that came last, or says so.
    fn behind(&mut self, next: u32, came: Came) -> Order {
        if self.recent.contains(&came) {
            return Order::Copy;
        }
        let back = |sequence: u32| next.wrapping_sub(sequence);
        let farthest = self.recent.iter().map(|it| back(it.sequence));
        let farthest = farthest.chain(self.gaps.iter().map(|it| back(it.0))).max().unwrap_or(0);
        if came.count == 0 && back(came.sequence) <= farthest {
            // Templates, which count for nothing.
            return Order::Late(0);
        }
        if self.fill(came) { Order::Late(came.count) } else { Order::Back }
    }

    /// Takes records out of the gap that they were missing in; says whether there is one.
    fn fill(&mut self, came: Came) -> bool {
        let offset = |(from, _): (u32, u32)| came.sequence.wrapping_sub(from);
        let holds = |gap: (u32, u32)| {
            came.count > 0 && offset(gap).checked_add(came.count).is_some_and(|end| end <= gap.1)
        };
        let Some(place) = self.gaps.iter().position(|gap| holds(*gap)) else { return false };
        let Some(gap) = self.gaps.remove(place) else { return false };
        let before = offset(gap);
        let rest = [
            (gap.0, before),
            (came.sequence.wrapping_add(came.count), gap.1 - before - came.count),
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
    fn what_is_overtaken_fills_the_gap_that_it_left() {
        let mut sequence = Sequence::default();
        let mut follow = |number, count| sequence.follow(number, count, 7);
        assert_eq!(follow(u32::MAX - 9, 10), Order::First);
        assert_eq!(follow(30, 5), Order::Missed(30));
        assert_eq!(follow(10, 10), Order::Late(10));
        assert_eq!(follow(10, 10), Order::Copy);
        assert_eq!(follow(0, 10), Order::Late(10));
        assert_eq!(follow(35, 1), Order::Missed(0));
        // Templates were sent in between.
        assert_eq!(follow(30, 0), Order::Late(0));
        assert_eq!(follow(20, 10), Order::Late(10));
        assert_eq!(follow(36, 1), Order::Missed(0));
        assert_eq!(follow(36, 1), Order::Copy);
    }

    #[test]
    fn one_that_begins_anew_is_no_copy() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.follow(0, 5, 7), Order::First);
        assert_eq!(sequence.follow(9, 1, 7), Order::Missed(4));
        assert_eq!(sequence.follow(0, 5, 8), Order::Back);
        assert_eq!(sequence.follow(5, 5, 8), Order::Missed(0));
    }

    proptest! {
        /// However they overtake each other, nothing is counted as missed in the end but what was.
        #[test]
        fn what_is_missed_and_not_late_did_not_come(
            counts in prop::collection::vec((1..9_u32, any::<bool>(), 0..6_usize), 1..40), first: u32,
        ) {
            let mut next = first;
            let messages = counts.iter().enumerate().map(|(nth, (count, comes, later))| {
                let message = (nth + later, next, *count, *comes || nth == 0);
                next = next.wrapping_add(*count);
                message
            });
            let mut messages: Vec<_> = messages.collect();
            // The first comes first, and the last last: what is before and behind nobody can know.
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
