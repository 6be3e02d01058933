//! Values of information elements that several records have.

use wirestamp_clock::{Time, Utc};

use crate::protocol::ipfix::Value;

/// The number of a task, as the ID of its metering process. There are never 2^32 tasks.
pub(super) fn number_of(task: u64) -> Value<'static> {
    Value::U32(u32::try_from(task).unwrap_or(u32::MAX))
}

/// Milliseconds since 1970; 0 for earlier times.
pub(super) fn millis(time: Time<Utc>) -> Value<'static> {
    Value::U64(u64::try_from(time.as_nanos() / 1_000_000).unwrap_or(0))
}

/// A value in nanoseconds, rounded.
#[expect(clippy::cast_possible_truncation, reason = "rounded; between values that are i64")]
pub(super) fn nanos(value: f64) -> i64 {
    value.round() as i64
}
