//! What was sent.

use serde::Serialize;
use wirestamp_clock::{Span, Time, Utc};

use crate::TxStamps;

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of its stream.
    pub stream: u16,
    /// Its number in the stream.
    pub sequence: u64,
    /// When it was due.
    pub intended: Time<Utc>,
    /// When it was handed to the kernel; with [`SendMethod::Ring`](crate::SendMethod::Ring), when
    /// it was written to the ring, right before the call for the ring or, of a batch, before the
    /// frames behind it.
    pub actual: Time<Utc>,
    /// From the one to the other by the counter, never negative.
    pub pacing_error: Span,
    /// When it was queued and when it left, where that was asked for and is known.
    pub stamps: TxStamps,
}

/// What was sent of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// The stream's number.
    pub id: u16,
    /// Packets that the kernel took.
    pub sent: u64,
    /// Their frames' bytes, without check sequence and preamble.
    pub bytes: u64,
    /// Packets that the kernel refused. Their sequence numbers are not used again.
    pub failed: u64,
    /// What it said of the first.
    pub first_error: Option<String>,
}

/// What was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SendReport {
    /// Each stream, in the order in which they were given.
    pub streams: Vec<StreamReport>,
    /// Packets that were late because a sleep ended after their deadline.
    pub overslept: u64,
    /// Whether it ended by request, before everything was sent.
    pub stopped: bool,
}

impl SendReport {
    /// Packets that the kernel took, of all streams.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.streams.iter().map(|stream| stream.sent).sum()
    }
}
