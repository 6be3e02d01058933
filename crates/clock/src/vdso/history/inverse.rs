//! The inverse of the newest line, for many stamps: one multiplication each.

use crate::vdso::KernelLine;

/// Bits behind the binary point of the factors here.
const FRACTION_BITS: u32 = 64;

/// Max nanoseconds from the beginning, so that all products fit.
const MAX_LENGTH: u64 = 1 << 40;

/// From the times of a clock of the kernel to the counter, along one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineInverse {
    /// First counter value, and the time that the clock showed then.
    start: u64,
    start_nanos: i64,
    /// Nanoseconds from `start_nanos` that the line covers.
    length: u64,
    /// In units of 2^-64.
    ticks_per_nano: i128,
    /// Ticks from `start` to the middle of the nanosecond `start_nanos`, plus one half for rounding, in units of 2^-64.
    offset: i128,
}

impl LineInverse {
    /// The inverse of `line` from the counter value `start` to `until`.
    pub(super) fn new(line: &KernelLine, start: u64, until: u64) -> Self {
        let start_nanos = line.nanos(start);
        let length = line.nanos(until).saturating_sub(start_nanos);
        let one = 1_i128 << FRACTION_BITS;
        let ticks_per_nano = (one << line.shift) / i128::from(line.mult);
        // The clock's time at `start` is this much after the beginning of its nanosecond.
        let late = line.shifted(start) & ((1 << line.shift) - 1);
        let to_middle = (1 << line.shift) - 2 * late;
        let offset = ((to_middle * ticks_per_nano) >> (line.shift + 1)) + one / 2;
        let length = u64::try_from(length).unwrap_or(0).min(MAX_LENGTH);
        Self { start, start_nanos, length, ticks_per_nano, offset }
    }

    /// The counter value in the middle of the nanosecond that the clock shows as `nanos`, to the nearest tick; none
    /// outside the line.
    #[inline]
    pub(crate) fn counter(&self, nanos: i64) -> Option<u64> {
        let since_start = nanos.wrapping_sub(self.start_nanos).cast_unsigned();
        if since_start > self.length {
            return None;
        }
        let ticks = (i128::from(since_start) * self.ticks_per_nano + self.offset) >> FRACTION_BITS;
        i64::try_from(ticks).ok().map(|ticks| self.start.saturating_add_signed(ticks))
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
            let inverse = LineInverse::new(&line, cycle_last, cycle_last + (1 << 30));
            let stamp = line.nanos(cycle_last + ticks);
            if let Some(counter) = inverse.counter(stamp) {
                let slowest = u64::try_from((1_u128 << shift).div_ceil(u128::from(mult))).unwrap();
                prop_assert!(counter.abs_diff(cycle_last + ticks) <= slowest);
                prop_assert!((line.nanos(counter) - stamp).abs() <= 1);
            } else {
                prop_assert!(line.nanos(cycle_last + ticks) - line.nanos(cycle_last) > 1 << 40);
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
        let inverse = LineInverse::new(&line, 1_000, 1_000_000);
        for counter in 1_000..2_000 {
            assert_eq!(inverse.counter(line.nanos(counter)), Some(counter));
        }
    }
}
