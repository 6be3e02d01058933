//! Numbers that a reflector assigns to its replies.

use std::collections::BTreeSet;
use std::ops::Range;

/// Max missing numbers kept. Beyond that, the lowest are removed, and all of a longer run.
const MAX_UNSEEN: u64 = 1 << 16;

/// Numbers seen and missing.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: u64,
    unseen: BTreeSet<u64>,
}

impl Numbers {
    /// Records a number. Returns false if it cannot be new.
    pub(super) fn see(&mut self, number: u64) -> bool {
        if number < self.next {
            return self.unseen.remove(&number);
        }
        if number - self.next > MAX_UNSEEN {
            self.unseen.clear();
        } else {
            self.unseen.extend(self.next..number);
        }
        while self.unseen.len() as u64 > MAX_UNSEEN {
            self.unseen.pop_first();
        }
        self.next = number + 1;
        true
    }

    /// Removes up to `max` missing numbers in the range.
    pub(super) fn take_unseen(&mut self, range: Range<u64>, max: usize) -> Vec<u64> {
        if range.is_empty() {
            return Vec::new();
        }
        let taken: Vec<u64> = self.unseen.range(range).take(max).copied().collect();
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
    fn large_jump_stays_within_the_memory_limit() {
        let mut numbers = Numbers::default();
        for number in [10, 1 << 40, (1 << 40) + MAX_UNSEEN, (1 << 40) + 2 * MAX_UNSEEN] {
            assert!(numbers.see(number));
        }
        assert_eq!(numbers.unseen.len() as u64, MAX_UNSEEN);
    }
}
