//! The kernel's conversion of the counter to one of its clocks, and the inverse.

use std::num::NonZeroU64;

use crate::ratio::Ratio;
use crate::{DifferenceClock, Domain, Span};

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const SECOND: i128 = NANOS_PER_SECOND as i128;

/// A straight line of the kernel's conversion (`vdso_calc_ns` of lib/vdso/gettimeofday.c). The kernel replaces it a few
/// hundred times a second, by a line that usually continues it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLine {
    /// Counter value where the line begins.
    pub(crate) cycle_last: u64,
    /// Nanoseconds per tick, times 2^`shift`.
    pub(crate) mult: u32,
    pub(crate) shift: u32,
    /// Time of the clock at `cycle_last`: whole seconds, and nanoseconds times 2^`shift`.
    pub(crate) seconds: u64,
    pub(crate) shifted_nanos: u64,
}

impl KernelLine {
    /// A line of one nanosecond per tick.
    #[cfg(test)]
    pub(crate) fn nominal(cycle_last: u64, nanos: u64) -> Self {
        Self { cycle_last, mult: 1 << 24, shift: 24, seconds: 0, shifted_nanos: nanos << 24 }
    }

    /// Time of the clock at a counter value, in nanoseconds since its epoch, rounded down as the kernel does. It equals
    /// the kernel's own result for values from the start of the line to its replacement. Saturates.
    #[must_use]
    pub fn nanos(&self, counter: u64) -> i64 {
        let nanos = (self.shifted(counter) >> self.shift) + i128::from(self.seconds) * SECOND;
        saturated(nanos)
    }

    /// The first counter value at which the clock shows `nanos` nanoseconds since its epoch; none before the counter's
    /// start and after its end. For it, [`Self::nanos`] returns `nanos`, or the next value that the clock shows if a
    /// tick is longer than a nanosecond.
    #[must_use]
    pub fn counter(&self, nanos: i64) -> Option<u64> {
        let since_seconds = i128::from(nanos) - i128::from(self.seconds) * SECOND;
        let shifted = (since_seconds << self.shift) - i128::from(self.shifted_nanos);
        let mult = i64::from(self.mult);
        // Rounded up; the divisor is positive. Near the beginning of the line 64 bits are enough, and faster.
        let ticks = match i64::try_from(shifted + i128::from(mult) - 1) {
            Ok(shifted) => i128::from(shifted.div_euclid(mult)),
            Err(_) => (shifted + i128::from(mult) - 1).div_euclid(i128::from(mult)),
        };
        u64::try_from(i128::from(self.cycle_last) + ticks).ok()
    }

    /// Whether `later` is the same function of the counter, with a later beginning.
    pub(super) fn is_continued_by(&self, later: &Self) -> bool {
        let since_epoch = |line: &Self, counter: u64| {
            line.shifted(counter) + ((i128::from(line.seconds) * SECOND) << line.shift)
        };
        (self.mult, self.shift) == (later.mult, later.shift)
            && since_epoch(self, later.cycle_last) == since_epoch(later, later.cycle_last)
    }

    /// The line from this line's clock to that of `other`, and the time of the former at a counter value. The two
    /// clocks differ by whole nanoseconds. None before the epoch of one of them.
    pub(super) fn to(&self, other: &Self, counter: u64) -> Option<(Self, u64)> {
        // The finest unit of a factor of one.
        const SHIFT: u32 = 31;
        let from = u64::try_from(self.nanos(counter)).ok()?;
        let nanos = u64::try_from(other.nanos(counter)).ok()?;
        let (seconds, nanos) = (nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND);
        let shifted_nanos = nanos << SHIFT;
        let line =
            Self { cycle_last: from, mult: 1 << SHIFT, shift: SHIFT, seconds, shifted_nanos };
        Some((line, from))
    }

    /// Nanoseconds per tick, exactly; none if `shift` is not one that the kernel uses (up to 32).
    pub(super) fn slope(&self) -> Option<Ratio> {
        let per_tick = u128::from(self.mult) << 64_u32.checked_sub(self.shift)?;
        let (whole, fraction) = (per_tick >> 64, per_tick & u128::from(u64::MAX));
        Some(Ratio::from_parts(u64::try_from(whole).ok()?, u64::try_from(fraction).ok()?))
    }

    /// Clock for spans of the counter by this line's rate, without an error: for `CLOCK_MONOTONIC_RAW`, whose rate the
    /// kernel never changes.
    pub(crate) fn difference_clock(&self, granularity: Span) -> Option<DifferenceClock> {
        let ticks = NonZeroU64::new(1_u64.checked_shl(self.shift)?)?;
        let nanos = NonZeroU64::new(self.mult.into())?;
        Some(DifferenceClock::new(Domain::Counter, ticks, nanos, 0.0, granularity))
    }

