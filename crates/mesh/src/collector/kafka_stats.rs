//! Statistics of records from Kafka.

use parking_lot::Mutex;

use crate::v1::Counter;

/// Records by outcome, since the collector started.
#[derive(Debug, Default)]
pub struct KafkaStats(Mutex<Counts>);

/// The counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Whether the collector reads from Kafka.
    pub(super) is_reading: bool,
    /// Records whose batches were taken.
    pub(super) taken: u64,
    /// Records with batches that were taken before.
    pub(super) duplicates: u64,
    /// Records that are not the next ones: earlier ones are missing.
    pub(super) gaps: u64,
    /// Records that wait no longer for the other point of their task: they are requested again.
    pub(super) deferred: u64,
    /// Records of earlier sessions.
    pub(super) stale: u64,
    /// Records of probes that take no part in the task.
    pub(super) refused: u64,
    /// Records without a valid signature.
    pub(super) forged: u64,
    /// Records that cannot be decoded.
    pub(super) unreadable: u64,
    /// Times that reading ended with an error and began again.
    pub(super) failures: u64,
}

/// Names of the counters.
const OUTCOMES: [&str; 8] =
    ["taken", "duplicates", "gaps", "deferred", "stale", "refused", "forged", "unreadable"];

impl KafkaStats {
    /// The counters by name; empty if the collector does not read from Kafka.
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = *self.0.lock();
        if !counts.is_reading {
            return Vec::new();
        }
        let Counts {
            taken, duplicates, gaps, deferred, stale, refused, forged, unreadable, ..
        } = counts;
        let counts = [taken, duplicates, gaps, deferred, stale, refused, forged, unreadable];
        OUTCOMES.into_iter().zip(counts).collect()
    }

    /// Times that reading ended with an error and began again; none if the collector does not read from Kafka.
    #[must_use]
    pub fn failures(&self) -> Option<u64> {
        let counts = self.0.lock();
        counts.is_reading.then_some(counts.failures)
    }

    /// Those counters of another collector whose names are known, once each.
    pub(crate) fn known(counts: &[Counter]) -> Vec<(&'static str, u64)> {
        let count = |what| Some((what, counts.iter().find(|it| it.what == what)?.count));
        OUTCOMES.into_iter().filter_map(count).collect()
    }

    /// Changes the counters.
    #[cfg(feature = "kafka")]
    pub(super) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.0.lock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_repeated_counters_are_left_out() {
        let counter = |what: &str, count| Counter { what: what.to_owned(), count };
        let counts = [counter("gaps", 2), counter("x\n", 3), counter("gaps", 4)];
        assert_eq!(KafkaStats::known(&counts), [("gaps", 2)]);
    }
}
