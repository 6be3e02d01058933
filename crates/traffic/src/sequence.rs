//! What arrived of one stream.

use serde::Serialize;

/// The highest sequence number that is kept track of, and one: 16 MiB of bitmap a stream.
const TRACKED: u64 = 1 << 27;

/// What arrived of one stream, by its sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamTruth {
    /// Packets that arrived, every copy counted.
    pub received: u64,
    /// Different packets among them.
    pub distinct: u64,
    /// Copies of a packet that was there already (RFC 5560).
    pub duplicated: u64,
    /// Packets that came after one with a higher number, copies discarded first (RFC 4737 section
    /// 3.3: lower than the next expected).
    pub reordered: u64,
    /// Packets whose number is too high to keep track of; they are in `received` only.
    pub untracked: u64,
}

/// Follows the sequence numbers of one stream, in memory that is bounded by the highest.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    truth: StreamTruth,
    /// One bit for each number, set when it has arrived.
    seen: Vec<u64>,
    next_expected: u64,
}

impl Tracker {
    pub(crate) const fn truth(&self) -> StreamTruth {
        self.truth
    }

    /// Takes note of an arrival.
    pub(crate) fn arrive(&mut self, sequence: u64) {
        self.truth.received += 1;
        let Some((word, bit)) = place(sequence) else {
            self.truth.untracked += 1;
            return;
        };
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.truth.duplicated += 1;
            return;
        }
        self.seen[word] |= bit;
        self.truth.distinct += 1;
        if sequence < self.next_expected {
            self.truth.reordered += 1;
        } else {
            self.next_expected = sequence + 1;
        }
    }
}

/// Where the bit of a number is, if it is kept track of.
fn place(sequence: u64) -> Option<(usize, u64)> {
    let word = usize::try_from(sequence / 64).ok().filter(|_| sequence < TRACKED)?;
    Some((word, 1 << (sequence % 64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(sequences: &[u64]) -> StreamTruth {
        let mut tracker = Tracker::default();
        sequences.iter().for_each(|&sequence| tracker.arrive(sequence));
        tracker.truth()
    }

    #[test]
    fn a_packet_that_is_overtaken_is_reordered_and_the_one_that_overtakes_is_not() {
        let truth = truth(&[0, 1, 7, 2, 3, 8]);
        assert_eq!((truth.distinct, truth.reordered, truth.duplicated), (6, 2, 0));
    }

    #[test]
    fn a_copy_is_a_duplicate_and_never_reordered() {
        let truth = truth(&[0, 1, 2, 0, 2]);
        assert_eq!((truth.received, truth.distinct), (5, 3));
        assert_eq!((truth.duplicated, truth.reordered), (2, 0));
    }

    #[test]
    fn loss_alone_is_neither() {
        let truth = truth(&[3, 64, 65, 1000]);
        assert_eq!((truth.distinct, truth.reordered, truth.duplicated), (4, 0, 0));
    }

    #[test]
    fn a_wild_number_is_counted_and_takes_no_memory() {
        let truth = truth(&[0, u64::MAX, TRACKED]);
        assert_eq!((truth.received, truth.distinct, truth.untracked), (3, 1, 2));
    }
}
