//! Random number generator of the plan, with reproducible numbers.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014), with the constants of Vigna's splitmix64.c.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator with state `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator number `number` of `seed`.
    ///
    /// Generators with consecutive numbers are independent, because their states are outputs of a
    /// generator. With consecutive states, each packet would get the numbers of the previous packet,
    /// shifted by one.
    pub(crate) fn nth(seed: u64, number: u64) -> Self {
        let seed = Self::new(seed).next() ^ number;
        Self::new(Self::new(seed).next())
    }

    /// The next 64 bits.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number from 0 (inclusive) to 1 (exclusive).
    #[expect(clippy::cast_precision_loss, reason = "a double holds 53 bits exactly")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with probability `share`: never at 0, always at 1.
    pub(crate) fn happens(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// A uniformly distributed integer from 0 to `max`; 0 for a negative `max`.
    pub(crate) fn up_to(&mut self, max: i64) -> i64 {
        let values = u128::try_from(max).unwrap_or(0) + 1;
        // The high half of the product (Lemire, "Fast random integer generation in an interval",
        // ACM TOMACS 29(1), 2019, without rejection) is below `values`, so at most `max`.
        let scaled = (u128::from(self.next()) * values) >> 64;
        i64::try_from(scaled).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_the_reference_implementation() {
        // Vigna's splitmix64.c with the same seed.
        let mut random = SplitMix64::new(1_234_567);
        let first: [u64; 3] = std::array::from_fn(|_| random.next());
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn integers_cover_exactly_the_range() {
        let mut random = SplitMix64::new(1);
        let drawn: Vec<_> = (0..1000).map(|_| random.up_to(9)).collect();
        assert!((0..=9).all(|number| drawn.contains(&number)));
        assert!(drawn.iter().all(|number| (0..=9).contains(number)));
        assert_eq!((random.up_to(0), random.up_to(-5)), (0, 0));
        assert!((0..=i64::MAX).contains(&random.up_to(i64::MAX)));
    }

    #[test]
    fn consecutive_generators_share_no_numbers() {
        let [mut one, mut two] = [1, 2].map(|number| SplitMix64::nth(7, number));
        let (one, two): ([u64; 8], [u64; 8]) =
            (std::array::from_fn(|_| one.next()), std::array::from_fn(|_| two.next()));
        assert!(one.iter().all(|number| !two.contains(number)));
    }
}
