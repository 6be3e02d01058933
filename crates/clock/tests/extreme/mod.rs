//! Extreme values and extreme clocks.

mod clocks;
mod values;

use proptest::prelude::*;

/// Near the last nanosecond of 64 bits, on 2262-04-11.
const YEAR_2262: i64 = 9_214_646_400_000_000_000;

/// Any count, often one near the end of a range.
fn count() -> impl Strategy<Value = i64> {
    let edges =
        [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX, YEAR_2262, -YEAR_2262, 1 << 62];
    prop_oneof![any::<i64>(), prop::sample::select(edges.to_vec())]
}

/// Any raw value, often one near the end of a range.
fn raw() -> impl Strategy<Value = u64> {
    let edges = [0, 1, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
    prop_oneof![any::<u64>(), prop::sample::select(edges.to_vec())]
}
