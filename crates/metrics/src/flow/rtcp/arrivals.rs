//! Counts of a stream's packets that were captured, up to a sequence number.

use crate::rtp::Step;

/// Last sequence numbers whose packets are counted singly. A report is behind by the packets of a round trip.
const WINDOW: u64 = 2048;
const SLOTS: usize = 2048;
/// Max numbers that a report may be ahead of the captured packets, if the capture missed some.
const MAX_AHEAD: u16 = 100;

/// Packets captured since the first report, in constant memory.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// First number that is counted singly.
    first: u64,
    highest: u64,
    /// Packets, also duplicates and those that came late.
    received: u64,
    /// Of those, packets with a number that was received already.
    duplicates: u64,
    /// Packets of each number, at the number's remainder.
    counts: [u8; SLOTS],
}

/// Place of a report's highest sequence number among the captured packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Captured packets up to this number can be counted.
    Counted(u64),
    /// Near the captured packets, but not counted: from before the first report, or not captured yet.
    Near,
    /// Far from all captured packets.
    Unrelated,
}

impl Arrivals {
    /// Counts that begin after this number.
    pub(super) const fn after(highest: u64) -> Self {
        Self {
            first: highest.saturating_add(1),
            highest,
            received: 0,
            duplicates: 0,
            counts: [0; SLOTS],
        }
    }

    /// Records the next packet.
    pub(super) fn record(&mut self, step: Step) {
        match step {
            Step::Ahead(number) | Step::Behind(number) => self.add(number),
            Step::Restarted(number) => {
                *self = Self::after(number.saturating_sub(1));
                self.add(number);
            }
            Step::Stray => {}
        }
    }

    fn add(&mut self, number: u64) {
        let skipped = number.saturating_sub(self.highest).min(WINDOW);
        for newer in 0..skipped {
            self.set(number - newer, 0);
        }
        self.highest = self.highest.max(number);
        self.received += 1;
        // Packets before the first number, and those long ago, are below all numbers that are asked for.
        if number >= self.first && self.highest - number < WINDOW {
            let count = self.count(number);
            self.duplicates += u64::from(count > 0);
            self.set(number, count.saturating_add(1));
        }
    }

    fn count(&self, number: u64) -> u8 {
        let place = usize::try_from(number % WINDOW).unwrap_or(SLOTS);
        self.counts.get(place).copied().unwrap_or(0)
    }

    fn set(&mut self, number: u64, count: u8) {
        let place = usize::try_from(number % WINDOW).unwrap_or(SLOTS);
        if let Some(slot) = self.counts.get_mut(place) {
            *slot = count;
        }
    }

    /// Packets so far whose number was received before.
    pub(super) const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Place of a number of a report, of which only the lower 16 bits are comparable: the receiver may have begun earlier.
    pub(super) fn position(&self, extended: u32) -> Position {
        let number = low_half(extended.into());
        let ahead = number.wrapping_sub(low_half(self.highest));
        let behind = u64::from(ahead.wrapping_neg());
        let counted = self.highest.checked_sub(behind).filter(|_| behind < WINDOW);
        match counted {
            Some(number) if number + 1 >= self.first => Position::Counted(number),
            Some(_) => Position::Near,
            None if ahead <= MAX_AHEAD => Position::Near,
            None => Position::Unrelated,
        }
    }

    /// Packets up to a number that is [`Position::Counted`], since the counts began.
    pub(super) fn received_until(&self, number: u64) -> u64 {
        let newer: u64 = (number + 1..=self.highest).map(|it| u64::from(self.count(it))).sum();
        self.received.saturating_sub(newer)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "takes the low 16 bits")]
const fn low_half(number: u64) -> u16 {
    number as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_up_to_a_number() {
        let mut arrivals = Arrivals::after(70_000);
        for number in [70_001, 70_002, 70_002, 70_005] {
            arrivals.record(Step::Ahead(number));
        }
        arrivals.record(Step::Behind(70_004));
        arrivals.record(Step::Behind(69_990));
        assert_eq!(arrivals.duplicates(), 1);
        let until = |number| arrivals.received_until(number);
        assert_eq!([70_000, 70_001, 70_002, 70_003, 70_004, 70_005].map(until), [1, 2, 4, 4, 5, 6]);
    }

    #[test]
    fn old_counts_are_replaced() {
        let mut arrivals = Arrivals::after(70_000);
        (70_001..80_000).for_each(|number| arrivals.record(Step::Ahead(number)));
        assert_eq!(arrivals.received_until(79_000), 9_000);
        arrivals.record(Step::Ahead(82_990));
        assert_eq!(arrivals.received_until(82_989), 9_999);
        assert_eq!(arrivals.received_until(82_990), 10_000);
    }

    #[test]
    fn number_of_a_report_is_placed_by_its_lower_half() {
        let mut arrivals = Arrivals::after(2 * 65_536 - 10);
        (0..20u64).for_each(|it| arrivals.record(Step::Ahead(2 * 65_536 - 9 + it)));
        let position = |extended| arrivals.position(extended);
        assert_eq!(position(5 << 16 | 10), Position::Counted(2 * 65_536 + 10));
        assert_eq!(position(4 << 16 | 65_530), Position::Counted(2 * 65_536 - 6));
        assert_eq!(position(65_536 - 10), Position::Counted(2 * 65_536 - 10));
        assert_eq!(position(65_536 - 11), Position::Near);
        assert_eq!(position(110), Position::Near);
        assert_eq!([111, 30_000, 65_536 - 3000].map(position), [Position::Unrelated; 3]);
    }

    #[test]
    fn restart_begins_new_counts() {
        let mut arrivals = Arrivals::after(70_000);
        arrivals.record(Step::Ahead(70_001));
        arrivals.record(Step::Restarted(100_000));
        assert_eq!(arrivals.position(70_001), Position::Unrelated);
        assert_eq!(arrivals.position(34_464), Position::Counted(100_000));
        assert_eq!(arrivals.received_until(100_000), 1);
    }
}
