//! Sampled identities of the packets of a point, in bounded memory.

use std::collections::HashMap;

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::PacketId;

/// Identities of a point with their stamps. Beyond the max number, half of them are dropped: the same ones at each point. Each
/// takes 24 bytes, in a table of twice the size.
#[derive(Clone, Debug)]
pub(crate) struct IdentitySample {
    max: usize,
    /// Only identities that have none of these bits are kept.
    mask: u64,
    /// `None` for identities that occurred more than once.
    seen: HashMap<PacketId, Option<Time<Utc>>>,
}

impl IdentitySample {
    /// An empty sample of at most `max` identities.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, mask: 0, seen: HashMap::new() }
    }

    pub(crate) fn add(&mut self, id: PacketId, time: Time<Utc>) {
        if id.0 & self.mask != 0 {
            return;
        }
        self.seen.entry(id).and_modify(|seen| *seen = None).or_insert(Some(time));
        while self.seen.len() > self.max {
            self.mask = self.mask << 1 | 1;
            let mask = self.mask;
            self.seen.retain(|id, _| id.0 & mask == 0);
        }
    }

    /// The identities that occurred once and that a sample with the mask of `other` keeps too, with their stamps here, and
    /// there if they occurred once there.
    pub(crate) fn with<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (Time<Utc>, Option<Time<Utc>>)> + 'a {
        let kept = self.seen.iter().filter(|(id, _)| id.0 & other.mask == 0);
        kept.filter_map(|(id, time)| Some(((*time)?, other.seen.get(id).copied().flatten())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1 << 16;

    #[test]
    fn samples_of_many_packets_keep_the_same_ones_and_stay_small() {
        let many = MAX as u64 * 5;
        let [mut few, mut all] = [(); 2].map(|()| IdentitySample::new(MAX));
        let id = |number: u64| PacketId(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).swap_bytes());
        (0..many).for_each(|number| all.add(id(number), Time::from_nanos(1)));
        (0..many).step_by(100).for_each(|number| few.add(id(number), Time::from_nanos(2)));
        assert!((MAX / 4..=MAX).contains(&all.seen.len()), "{}", all.seen.len());
        let common = few.with(&all).filter(|(_, there)| there.is_some()).count();
        assert_eq!(few.with(&all).count(), common, "all of them are in both");
        let expected = few.seen.len() * all.seen.len() / usize::try_from(many).expect("fits");
        assert!(common.abs_diff(expected) < expected / 4, "{common} {expected}");
    }

    #[test]
    fn identities_that_occur_twice_are_excluded() {
        let [mut a, mut b] = [(); 2].map(|()| IdentitySample::new(MAX));
        for id in [1, 2, 2, 3] {
            a.add(PacketId(id), Time::from_nanos(7));
        }
        for id in [1, 1, 3] {
            b.add(PacketId(id), Time::from_nanos(9));
        }
        let mut found: Vec<_> = a.with(&b).map(|(_, there)| there.map(Time::as_nanos)).collect();
        found.sort_unstable();
        assert_eq!(found, [None, Some(9)]);
    }
}
