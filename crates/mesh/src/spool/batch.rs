//! Batches of a spool, and what remains of those that were dropped.

use std::ops::RangeInclusive;

/// Unit of delivery to the collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Number of observations or results.
    pub items: u64,
    /// Time range, in nanoseconds since 1970 (UTC).
    pub times: RangeInclusive<i64>,
    /// Encoded message; empty if the batch was dropped before it could be stored.
    pub body: Vec<u8>,
}

impl Batch {
    /// Whether the batch was dropped.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.body.is_empty()
    }

    /// What remains of the batch if it is dropped.
    #[must_use]
    pub fn dropped(&self) -> Self {
        Self { items: self.items, times: self.times.clone(), body: Vec::new() }
    }
}

/// An entry of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A batch and its number, from 1.
    Batch(u64, Batch),
    /// Batches that were dropped.
    Dropped(DroppedBatches),
}

/// Consecutive batches that were dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedBatches {
    /// Their numbers.
    pub sequences: RangeInclusive<u64>,
    /// Number of observations or results in them.
    pub items: u64,
    /// Their time range, in nanoseconds since 1970 (UTC).
    pub times: RangeInclusive<i64>,
}
