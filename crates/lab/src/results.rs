//! Results of a mesh in a test bed, as returned by the controller's API: the fields used by tests and studies.

use std::thread;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use wirestamp_clock::{OutOfRange, Time, Utc};
use wirestamp_metrics::Counts;
use wirestamp_metrics::numeric::count_to_f64;

/// Nanoseconds without packets before a measurement.
const GAP: i64 = 100_000_000;
const SECOND: i64 = 1_000_000_000;

/// Result of a task for one second; used fields only.
#[derive(Clone, Debug, Deserialize)]
pub struct Second {
    /// Start of the second, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// Packet counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// One-way delays; none without matched packets.
    pub delay_ns: Option<Delay>,
    /// Max error of the delays.
    pub error_ns: Option<i64>,
    /// Whether a delay is below zero by more than `error_ns`.
    pub contradicts_the_clocks: bool,
}

/// One-way delays, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delay {
    /// Number of delays.
    pub count: u64,
    /// Min delay.
    pub min: i64,
    /// Mean delay.
    pub mean: f64,
    /// Max delay.
    pub max: i64,
}

/// Result of a task for one interval of a monitored link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Interval {
    /// Captured packets.
    pub packets: u64,
    /// Packets lost by the capture.
    pub missed: u64,
    /// Observed time, in nanoseconds.
    pub watched_ns: i64,
}

impl Delay {
    /// The merged delays of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let count = self.count + other.count;
        let sum = self.mean * count_to_f64(self.count) + other.mean * count_to_f64(other.count);
        Self {
            count,
            min: self.min.min(other.min),
            mean: sum / count_to_f64(count.max(1)),
            max: self.max.max(other.max),
        }
    }
}

/// Waits for the next second that has no packets sent before the call. Returns its start in nanoseconds
/// since 1970 (UTC).
///
/// # Errors
/// When the system clock is out of range.
pub fn next_second() -> Result<i64, OutOfRange<Time<Utc>>> {
    let now = || Ok(Time::<Utc>::try_from(SystemTime::now())?.as_nanos());
    let next = (now()? + GAP) / SECOND * SECOND + SECOND;
    let wait = u64::try_from(next + GAP - now()?).unwrap_or(0);
    thread::sleep(Duration::from_nanos(wait));
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_the_api_are_parsed() {
        let json = r#"{"begin_ns":7,"sent":3,"received":2,"matched":2,"lost":1,"duplicated":0,
            "reordered":0,"unexpected":0,"given_up_sent":0,"given_up_received":0,"identical":0,
            "delay_ns":{"count":2,"min":5,"mean":6.5,"stddev":2.1,"p50":5,"max":8},"error_ns":40,
            "not_synchronised":null,"contradicts_the_clocks":false}"#;
        let second: Second = serde_json::from_str(json).unwrap();
        assert_eq!((second.begin_ns, second.counts.sent, second.counts.lost), (7, 3, 1));
        assert_eq!(second.delay_ns, Some(Delay { count: 2, min: 5, mean: 6.5, max: 8 }));
    }
}
