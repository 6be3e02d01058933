//! Multiplication by a fraction, exact to within a nanosecond.

use std::num::NonZeroU64;

use crate::Span;

/// A factor of at least zero, with 64 bits before the binary point and 64 after it.
///
/// `n * ratio` is two products of 64 by 64 bits. The factor is truncated by less than 2^-64. So the product is off by
/// less than one unit for every 64-bit `n`, and by less than 2^-14 of a unit over a day of ticks at 6 GHz, before
/// rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ratio {
    whole: u64,
    fraction: u64,
}

/// 2^64, the number of fraction units in one.
const FRACTION_ONE: f64 = 18_446_744_073_709_551_616.0;

impl Ratio {
    pub(crate) const ZERO: Self = Self { whole: 0, fraction: 0 };
    pub(crate) const ONE: Self = Self { whole: 1, fraction: 0 };

    /// `numerator / denominator`, truncated below 2^-64.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "remainder < denominator, so under 2^64")]
    pub(crate) fn of(numerator: u64, denominator: NonZeroU64) -> Self {
        let remainder = u128::from(numerator % denominator) << 64;
        Self {
            whole: numerator / denominator,
            fraction: (remainder / u128::from(denominator.get())) as u64,
        }
    }

    /// The smallest ratio not below `value`; zero for a negative value or NaN.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from f64 saturates, and both parts are at least zero"
    )]
    pub(crate) fn at_least(value: f64) -> Self {
        let value = value.max(0.0);
        Self { whole: value as u64, fraction: (value.fract() * FRACTION_ONE).ceil() as u64 }
    }

    /// The parts before and after the binary point, the latter in units of 2^-64.
    pub(crate) fn into_parts(self) -> (u64, u64) {
        (self.whole, self.fraction)
    }

    /// The ratio with these parts.
    #[inline(always)]
    pub(crate) fn from_parts(whole: u64, fraction: u64) -> Self {
        Self { whole, fraction }
    }

    /// The sum; saturates.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        let (fraction, carry) = self.fraction.overflowing_add(other.fraction);
        let whole = self.whole.saturating_add(other.whole).saturating_add(u64::from(carry));
        Self { whole, fraction }
    }

    /// `n` times the ratio, to the nearest integer; saturates.
    #[must_use]
    #[inline(always)]
    pub(crate) fn scale(self, n: u64) -> u64 {
        n.saturating_mul(self.whole).saturating_add(self.fraction_of(n, 1 << 63))
    }

    /// `n` times the ratio, rounded down; saturates.
    #[must_use]
    pub(crate) fn scale_down(self, n: u64) -> u64 {
        n.saturating_mul(self.whole).saturating_add(self.fraction_of(n, 0))
    }

    /// [`Self::scale`] for an `n` up to [`Self::largest_within`].
    #[inline(always)]
    pub(crate) fn scale_within(self, n: u64) -> u64 {
        n.wrapping_mul(self.whole).wrapping_add(self.fraction_of(n, 1 << 63))
    }

    /// [`Self::scale_down`] for an `n` up to [`Self::largest_within`].
    #[inline(always)]
    pub(crate) fn scale_down_within(self, n: u64) -> u64 {
        n.wrapping_mul(self.whole).wrapping_add(self.fraction_of(n, 0))
    }

    /// An `n` for which the product is within `limit`.
    pub(crate) fn largest_within(self, limit: u64) -> u64 {
        limit / self.whole.saturating_add(1)
    }

    /// The ratio as a float, off by at most 2^-52 of itself.
    pub(crate) fn to_f64(self) -> f64 {
        approx(self.whole) + approx(self.fraction) / FRACTION_ONE
    }

    #[inline(always)]
    fn fraction_of(self, n: u64, round: u64) -> u64 {
        ((u128::from(n) * u128::from(self.fraction) + u128::from(round)) >> 64) as u64
    }
}

/// A rate in nanoseconds per tick, and its error bound in the same unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) nanos_per_tick: f64,
    pub(crate) error: f64,
}

/// A span as a float of nanoseconds.
pub(crate) fn nanos(span: Span) -> f64 {
    let size = approx(span.as_nanos().unsigned_abs());
    if span < Span::ZERO { -size } else { size }
}

/// `n` as a float, off by up to 2^-53 of itself, which is negligible for rates and errors.
#[expect(clippy::cast_precision_loss, reason = "relative error 2^-53")]
pub(crate) fn approx(n: u64) -> f64 {
    n as f64
}

/// `value` rounded up to whole nanoseconds; saturates.
#[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
pub(crate) fn ceil_nanos(value: f64) -> i64 {
    value.ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY_SECONDS: u64 = 86_400;

    fn ratio(numerator: u64, denominator: u64) -> Ratio {
        Ratio::of(numerator, NonZeroU64::new(denominator).unwrap())
    }

    #[test]
    fn products_saturate() {
        assert_eq!(ratio(3, 1).scale(u64::MAX), u64::MAX);
        assert_eq!(ratio(u64::MAX, 2).scale(4), u64::MAX);
    }

    #[test]
    fn negative_and_nan_factors_become_zero() {
        assert_eq!(Ratio::at_least(f64::NAN), Ratio::ZERO);
        assert_eq!(Ratio::at_least(-1.0), Ratio::ZERO);
        assert_eq!(Ratio::at_least(f64::INFINITY).scale(1), u64::MAX);
    }

    proptest! {
        /// Compares with the exact product, a rational number, without rounding: |scaled - ticks * nanos / counted|
        /// <= 1  <=>  |scaled * counted - ticks * nanos| <= counted.
        #[test]
        fn day_of_ticks_scales_within_1_ns(
            hertz in 1_000_000_u64..=6_000_000_000,
            baseline_nanos in 1_000_000_u64..=3_600_000_000_000,
            ppm in -500_i64..=500,
            part_of_day in 0.0..=1.0_f64,
        ) {
            let exact_ticks = u128::from(hertz) * u128::from(baseline_nanos) / 1_000_000_000;
            let counted = u64::try_from(exact_ticks).unwrap();
            let nanos = baseline_nanos.saturating_add_signed(
                i64::try_from(baseline_nanos / 1_000_000).unwrap() * ppm);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1 of a day")]
            let ticks = (approx(hertz * DAY_SECONDS) * part_of_day) as u64;

            let scaled = u128::from(ratio(nanos, counted).scale(ticks));
            let difference = (scaled * u128::from(counted)).abs_diff(u128::from(ticks) * u128::from(nanos));
            prop_assert!(difference <= u128::from(counted));
        }

        #[test]
        fn ratio_of_a_float_is_off_by_less_than_1(value in 0.0..1e6_f64, n in 0_u64..1 << 32) {
            let exact_or_less = value * approx(n) * (1.0 - 1e-15);
            prop_assert!(approx(Ratio::at_least(value).scale_down(n)) > exact_or_less - 1.0);
        }

        #[test]
        fn products_within_the_limit_do_not_saturate(
            numerator in any::<u64>(), denominator in 1_u64.., limit in any::<u64>(), n in any::<u64>(),
        ) {
            let ratio = ratio(numerator, denominator);
            let n = n % ratio.largest_within(limit).max(1);
            prop_assert_eq!(ratio.scale_within(n), ratio.scale(n));
            prop_assert_eq!(ratio.scale_down_within(n), ratio.scale_down(n));
            prop_assert!(ratio.scale_down(n) <= limit);
        }
    }
}
