//! Times in files: nanoseconds since 1970.

use std::time::{Duration, SystemTime};

use wirestamp_clock::{OutOfRange, Time, Utc};

/// The system's time.
pub(super) fn now() -> Time<Utc> {
    Time::try_from(SystemTime::now()).unwrap_or_else(OutOfRange::into_nearest)
}

/// Time since 1970; earlier times are clamped to 0.
pub(super) fn since_epoch(utc: Time<Utc>) -> Duration {
    Duration::from_nanos(nanos(utc))
}

/// The same in nanoseconds.
pub(super) fn nanos(utc: Time<Utc>) -> u64 {
    u64::try_from(utc.as_nanos()).unwrap_or(0)
}

/// The time of a file's timestamp.
pub(super) fn from_epoch(since_epoch: Duration) -> Result<Time<Utc>, String> {
    i64::try_from(since_epoch.as_nanos())
        .map(Time::from_nanos)
        .map_err(|_| format!("a packet from {} s after 1970", since_epoch.as_secs()))
}
