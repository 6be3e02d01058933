//! Statistics of records from Kafka.

use parking_lot::Mutex;

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
}

impl KafkaStats {
    /// The counters by name; empty if the collector does not read from Kafka.
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = *self.0.lock();
        if !counts.is_reading {
            return Vec::new();
        }
        vec![
            ("taken", counts.taken),
            ("duplicates", counts.duplicates),
            ("gaps", counts.gaps),
            ("deferred", counts.deferred),
            ("stale", counts.stale),
            ("refused", counts.refused),
            ("forged", counts.forged),
            ("unreadable", counts.unreadable),
        ]
    }

    /// Changes the counters.
    #[cfg(feature = "kafka")]
    pub(super) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.0.lock());
    }
}
