//! Ranges of hash values that select packets.

use std::ops::RangeInclusive;

/// Error of a [`HashRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// A range ends before it begins.
    #[error("cannot use the hash range {0} to {1}: it is empty; give the lower end first")]
    Empty(u32, u32),
    /// Two ranges have values in common.
    #[error("cannot use the hash ranges: they overlap at {0}; give each value once")]
    Overlap(u32),
    /// A share of packets was not a number from 0 to 1.
    #[error("cannot use the share of packets: it is not a number from 0 to 1")]
    Share,
}

/// The hash values that select a packet: "a list of non-overlapping intervals" (RFC 5475 appendix
/// A.2), both ends included. An empty list selects nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashRange(Vec<RangeInclusive<u32>>);

impl HashRange {
    /// The values in any of `ranges`.
    ///
    /// # Errors
    /// A range that is empty, or two that overlap.
    pub fn new(mut ranges: Vec<RangeInclusive<u32>>) -> Result<Self, RangeError> {
        if let Some(empty) = ranges.iter().find(|range| range.is_empty()) {
            return Err(RangeError::Empty(*empty.start(), *empty.end()));
        }
        ranges.sort_unstable_by_key(|range| *range.start());
        match ranges.array_windows().find(|[one, next]| next.start() <= one.end()) {
            Some([_, next]) => Err(RangeError::Overlap(*next.start())),
            None => Ok(Self(ranges)),
        }
    }

    /// The lowest values that select `share` of all packets if hashes are uniform: the configured selection fraction
    /// of RFC 5475 section 6.2.2.1, from 0 to 1. A smaller share selects a subset of a larger one, so that points
    /// with different shares have the smaller one in common.
    ///
    /// # Errors
    /// A `share` below 0 or above 1, or NaN.
    pub fn share(share: f64) -> Result<Self, RangeError> {
        if !(0.0..=1.0).contains(&share) {
            return Err(RangeError::Share);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 2^32 values, rounded to a whole one"
        )]
        let values = (share * 2f64.powi(32)).round() as u64;
        let last = values.checked_sub(1).and_then(|last| u32::try_from(last).ok());
        Ok(Self(last.map(|last| 0..=last).into_iter().collect()))
    }

    /// True if this hash value selects its packet.
    #[must_use]
    pub fn contains(&self, hash: u32) -> bool {
        self.0.iter().any(|range| range.contains(&hash))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_include_both_ends() {
        let range = HashRange::new(vec![20..=29, 5..=5]).expect("two ranges");
        let chosen: Vec<u32> = (0..40).filter(|hash| range.contains(*hash)).collect();
        assert_eq!(chosen, [5, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
    }

    #[test]
    fn empty_and_overlapping_ranges_are_rejected() {
        #[expect(clippy::reversed_empty_ranges, reason = "the mistake that is refused")]
        let empty = HashRange::new(vec![0..=1, 9..=8]);
        assert_eq!(empty, Err(RangeError::Empty(9, 8)));
        assert_eq!(HashRange::new(vec![7..=9, 0..=7]), Err(RangeError::Overlap(7)));
        assert!(HashRange::new(vec![8..=9, 0..=7]).is_ok());
    }

    #[test]
    fn share_is_of_all_hash_values() {
        let share = |share| HashRange::share(share).expect("a share");
        assert!(!share(0.0).contains(0));
        assert!(share(1.0).contains(0) && share(1.0).contains(u32::MAX));
        assert!(share(0.25).contains(0x3fff_ffff) && !share(0.25).contains(0x4000_0000));
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(HashRange::share(wrong), Err(RangeError::Share));
        }
    }

    proptest! {
        #[test]
        fn smaller_share_is_a_subset(
            one in 0.0..=1.0, other in 0.0..=1.0, hash in any::<u32>(),
        ) {
            let (small, large) = if one < other { (one, other) } else { (other, one) };
            let chosen = |share| HashRange::share(share).expect("a share").contains(hash);
            prop_assert!(!chosen(small) || chosen(large));
        }
    }
}
