//! Conversions to the floats of Prometheus.

use jiff::Timestamp;

/// Booleans are numbers in Prometheus.
pub(super) fn truth(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

pub(super) fn seconds_of(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has floats; exact to 2^53")]
pub(super) fn float(value: u64) -> f64 {
    value as f64
}
