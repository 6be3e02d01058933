//! Hash table of small values; its user stores the keys.

/// Value of a [`Table`]. One value marks a free slot.
pub(super) trait Value: Copy {
    /// The value of a free slot.
    const FREE: Self;

    fn is_free(&self) -> bool;
}

/// Open-addressing table with linear probing (D. Knuth, The Art of Computer Programming, vol. 3, section 6.4,
/// algorithms L and R).
///
/// It stores half of the key's hash with the value, so that a slot of 16 bytes or less identifies its home slot and a
/// look-up touches one or two cache lines. The user compares the full key through the value.
pub(super) struct Table<V> {
    slots: Vec<Slot<V>>,
    len: usize,
    /// Slots of a full table.
    max: usize,
    /// Random factor, so that an attacker who chooses the keys cannot choose the slots.
    seed: u64,
}

#[derive(Clone, Copy)]
struct Slot<V> {
    tag: u32,
    value: V,
}

/// Slots of an empty table.
const MIN_SLOTS: usize = 64;

impl<V: Value> Table<V> {
    /// An empty table for at most `values` values. The seed must be random.
    pub(super) fn new(values: usize, seed: u64) -> Self {
        // An odd factor makes multiplication a bijection; a random one makes the upper half of the
        // product a universal hash (M. Dietzfelbinger and others, A Reliable Randomized Algorithm
        // for the Closest-Pair Problem, 1997).
        let max = values.saturating_mul(2).max(MIN_SLOTS);
        Self { slots: vec![Slot::free(); MIN_SLOTS], len: 0, max, seed: seed | 1 }
    }

    /// Bytes per value in a full table, which has every second slot free: a failing search then visits 2.5 slots on
    /// average, a successful one 1.5 (Knuth, as above).
    pub(super) const BYTES_EACH: usize = size_of::<Slot<V>>() * 2;

    #[inline]
    fn tag(&self, key: u64) -> u32 {
        (key.wrapping_mul(self.seed) >> 32) as u32
    }

    /// Slot where a search for this tag begins: tags are spread over the slots in order.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.slots.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    /// Number of slots from `from` to `to`, around the end.
    #[inline]
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }

    /// Slot of the value with this key; `is_it` compares the key.
    #[inline]
    pub(super) fn find(&self, key: u64, is_it: impl Fn(V) -> bool) -> Option<usize> {
        self.search(key, is_it).ok()
    }

    /// Slot of the value with this key, or else the free slot for it.
    #[inline]
    pub(super) fn search(&self, key: u64, is_it: impl Fn(V) -> bool) -> Result<usize, usize> {
        let tag = self.tag(key);
        let mut slot = self.home(tag);
        loop {
            let found = &self.slots[slot];
            if found.value.is_free() {
                return Err(slot);
            }
            if found.tag == tag && is_it(found.value) {
                return Ok(slot);
            }
            slot = self.after(slot);
        }
    }

    /// Reads the memory where a search for this key begins, and one cache line further. Does not branch on the values,
    /// because a branch would wait for the memory.
    #[inline]
    pub(super) fn touch(&self, key: u64) -> u32 {
        let home = self.home(self.tag(key));
        let further = (home + 4).min(self.slots.len() - 1);
        self.slots[home].tag ^ self.slots[further].tag
    }

    /// Value that most likely has this key, without comparison.
    #[inline]
    pub(super) fn likely(&self, key: u64) -> Option<V> {
        self.find(key, |_| true).map(|slot| self.get(slot))
    }

    /// Value in a slot returned by [`Self::find`].
    #[inline]
    pub(super) fn get(&self, slot: usize) -> V {
        self.slots[slot].value
    }

    /// Mutable value in a slot.
    #[inline]
    pub(super) fn value(&mut self, slot: usize) -> &mut V {
        &mut self.slots[slot].value
    }

    /// Adds a value whose key is not in the table. The table must not be full.
    pub(super) fn insert(&mut self, key: u64, value: V) {
        if let Err(free) = self.search(key, |_| false) {
            self.fill(free, key, value);
        }
    }

    /// Adds a value in the free slot returned by [`Self::search`].
    #[inline]
    pub(super) fn fill(&mut self, free: usize, key: u64, value: V) {
        self.slots[free] = Slot { tag: self.tag(key), value };
        self.len += 1;
    }

    /// Whether to enlarge the table before adding a value.
    pub(super) fn is_crowded(&self) -> bool {
        self.len * 2 >= self.slots.len() && self.slots.len() < self.max
    }

    /// Enlarges and empties the table; its user adds the values again. The old slots are freed first, so no memory is
    /// needed for both.
    pub(super) fn clear_larger(&mut self) {
        let more = self.max.min(self.slots.len() * 5 / 4);
        self.slots = Vec::new();
        self.slots = vec![Slot::free(); more];
        self.len = 0;
    }

    /// Removes the value in this slot, and closes the gap with values displaced by it.
    pub(super) fn remove(&mut self, slot: usize) {
        let mut gap = slot;
        let mut next = self.after(slot);
        while !self.slots[next].value.is_free() {
            let home = self.home(self.slots[next].tag);
            if self.distance(home, next) >= self.distance(gap, next) {
                self.slots[gap] = self.slots[next];
                gap = next;
            }
            next = self.after(next);
        }
        self.slots[gap] = Slot::free();
        self.len -= 1;
    }
}

impl<V: Value> Slot<V> {
    const fn free() -> Self {
        Self { tag: 0, value: V::FREE }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A key that is its own value.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Key(u64);

    impl Value for Key {
        const FREE: Self = Self(u64::MAX);

        fn is_free(&self) -> bool {
            *self == Self::FREE
        }
    }

    proptest! {
        #[test]
        fn table_matches_a_set(
            keys in prop::collection::vec(0u64..300, 0..2000),
            crowded in any::<bool>(),
            seed in any::<u64>(),
        ) {
            // If crowded, there are only three tags, and a search passes many other values.
            let hash_of = |key| if crowded { key % 3 } else { key };
            let mut table = Table::new(300, seed);
            let mut expected = BTreeSet::new();
            for key in keys {
                let hash = hash_of(key);
                let found = table.find(hash, |value| value == Key(key));
                prop_assert_eq!(found.is_some(), expected.contains(&key));
                match found {
                    Some(slot) => {
                        prop_assert_eq!(*table.value(slot), Key(key));
                        table.remove(slot);
                        expected.remove(&key);
                    }
                    None => {
                        if table.is_crowded() {
                            table.clear_larger();
                            let again = expected.iter().copied();
                            again.for_each(|key| table.insert(hash_of(key), Key(key)));
                        }
                        table.insert(hash, Key(key));
                        expected.insert(key);
                    }
                }
                prop_assert!(table.slots.len() <= 600);
                let blocked = table.slots.iter().filter(|slot| !slot.value.is_free()).count();
                prop_assert_eq!(blocked, expected.len());
            }
            for key in 0..300 {
                let found = table.find(hash_of(key), |value| value == Key(key));
                prop_assert_eq!(found.is_some(), expected.contains(&key));
            }
        }
    }
}
