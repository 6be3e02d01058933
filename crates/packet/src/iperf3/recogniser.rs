//! Recognition of iperf3 tests among other UDP, on any port.

use super::{Counter, Iperf3};

/// Number of consistent neighbours that make a test. The counts of two random datagrams are this close with
/// probability one in two million, and both their clocks are valid with probability one in 18 million.
const MIN_NEIGHBOURS: u32 = 3;
/// Max difference between the counts of neighbours, by loss or reordering.
const MAX_DISTANCE: u64 = 1000;

/// Checks the datagrams of one flow and one direction, in the order of arrival.
///
/// Neighbours are consistent if their counts differ by at most a thousand, and the clock and the count move in the
/// same direction. Neighbours may have the same time, but in a test the clock advances. Duplicates are ignored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recogniser {
    narrow: Candidate,
    wide: Candidate,
}

/// Hypothesis of one width of counts.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    previous: Option<Iperf3>,
    fit: u32,
    /// Whether the clock has advanced between consistent neighbours.
    has_advanced: bool,
}

impl Recogniser {
    /// Processes the next datagram's payload. Returns the width of the counts once the test is certain. The datagrams
    /// before that belong to the test: the first has a count near 1.
    ///
    /// A test with 64-bit counts has 0 at the position of 32-bit counts, for its first four thousand million datagrams.
    /// A test with 32-bit counts, read as 64-bit counts, has neighbours that are too far apart.
    pub fn record(&mut self, payload: &[u8]) -> Option<Counter> {
        let narrow = self.narrow.record(Iperf3::parse(payload, Counter::Bits32));
        let wide = self.wide.record(Iperf3::parse(payload, Counter::Bits64));
        match (narrow, wide) {
            (true, _) => Some(Counter::Bits32),
            (false, true) => Some(Counter::Bits64),
            (false, false) => None,
        }
    }
}

impl Candidate {
    /// True if enough neighbours are consistent.
    fn record(&mut self, head: Option<Iperf3>) -> bool {
        match (self.previous, head) {
            (Some(previous), Some(head)) if head == previous => {}
            (Some(previous), Some(head)) if are_neighbours(previous, head) => {
                self.fit = self.fit.saturating_add(1);
                self.has_advanced |= previous.sent_micros != head.sent_micros;
            }
            _ => (self.fit, self.has_advanced) = (0, false),
        }
        self.previous = head;
        self.fit >= MIN_NEIGHBOURS && self.has_advanced
    }
}

fn are_neighbours(one: Iperf3, other: Iperf3) -> bool {
    let (first, second) = if one.count < other.count { (one, other) } else { (other, one) };
    (1..=MAX_DISTANCE).contains(&(second.count - first.count))
        && first.sent_micros <= second.sent_micros
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::payload;
    use super::*;

    fn is_recognised(payloads: impl IntoIterator<Item = Vec<u8>>) -> bool {
        let mut recogniser = Recogniser::default();
        payloads.into_iter().any(|payload| recogniser.record(&payload).is_some())
    }

    #[test]
    fn four_datagrams_are_enough_for_each_width() {
        for counter in [Counter::Bits32, Counter::Bits64] {
            let mut recogniser = Recogniser::default();
            let found: Vec<_> = (1..=4)
                .map(|count| recogniser.record(&payload(5_000_000 + count, count, counter)))
                .collect();
            assert_eq!(found, [None, None, None, Some(counter)]);
        }
    }

    #[test]
    fn loss_reordering_and_duplicates_do_not_hide_a_test() {
        let counts = [1, 4, 3, 3, 20];
        let payloads = counts.map(|count| payload(9_000_000 + count, count, Counter::Bits32));
        assert!(is_recognised(payloads));
    }

    #[test]
    fn datagrams_of_one_microsecond_do_not_hide_a_test() {
        let counts_and_times = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 1)];
        let payloads = counts_and_times
            .map(|(count, micros)| payload(9_000_000 + micros, count, Counter::Bits32));
        assert!(is_recognised(payloads));
    }

    #[test]
    fn inconsistent_clock_or_constant_count_is_no_test() {
        let backwards = (1..100).map(|count| payload(9_000_000 - count, count, Counter::Bits32));
        assert!(!is_recognised(backwards));
        let still = (1..100).map(|at| payload(9_000_000 + at, 7, Counter::Bits32));
        assert!(!is_recognised(still));
        let stopped_clock = (1..100).map(|count| payload(9_000_000, count, Counter::Bits64));
        assert!(!is_recognised(stopped_clock));
        assert!(!is_recognised((1..100).map(|_| vec![0; 100])));
    }

    proptest! {
        #[test]
        fn random_datagrams_are_no_test(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 16..40), 0..50),
        ) {
            prop_assert!(!is_recognised(payloads));
        }
    }
}
