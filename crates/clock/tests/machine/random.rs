//! Random numbers that are equal on every machine.

/// The splitmix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform from `low` to `high`.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.unit() * (high - low)
    }

    /// Uniform from `-limit` to `limit`.
    pub(crate) fn around_zero(&mut self, limit: f64) -> f64 {
        self.between(-limit, limit)
    }

    /// From `low` to `high` with either sign, uniform in the logarithm.
    pub(crate) fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        let size = low * (high / low).powf(self.unit());
        if self.next().is_multiple_of(2) { size } else { -size }
    }
}
