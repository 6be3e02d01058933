//! Times as files have them: from 1970 on, and none before that.

use std::time::{Duration, SystemTime};

use wirestamp_clock::{OutOfRange, Time, Utc};

/// The time now, by the system's clock.
pub(super) fn now() -> Time<Utc> {
    Time::try_from(SystemTime::now()).unwrap_or_else(OutOfRange::into_nearest)
}

/// What a file says of a time; what was before 1970 becomes that.
pub(super) fn since_epoch(utc: Time<Utc>) -> Duration {
    Duration::from_nanos(nanos(utc))
}

/// The same in nanoseconds.
pub(super) fn nanos(utc: Time<Utc>) -> u64 {
    u64::try_from(utc.as_nanos()).unwrap_or(0)
}

/// The time that a file says.
pub(super) fn from_epoch(since_epoch: Duration) -> Result<Time<Utc>, String> {
    i64::try_from(since_epoch.as_nanos())
        .map(Time::from_nanos)
        .map_err(|_| format!("a packet from {} s after 1970", since_epoch.as_secs()))
}
