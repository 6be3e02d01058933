//! Conversions to the floats of Prometheus.

use jiff::Timestamp;
pub(super) use wirestamp_metrics::numeric::count_to_f64 as float;

/// Booleans are numbers in Prometheus.
pub(super) fn truth(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

pub(super) fn seconds_of(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}
