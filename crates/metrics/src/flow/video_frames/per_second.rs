//! Amounts in each whole second since the begin of a stream.

use wirestamp_clock::{Time, Utc};

const SECOND: i64 = 1_000_000_000;

/// Number of the second at a time.
pub(super) fn second(begin: Time<Utc>, time: Time<Utc>) -> i64 {
    (time - begin).as_nanos().div_euclid(SECOND)
}

/// Min and max of an amount in the seconds that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PerSecond {
    /// The current second, and its amount so far.
    second: i64,
    amount: u64,
    /// Min and max.
    range: Option<(u64, u64)>,
}

impl PerSecond {
    /// Adds an amount; that of an earlier second counts in the current one.
    pub(super) fn add(&mut self, second: i64, amount: u64) {
        self.advance(second);
        self.amount = self.amount.saturating_add(amount);
    }

    /// Ends the seconds before this one.
    pub(super) fn advance(&mut self, second: i64) {
        if second <= self.second {
            return;
        }
        self.end(self.amount);
        if second.saturating_sub(self.second) > 1 {
            self.end(0);
        }
        (self.second, self.amount) = (second, 0);
    }

    fn end(&mut self, amount: u64) {
        let (min, max) = self.range.unwrap_or((amount, amount));
        self.range = Some((min.min(amount), max.max(amount)));
    }

    /// Min amount of a whole second; none in the first one.
    pub(super) fn min(&self) -> Option<u64> {
        self.range.map(|(min, _)| min)
    }

    /// Max amount of a whole second; none in the first one.
    pub(super) fn max(&self) -> Option<u64> {
        self.range.map(|(_, max)| max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_seconds_count() {
        let mut amounts = PerSecond::default();
        amounts.add(0, 7);
        amounts.add(0, 1);
        assert_eq!((amounts.min(), amounts.max()), (None, None));
        amounts.add(1, 5);
        assert_eq!((amounts.min(), amounts.max()), (Some(8), Some(8)));
        amounts.advance(2);
        assert_eq!((amounts.min(), amounts.max()), (Some(5), Some(8)));
    }

    #[test]
    fn seconds_without_packets_count() {
        let mut amounts = PerSecond::default();
        amounts.add(0, 3);
        amounts.add(5, 3);
        amounts.add(2, 3);
        assert_eq!((amounts.min(), amounts.max()), (Some(0), Some(3)));
        assert_eq!(second(Time::from_nanos(5), Time::from_nanos(5 + 2 * SECOND)), 2);
    }
}
