//! Casts between integers and floating-point numbers, and the rank of a percentile.

use wirestamp_clock::Span;

/// Rank of a percentile by the nearest-rank method: ⌈`quantile` · `count`⌉, clamped to 1..=`count`.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product lies between 0 and the count; a cast from float saturates"
)]
pub fn nearest_rank(quantile: f64, count: u64) -> u64 {
    let rank = (quantile.clamp(0.0, 1.0) * count_to_f64(count)).ceil() as u64;
    rank.clamp(1, count)
}

/// Rank of a percentile in parts per thousand, by the nearest-rank method; 0 without values.
#[must_use]
pub fn nearest_rank_per_mille(per_mille: u16, count: u64) -> u64 {
    let rank = (u128::from(count) * u128::from(per_mille)).div_ceil(1000);
    u64::try_from(rank).unwrap_or(count)
}

/// Nanoseconds as a floating-point number; exact up to 2^53 ns (104 days).
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "exact to 2^53 ns, 104 days; rounded beyond")]
pub fn nanos_to_f64(nanos: i64) -> f64 {
    nanos as f64
}

/// A count as a floating-point number; exact up to 2^53.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "exact to 2^53 values; rounded beyond")]
pub fn count_to_f64(count: u64) -> f64 {
    count as f64
}

/// Nanoseconds rounded to a whole span; saturates.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
pub fn round_to_span(nanos: f64) -> Span {
    Span::from_nanos(nanos.round() as i64)
}
