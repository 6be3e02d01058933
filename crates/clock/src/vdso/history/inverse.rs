//! The inverse of the line in force, for many stamps: one multiplication each.

use crate::vdso::KernelLine;

/// Bits behind the binary point of the factor. Counters of less than [`MAX_TICKS_PER_NANO`] fit.
const FRACTION_BITS: u32 = 56;

/// Ticks per nanosecond that do not fit.
const MAX_TICKS_PER_NANO: u64 = 1 << (64 - FRACTION_BITS);

/// Nanoseconds from the beginning that are covered, so that all products fit.
const LENGTH: u64 = 1 << 40;

/// From the times of a clock of the kernel to the counter, along one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineInverse {
    /// The time that the clock showed at the first counter value.
    start_nanos: i64,
    /// Nanoseconds from `start_nanos` that are covered.
    length: u64,
    /// In units of 2^-56.
    ticks_per_nano: u64,
    /// Counter value, in units of 2^-64, to which the ticks since `start_nanos` are added: up to the middle of the
    /// nanosecond, plus one half for rounding.
    origin: u128,
}

impl LineInverse {
    /// The inverse of `line` from the counter value `start` on.
    pub(super) fn new(line: &KernelLine, start: u64) -> Self {
        // The middle of the first nanosecond is at most that many ticks before it.
        let start = start.max(MAX_TICKS_PER_NANO);
        let factor = (1_u128 << (FRACTION_BITS + line.shift)) / u128::from(line.mult);
        // A factor that does not fit covers no time.
        let (ticks_per_nano, length) = u64::try_from(factor).map_or((0, 0), |it| (it, LENGTH));
        // The clock's time at `start` is this much after the beginning of its nanosecond.
        let late = line.shifted(start) & ((1 << line.shift) - 1);
        let to_middle = (1 << line.shift) - 2 * late;
        let to_middle = (to_middle * i128::from(ticks_per_nano)) >> (line.shift + 1);
        let half = 1 << 63;
        let origin = (u128::from(start) << 64) + half;
        let origin = origin.saturating_add_signed(to_middle << (64 - FRACTION_BITS));
        Self { start_nanos: line.nanos(start), length, ticks_per_nano, origin }
    }

    /// The counter value in the middle of the nanosecond that the clock shows as `nanos`, to the nearest tick; none
    /// before the start and 18 minutes or more after it.
    #[inline]
    pub(crate) fn counter(&self, nanos: i64) -> Option<u64> {
        let since_start = nanos.wrapping_sub(self.start_nanos).cast_unsigned();
        if since_start >= self.length {
            return None;
        }
        let since_start = u128::from(since_start << (64 - FRACTION_BITS));
        let counter = self.origin.saturating_add(since_start * u128::from(self.ticks_per_nano));
        u64::try_from(counter >> 64).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counter_values_of_stamps_are_within_a_nanosecond_and_a_tick(
            shift in 8_u32..=32,
            hertz in 1_000_000_u64..=5_000_000_000,
            cycle_last in 0_u64..1 << 60,
            shifted_nanos in 0_u64..1 << 40,
            ticks in 0_u64..1 << 30,
        ) {
            let mult = (u128::from(1_000_000_000_u64) << shift) / u128::from(hertz);
            prop_assume!((1..1 << 32).contains(&mult));
            let mult = u32::try_from(mult).unwrap();
            let line = KernelLine { cycle_last, mult, shift, seconds: 1_790_000_000, shifted_nanos };
            let inverse = LineInverse::new(&line, cycle_last);
            let stamp = line.nanos(cycle_last + ticks);
            if let Some(counter) = inverse.counter(stamp) {
                let slowest = u64::try_from((1_u128 << shift).div_ceil(u128::from(mult))).unwrap();
                prop_assert!(counter.abs_diff(cycle_last + ticks) <= slowest);
                prop_assert!((line.nanos(counter) - stamp).abs() <= 1);
            } else {
                prop_assert!(line.nanos(cycle_last + ticks) - line.nanos(cycle_last) >= 1 << 40);
            }
            prop_assert_eq!(inverse.counter(line.nanos(cycle_last) - 1), None);
        }
    }

    #[test]
    fn slow_counter_is_inverted_exactly() {
        // 25 MHz: each tick is 40 ns.
        let line = KernelLine {
            cycle_last: 1_000,
            mult: 40 << 20,
            shift: 20,
            seconds: 5,
            shifted_nanos: 7,
        };
        let inverse = LineInverse::new(&line, 1_000);
        for counter in 1_000..2_000 {
            assert_eq!(inverse.counter(line.nanos(counter)), Some(counter));
        }
    }
}
