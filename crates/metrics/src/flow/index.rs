//! Index of flows by the hash of their key.

/// Marks an unused entry.
const UNUSED: u32 = u32::MAX;

/// Min number of entries.
const MIN_ENTRIES: usize = 16;

/// Places of flows by the hash of their key, with linear probing: a flow is in the first unused entry from the one of its hash
/// on (Knuth, "The Art of Computer Programming", volume 3, section 6.4, algorithms L and R).
///
/// Implemented here because a lookup is among the most expensive steps per packet with many flows: their index is outside of
/// the processor's caches. A lookup reads one cache line here, and two, one after the other, in `hashbrown`.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// A power of two, at most 7/8 of them in use; none before the first flow.
    entries: Vec<Entry>,
    used: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    place: u32,
}

impl Index {
    /// The place with this hash that `is_it` accepts.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = low(hash);
        self.chain(hash).find(|it| it.hash == hash && is_it(it.place)).map(|it| it.place)
    }

    /// Used entries from that of a hash on.
    #[inline]
    fn chain(&self, hash: u32) -> impl Iterator<Item = &Entry> {
        let from = if self.entries.is_empty() { 0 } else { self.home(hash) };
        let (before, after) = self.entries.split_at(from);
        after.iter().chain(before).take_while(|it| it.place != UNUSED)
    }

    /// Number of the entry where a hash belongs.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.entries.len() - 1)
    }

    /// Adds a place, below 2^32 - 1, which the index does not have yet.
    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        if self.used >= self.entries.len() / 8 * 7 {
            self.grow();
        }
        self.put(Entry { hash: low(hash), place });
        self.used += 1;
    }

    fn grow(&mut self) {
        let length = (2 * self.entries.len()).max(MIN_ENTRIES);
        let unused = Entry { hash: 0, place: UNUSED };
        let before = std::mem::replace(&mut self.entries, vec![unused; length]);
        before.into_iter().filter(|it| it.place != UNUSED).for_each(|it| self.put(it));
    }

    fn put(&mut self, entry: Entry) {
        let mut at = self.home(entry.hash);
        while self.entries[at].place != UNUSED {
            at = (at + 1) & (self.entries.len() - 1);
        }
        self.entries[at] = entry;
    }

    /// Removes a place, if the index has it. Later entries of the chain move up, so that no lookup ends before them.
    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        let Some(mut hole) = self.position(low(hash), place) else { return };
        let mask = self.entries.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry.place == UNUSED {
                break;
            }
            let from_home = at.wrapping_sub(self.home(entry.hash)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole].place = UNUSED;
        self.used -= 1;
    }

    fn position(&self, hash: u32, place: u32) -> Option<usize> {
        let after_home = self.chain(hash).position(|it| it.place == place)?;
        Some((self.home(hash) + after_home) & (self.entries.len() - 1))
    }

    /// Number of places.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.used
    }
}

#[expect(clippy::cast_possible_truncation, reason = "these bits are as random as the others")]
const fn low(hash: u64) -> u32 {
    hash as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn index_has_what_was_inserted_and_not_removed(
            // Few hashes, so that many collide; places from the highest on.
            steps in prop::collection::vec((0..40u64, 0..60u32, any::<bool>()), 1..400),
        ) {
            let (mut index, mut expected) = (Index::default(), BTreeMap::new());
            for (hash, number, is_insertion) in steps {
                let (place, hash) = (u32::MAX - 1 - number, u64::MAX - hash);
                if is_insertion {
                    expected.entry(place).or_insert_with(|| {
                        index.insert(hash, place);
                        hash
                    });
                } else if let Some(hash) = expected.remove(&place) {
                    index.remove(hash, place);
                    index.remove(hash, place);
                }
                prop_assert_eq!(index.len(), expected.len());
                for number in 0..60 {
                    let place = u32::MAX - 1 - number;
                    let hash = expected.get(&place);
                    let found = hash.and_then(|hash| index.find(*hash, |it| it == place));
                    prop_assert_eq!(found, hash.map(|_| place));
                    prop_assert_eq!(index.find(1, |it| it == place), None);
                }
            }
        }
    }
}
