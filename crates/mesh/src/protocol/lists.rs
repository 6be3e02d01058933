//! Parts that messages with observations have in common.

use wirestamp_metrics::CaptureLoss;

use crate::v1;

pub(super) fn missed(it: &CaptureLoss) -> v1::Missed {
    v1::Missed { from: it.from.as_nanos(), until: it.until.as_nanos(), packets: it.packets }
}

/// The first value, and the differences between consecutive values.
pub(super) fn differences(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut before = 0_i64;
    // Wraps around for distant times; adding wraps back.
    values.map(|value| value.wrapping_sub(std::mem::replace(&mut before, value))).collect()
}
