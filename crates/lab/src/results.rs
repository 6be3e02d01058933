//! Results of a mesh in a test bed, as the controller's API returns them: the fields that tests and studies use.

use std::thread;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use wirestamp_clock::{OutOfRange, Time, Utc};

/// Time in nanoseconds between the packets before a measurement and those of it.
const APART: i64 = 100_000_000;
const SECOND: i64 = 1_000_000_000;

/// What a task measured in a second: as much of it as is used here.
#[derive(Clone, Debug, Deserialize)]
pub struct Second {
    /// When it begins, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// What became of the packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// None without packets that both points saw.
    pub delay_ns: Option<Delay>,
    /// How far any of the delays can be off.
    pub error_ns: Option<i64>,
    /// Whether a delay is further below zero than that.
    pub contradicts_the_clocks: bool,
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "as of wirestamp_metrics::Counts")]
pub struct Counts {
    pub sent: u64,
    pub matched: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub unexpected: u64,
    #[serde(rename = "given_up_sent")]
    pub undetermined_sent: u64,
    #[serde(rename = "given_up_received")]
    pub undetermined_received: u64,
    pub identical: u64,
}

/// One-way delays, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Delay {
    /// How many there are.
    pub count: u64,
    /// The least.
    pub min: i64,
    /// Their mean.
    pub mean: f64,
    /// The longest.
    pub max: i64,
}

/// What a task counted in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Interval {
    /// Packets.
    pub packets: u64,
    /// Packets that the capture lost meanwhile.
    pub missed: u64,
    /// For how much of it somebody looked, in nanoseconds.
    pub watched_ns: i64,
}

impl Counts {
    /// Adds those of another time.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.matched += other.matched;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.unexpected += other.unexpected;
        self.undetermined_sent += other.undetermined_sent;
        self.undetermined_received += other.undetermined_received;
        self.identical += other.identical;
    }
}

impl Delay {
    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let count = self.count + other.count;
        let sum = self.mean * real(self.count) + other.mean * real(other.count);
        Self {
            count,
            min: self.min.min(other.min),
            mean: sum / real(count.max(1)),
            max: self.max.max(other.max),
        }
    }
}

/// Waits for the next second that nothing sent before can belong to; when it begins, in nanoseconds since 1970
/// (UTC).
///
/// # Errors
/// When the clock says what cannot be.
pub fn next_second() -> Result<i64, OutOfRange<Time<Utc>>> {
    let now = || Ok(Time::<Utc>::try_from(SystemTime::now())?.as_nanos());
    let next = (now()? + APART) / SECOND * SECOND + SECOND;
    let wait = u64::try_from(next + APART - now()?).unwrap_or(0);
    thread::sleep(Duration::from_nanos(wait));
    Ok(next)
}

/// A count as a real number.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 packets")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_as_the_controller_writes_them() {
        let written = r#"{"begin_ns":7,"sent":3,"received":2,"matched":2,"lost":1,"duplicated":0,
            "reordered":0,"unexpected":0,"given_up_sent":0,"given_up_received":0,"identical":0,
            "delay_ns":{"count":2,"min":5,"mean":6.5,"stddev":2.1,"p50":5,"max":8},"error_ns":40,
            "not_synchronised":null,"contradicts_the_clocks":false}"#;
        let second: Second = serde_json::from_str(written).unwrap();
        assert_eq!((second.begin_ns, second.counts.sent, second.counts.lost), (7, 3, 1));
        assert_eq!(second.delay_ns, Some(Delay { count: 2, min: 5, mean: 6.5, max: 8 }));
    }
}
