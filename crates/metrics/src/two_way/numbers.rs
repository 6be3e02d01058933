//! The numbers that a reflector gives to what it returns.

use std::collections::BTreeSet;
use std::ops::Range;

/// Numbers that are kept while they have not been seen; beyond it the lowest are forgotten, and of more in a
/// row all.
const MOST: u64 = 1 << 16;

/// Which numbers have been seen.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: u64,
    unseen: BTreeSet<u64>,
}

impl Numbers {
    /// Takes note of a number; false if it cannot have been seen for the first time.
    pub(super) fn see(&mut self, number: u64) -> bool {
        if number < self.next {
            return self.unseen.remove(&number);
        }
        if number - self.next > MOST {
            self.unseen.clear();
        } else {
            self.unseen.extend(self.next..number);
        }
        while self.unseen.len() as u64 > MOST {
            self.unseen.pop_first();
        }
        self.next = number + 1;
        true
    }

    /// Takes out up to `most` of the numbers in the range that have not been seen.
    pub(super) fn take_unseen(&mut self, range: Range<u64>, most: usize) -> Vec<u64> {
        if range.is_empty() {
            return Vec::new();
        }
        let taken: Vec<u64> = self.unseen.range(range).take(most).copied().collect();
        for number in &taken {
            self.unseen.remove(number);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_seen_once_and_gaps_are_taken_once() {
        let mut numbers = Numbers::default();
        assert!([0, 1, 5, 3].into_iter().all(|number| numbers.see(number)));
        assert!(![3, 1].into_iter().any(|number| numbers.see(number)));
        assert_eq!(numbers.take_unseen(2..5, 1), [2]);
        assert_eq!(numbers.take_unseen(2..5, 9), [4]);
        assert!(numbers.take_unseen(0..9, 9).is_empty());
        assert!(!numbers.see(4));
    }

    #[test]
    fn a_number_far_ahead_takes_no_more_memory_than_is_allowed() {
        let mut numbers = Numbers::default();
        for number in [10, 1 << 40, (1 << 40) + MOST, (1 << 40) + 2 * MOST] {
            assert!(numbers.see(number));
        }
        assert_eq!(numbers.unseen.len() as u64, MOST);
    }
}