    /// Time at a counter value since the whole seconds, times 2^`shift`.
    pub(super) fn shifted(&self, counter: u64) -> i128 {
        let ticks = i128::from(counter) - i128::from(self.cycle_last);
        ticks * i128::from(self.mult) + i128::from(self.shifted_nanos)
    }
}

fn saturated(nanos: i128) -> i64 {
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A counter of this frequency, with the largest factor that the kernel would choose.
    fn line(hertz: u64, cycle_last: u64, seconds: u64, shifted_nanos: u64) -> KernelLine {
        let shift = 24;
        let mult = u32::try_from((1_000_000_000_u64 << shift) / hertz).unwrap();
        KernelLine { cycle_last, mult, shift, seconds, shifted_nanos }
    }

    #[test]
    fn line_is_the_formula_of_the_kernel() {
        let line = line(2_000_000_000, 1_000, 5, 3 << 24);
        assert_eq!(line.nanos(1_000), 5_000_000_003);
        assert_eq!(line.nanos(1_001), 5_000_000_003, "rounded down");
        assert_eq!(line.nanos(1_002), 5_000_000_004);
        assert_eq!(line.nanos(998), 5_000_000_002, "before the line");
    }

    #[test]
    fn times_without_a_counter_value_have_none() {
        let line = line(1_000_000_000, 1_000, 0, 0);
        assert_eq!((line.counter(-1_000), line.counter(-1_001)), (Some(0), None));
        let last = KernelLine { cycle_last: u64::MAX, ..line };
        assert_eq!((last.counter(0), last.counter(1)), (Some(u64::MAX), None));
    }

    #[test]
    fn continuation_is_the_same_function() {
        let first = line(2_000_000_000, 1_000, 5, 3 << 24);
        let tick = 4_000_000;
        let later =
            KernelLine { cycle_last: 1_000 + tick, shifted_nanos: 2_000_003 << 24, ..first };
        assert!(first.is_continued_by(&later));
        let second = KernelLine { seconds: 4, shifted_nanos: 1_002_000_003 << 24, ..later };
        assert!(first.is_continued_by(&second), "whole seconds do not matter");
        let stepped = KernelLine { shifted_nanos: later.shifted_nanos + 1, ..later };
        let slewed = KernelLine { mult: first.mult + 1, ..later };
        assert!(!first.is_continued_by(&stepped) && !first.is_continued_by(&slewed));
    }

    #[test]
    fn line_between_clocks_is_their_difference() {
        let monotonic = line(2_000_000_000, 1_000, 5, 3 << 24);
        let utc = KernelLine { seconds: 1_800_000_005, ..monotonic };
        let (line, from) = monotonic.to(&utc, 9_000).unwrap();
        assert_eq!(from, 5_000_004_003);
        assert_eq!(line.nanos(from + 7), 1_800_000_005_000_004_010);
        let later = monotonic.to(&utc, 1 << 40).unwrap().0;
        assert!(line.is_continued_by(&later));
    }

    #[test]
    fn slope_is_the_factor_of_the_kernel() {
        let slope = line(2_000_000_000, 0, 0, 0).slope().unwrap();
        assert_eq!((slope.scale(1_000), slope.scale(1 << 40)), (500, 1 << 39));
    }

    proptest! {
        #[test]
        fn inverse_returns_the_time_within_a_tick(
            hertz in 20_000_000_u64..=6_000_000_000,
            cycle_last in 1_u64 << 62..1 << 63,
            seconds in 0_u64..4_000_000_000,
            shifted_nanos in 0_u64..1_000_000_000 << 24,
            away in -1_000_000_000_000_i64..1_000_000_000_000,
        ) {
            let line = line(hertz, cycle_last, seconds, shifted_nanos);
            let nanos = line.nanos(cycle_last).saturating_add(away);
            let counter = line.counter(nanos).unwrap();
            let tick = i64::from(line.mult >> line.shift);
            prop_assert!((nanos..=nanos + tick).contains(&line.nanos(counter)));
            prop_assert!(line.nanos(counter - 1) < nanos, "the first one");
        }

        #[test]
        fn any_line_converts_without_panic(
            cycle_last in any::<u64>(), mult in 1_u32.., shift in 0_u32..=32, seconds in any::<u64>(),
            shifted_nanos in any::<u64>(), counter in any::<u64>(), nanos in any::<i64>(),
        ) {
            let line = KernelLine { cycle_last, mult, shift, seconds, shifted_nanos };
            let _ = (line.nanos(counter), line.counter(nanos));
        }
    }
}
