//! Error of a time in a test packet (RFC 4656 section 4.1.2, RFC 8762 section 4.2.1).

use wirestamp_clock::Span;

use super::Format;

const SYNCHRONISED: u16 = 1 << 15;
const PTP: u16 = 1 << 14;
const SCALE_SHIFT: u32 = 8;
const SCALE: u16 = 0x3f;
const MULTIPLIER: u16 = 0xff;

/// An error estimate: whether an external source synchronises the clock to UTC, the format of the accompanying
/// times, and an error bound.
///
/// The bound is a multiplier of 8 bits times 2^(scale - 32) seconds, so that it starts at 0.23 ns and has two to
/// three digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEstimate(pub u16);

impl ErrorEstimate {
    /// The smallest estimate of at least `error`; the min estimate for a negative error.
    #[must_use]
    pub fn of(error: Span, is_synchronised: bool, format: Format) -> Self {
        let nanos = u128::try_from(error.as_nanos()).unwrap_or(0);
        // In units of 2^-32 s, rounded up; a multiplier of 0 is not allowed.
        let units = (nanos << 32).div_ceil(1_000_000_000).max(1);
        let bits = u128::BITS - units.leading_zeros();
        let scale = bits.saturating_sub(8);
        let multiplier = units.div_ceil(1 << scale);
        // Rounding up may give the next power of two.
        let (scale, multiplier) =
            if multiplier > 255 { (scale + 1, 128) } else { (scale, multiplier) };
        let number = |value: u128| u16::try_from(value).unwrap_or(u16::MAX);
        let flags = if is_synchronised { SYNCHRONISED } else { 0 }
            | if format == Format::Ptp { PTP } else { 0 };
        // An error of 292 years has a scale below 64.
        Self(flags | (number(scale.into()) & SCALE) << SCALE_SHIFT | number(multiplier))
    }

    /// The error bound, rounded up to nanoseconds. None if the multiplier is 0: the times in the packet must not be
    /// used.
    #[must_use]
    pub fn bound(self) -> Option<Span> {
        let multiplier = u128::from(self.0 & MULTIPLIER);
        let scale = u32::from(self.0 >> SCALE_SHIFT & SCALE);
        let nanos = ((multiplier << scale) * 1_000_000_000).div_ceil(1 << 32);
        (multiplier > 0).then(|| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX)))
    }

    /// True if an external source synchronises the clock.
    #[must_use]
    pub const fn is_synchronised(self) -> bool {
        self.0 & SYNCHRONISED != 0
    }

    /// Format of the accompanying times.
    #[must_use]
    pub const fn format(self) -> Format {
        if self.0 & PTP == 0 { Format::Ntp } else { Format::Ptp }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn estimate_has_multiplier_and_scale() {
        // 1 s is 2^32 units: 128 times 2^25.
        let second = ErrorEstimate::of(Span::from_secs(1), true, Format::Ntp);
        assert_eq!(second, ErrorEstimate(0x8000 | 25 << 8 | 128));
        assert_eq!(second.bound(), Some(Span::from_secs(1)));
        let least = ErrorEstimate::of(Span::ZERO, false, Format::Ptp);
        assert_eq!((least, least.bound()), (ErrorEstimate(0x4001), Some(Span::from_nanos(1))));
        assert_eq!(ErrorEstimate(25 << 8).bound(), None);
        assert_eq!(ErrorEstimate(u16::MAX).bound(), Some(Span::from_nanos(i64::MAX)));
    }

    proptest! {
        #[test]
        fn bound_is_rounded_up_by_less_than_1_percent(nanos in 0..=i64::MAX) {
            let error = Span::from_nanos(nanos);
            let estimate = ErrorEstimate::of(error, true, Format::Ptp);
            let bound = estimate.bound().unwrap();
            prop_assert!(bound >= error);
            prop_assert!(bound.as_nanos() <= nanos.saturating_add(nanos / 127 + 1));
            prop_assert!(estimate.is_synchronised() && estimate.format() == Format::Ptp);
        }
    }
}
