//! Counts the arrivals of one stream by sequence number.

use serde::Serialize;

/// Tracked sequence numbers are below this: 16 MiB of bitmap per stream.
const MAX_TRACKED: u64 = 1 << 27;

/// Arrivals of one stream, by sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamArrivals {
    /// Arrived packets, duplicates included.
    pub received: u64,
    /// Arrived packets, duplicates excluded.
    pub distinct: u64,
    /// Duplicates of an arrived packet (RFC 5560).
    pub duplicated: u64,
    /// Packets with a lower number than the next expected one, duplicates excluded (RFC 4737 section
    /// 3.3).
    pub reordered: u64,
    /// Packets whose number is too high to be tracked; counted in `received` only.
    pub untracked: u64,
}

/// Tracks the sequence numbers of one stream in bounded memory.
#[derive(Debug, Default)]
pub(crate) struct SequenceTracker {
    pub(crate) arrivals: StreamArrivals,
    /// One bit per sequence number, set on arrival.
    arrived: Vec<u64>,
    next_expected: u64,
}

impl SequenceTracker {
    /// Counts an arrival.
    pub(crate) fn count(&mut self, sequence: u64) {
        self.arrivals.received += 1;
        let Some((word, bit)) = bit_position(sequence) else {
            self.arrivals.untracked += 1;
            return;
        };
        if word >= self.arrived.len() {
            self.arrived.resize(word + 1, 0);
        }
        if self.arrived[word] & bit != 0 {
            self.arrivals.duplicated += 1;
            return;
        }
        self.arrived[word] |= bit;
        self.arrivals.distinct += 1;
        if sequence < self.next_expected {
            self.arrivals.reordered += 1;
        } else {
            self.next_expected = sequence + 1;
        }
    }
}

/// Word index and bit of a sequence number, if it is tracked.
fn bit_position(sequence: u64) -> Option<(usize, u64)> {
    let word = usize::try_from(sequence / 64).ok().filter(|_| sequence < MAX_TRACKED)?;
    Some((word, 1 << (sequence % 64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(sequences: &[u64]) -> StreamArrivals {
        let mut tracker = SequenceTracker::default();
        sequences.iter().for_each(|&sequence| tracker.count(sequence));
        tracker.arrivals
    }

    #[test]
    fn only_the_overtaken_packet_is_reordered() {
        let arrivals = arrivals(&[0, 1, 7, 2, 3, 8]);
        assert_eq!((arrivals.distinct, arrivals.reordered, arrivals.duplicated), (6, 2, 0));
    }

    #[test]
    fn duplicate_is_never_reordered() {
        let arrivals = arrivals(&[0, 1, 2, 0, 2]);
        assert_eq!((arrivals.received, arrivals.distinct), (5, 3));
        assert_eq!((arrivals.duplicated, arrivals.reordered), (2, 0));
    }

    #[test]
    fn loss_is_neither_duplicate_nor_reordered() {
        let arrivals = arrivals(&[3, 64, 65, 1000]);
        assert_eq!((arrivals.distinct, arrivals.reordered, arrivals.duplicated), (4, 0, 0));
    }

    #[test]
    fn huge_number_is_counted_without_memory() {
        let arrivals = arrivals(&[0, u64::MAX, MAX_TRACKED]);
        assert_eq!((arrivals.received, arrivals.distinct, arrivals.untracked), (3, 1, 2));
    }
}
