//! Ranges of bytes of a packet.

use std::ops::Range;

/// A set of bytes, as disjoint ranges in ascending order that do not touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: Vec<Range<usize>>,
}

impl Ranges {
    /// Adds the bytes of `new`. Returns whether one of them was missing.
    pub(super) fn insert(&mut self, new: Range<usize>) -> bool {
        if new.is_empty() || self.covers(&new) {
            return false;
        }
        // Ranges that overlap or touch the new one become one range with it.
        let first = self.ranges.partition_point(|range| range.end < new.start);
        let after = self.ranges.partition_point(|range| range.start <= new.end);
        let joined = self.ranges.get(first..after).unwrap_or_default();
        let start = joined.first().map_or(new.start, |range| range.start.min(new.start));
        let end = joined.last().map_or(new.end, |range| range.end.max(new.end));
        self.ranges.splice(first..after, std::iter::once(start..end));
        true
    }

    /// Whether all bytes of `other` are in the set.
    pub(super) fn covers(&self, other: &Range<usize>) -> bool {
        let at = self.ranges.partition_point(|range| range.end < other.end);
        other.is_empty() || self.ranges.get(at).is_some_and(|range| range.start <= other.start)
    }

    /// The bytes of `other` that are in the set.
    pub(super) fn common(&self, other: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let at = self.ranges.partition_point(|range| range.end <= other.start);
        let later = self.ranges.get(at..).unwrap_or_default().iter();
        later
            .take_while(move |range| range.start < other.end)
            .map(move |range| range.start.max(other.start)..range.end.min(other.end))
    }

    /// The number of bytes from 0 up to the first that is missing.
    pub(super) fn leading(&self) -> usize {
        self.ranges.first().filter(|range| range.start == 0).map_or(0, |range| range.end)
    }

    /// The end of the last range; 0 if there is none.
    pub(super) fn end(&self) -> usize {
        self.ranges.last().map_or(0, |range| range.end)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_bytes(
            inserted in prop::collection::vec((0usize..60, 0usize..20), 0..20),
            (start, length) in (0usize..60, 0usize..20),
        ) {
            let (mut ranges, mut bytes) = (Ranges::default(), BTreeSet::new());
            for (start, length) in inserted {
                let before = bytes.len();
                bytes.extend(start..start + length);
                prop_assert_eq!(ranges.insert(start..start + length), bytes.len() > before);
            }
            let asked = start..start + length;
            prop_assert_eq!(ranges.covers(&asked), asked.clone().all(|byte| bytes.contains(&byte)));
            let common: Vec<_> = ranges.common(asked.clone()).flatten().collect();
            let expected: Vec<_> = asked.filter(|byte| bytes.contains(byte)).collect();
            prop_assert_eq!(common, expected);
            let leading = (0..).take_while(|byte| bytes.contains(byte)).count();
            prop_assert_eq!(ranges.leading(), leading);
            prop_assert_eq!(ranges.end(), bytes.last().map_or(0, |last| last + 1));
            let touching = ranges.ranges.windows(2).any(|pair| pair[0].end >= pair[1].start);
            prop_assert!(!touching, "{:?}", ranges);
        }
    }
}
