//! Histogram with relative bucket widths, for percentiles.

/// Counts of values in buckets whose width grows with the value. Values below 2^(`BITS` + 1) have one bucket each;
/// above, each power of two has 2^`BITS`, so a bucket is at most a 2^`BITS`th of its values wide.
///
/// The layout is that of HdrHistogram without its settings. Implemented here because counting is among the most
/// expensive steps per packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram<const BITS: u32 = 10> {
    /// Counts from the power of two of the min value to that of the max, at 8 bytes a bucket.
    counts: Vec<u64>,
    /// Index of the first bucket.
    first: usize,
}

impl<const BITS: u32> Histogram<BITS> {
    /// Counts a value.
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        self.add(bucket_of::<BITS>(value), 1);
    }

    #[inline]
    fn add(&mut self, bucket: usize, count: u64) {
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(counted) => *counted += count,
            None => self.grow_and_add(bucket, count),
        }
    }

    #[cold]
    fn grow_and_add(&mut self, bucket: usize, count: u64) {
        let begin = bucket >> BITS << BITS;
        if self.counts.is_empty() {
            self.first = begin;
        }
        let ahead = self.first.saturating_sub(begin);
        self.counts.splice(..0, std::iter::repeat_n(0, ahead));
        self.first -= ahead;
        let end = (bucket - self.first + 1).next_multiple_of(1 << BITS);
        self.counts.resize(self.counts.len().max(end), 0);
        self.counts[bucket - self.first] += count;
    }

    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (bucket, count) in other.filled() {
            self.add(bucket, count);
        }
    }

    /// Non-empty buckets in ascending order: middle value and count.
    pub(crate) fn buckets(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        self.filled().map(|(bucket, count)| (middle_of::<BITS>(bucket), count))
    }

    fn filled(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(place, count)| (self.first + place, *count))
    }

    /// Value of this rank, from 1 for the lowest: the middle of its bucket. 0 above the number of values.
    pub(crate) fn at_rank(&self, rank: u64) -> u64 {
        let mut counted = 0;
        let bucket = self.counts.iter().position(|count| {
            counted += count;
            counted >= rank
        });
        bucket.map_or(0, |place| middle_of::<BITS>(self.first + place))
    }
}

/// Shift that maps a value to 2^`BITS`..2^(`BITS` + 1).
fn shift<const BITS: u32>(value: u64) -> u32 {
    (value | 1 << BITS).ilog2() - BITS
}

#[expect(clippy::cast_possible_truncation, reason = "at most 64 times 2^BITS")]
pub(crate) fn bucket_of<const BITS: u32>(value: u64) -> usize {
    let shift = shift::<BITS>(value);
    (u64::from(shift << BITS) + (value >> shift)) as usize
}

/// Min value of a bucket; for the index after the last, the max of all.
pub(crate) fn min_of<const BITS: u32>(bucket: usize) -> u64 {
    let shift = shift_of::<BITS>(bucket);
    let min = (bucket - (shift << BITS)) as u64;
    if shift > 63 - BITS as usize { u64::MAX } else { min << shift }
}

pub(crate) fn middle_of<const BITS: u32>(bucket: usize) -> u64 {
    min_of::<BITS>(bucket) + ((1 << shift_of::<BITS>(bucket)) >> 1)
}

/// Number of values of a bucket, as the logarithm to base 2.
fn shift_of<const BITS: u32>(bucket: usize) -> usize {
    (bucket >> BITS).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BITS: u32 = 10;

    fn bucket_of(value: u64) -> usize {
        super::bucket_of::<BITS>(value)
    }

    fn middle_of(bucket: usize) -> u64 {
        super::middle_of::<BITS>(bucket)
    }

    #[test]
    fn small_values_have_a_bucket_each() {
        for value in 0..2048 {
            assert_eq!(middle_of(bucket_of(value)), value);
        }
        assert_eq!(bucket_of(2048), bucket_of(2049));
    }

    #[test]
    fn largest_value_has_the_last_bucket() {
        assert_eq!((bucket_of(u64::MAX) + 1) % (1 << BITS), 0);
        assert!(middle_of(bucket_of(u64::MAX)) > u64::MAX - (1 << 53));
    }

    #[test]
    fn memory_covers_only_powers_between_the_values() {
        let mut histogram = Histogram::<BITS>::default();
        for value in [1 << 30, (1 << 30) + 5, 1 << 28, 1 << 31] {
            histogram.record(value);
        }
        assert_eq!(histogram.counts.len(), 4 << BITS);
        assert_eq!(histogram.buckets().map(|(_, count)| count).sum::<u64>(), 4);
        assert!(histogram.at_rank(1) < 1 << 29 && histogram.at_rank(4) >= 1 << 31);
    }

    #[test]
    fn merged_histograms_have_the_values_of_both() {
        let mut merged = Histogram::<BITS>::default();
        let mut other = Histogram::default();
        [7, 9].into_iter().for_each(|value| merged.record(value));
        [9, 1 << 20].into_iter().for_each(|value| other.record(value));
        merged.merge(&other);
        let buckets: Vec<_> = merged.buckets().collect();
        assert_eq!(buckets, [(7, 1), (9, 2), (middle_of(bucket_of(1 << 20)), 1)]);
    }

    #[test]
    fn ranks_are_found_and_those_beyond_are_not() {
        let mut histogram = Histogram::<BITS>::default();
        for value in [5, 5, 900] {
            histogram.record(value);
        }
        assert_eq!([1, 2, 3, 4].map(|rank| histogram.at_rank(rank)), [5, 5, 900, 0]);
    }

    proptest! {
        #[test]
        fn middle_is_within_a_2048th_of_any_value(bits in 0..64u32, value: u64) {
            let value = value >> bits;
            prop_assert!(middle_of(bucket_of(value)).abs_diff(value) <= value / 2048);
        }

        #[test]
        fn buckets_are_in_the_order_of_their_values(one: u64, other: u64, bits in 0..64u32) {
            let (one, other) = (one >> bits, other >> bits);
            prop_assert!((bucket_of(one) <= bucket_of(other)) || one > other);
        }
    }
}
