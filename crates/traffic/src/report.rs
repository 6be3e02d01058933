//! Reports of sent packets and streams.

use serde::Serialize;
use wirestamp_clock::{Span, Time, Utc};

use crate::{PacingClock, TxStamps};

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Number of the stream.
    pub stream: u16,
    /// Number of the packet in its stream.
    pub sequence: u64,
    /// Deadline.
    pub intended: Time<Utc>,
    /// Time of the system call. For [`SendMethod::Ring`](crate::SendMethod::Ring): time of writing to
    /// the ring, right before the system call or before the next frame of the batch.
    pub actual: Time<Utc>,
    /// `actual` minus `intended`, by the counter; never negative.
    pub pacing_error: Span,
    /// Transmit stamps, where requested and available.
    pub stamps: TxStamps,
}

impl SentPacket {
    /// Packet `sequence` of `stream`, due at the clock reading `deadline` and sent now.
    pub(crate) fn now(clock: &impl PacingClock, stream: u16, sequence: u64, deadline: u64) -> Self {
        let (intended, now) = (clock.utc(deadline), clock.now());
        let (actual, pacing_error) = (clock.utc(now), clock.span(deadline, now));
        Self { stream, sequence, intended, actual, pacing_error, stamps: TxStamps::default() }
    }
}

/// Result of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// The stream's number.
    pub id: u16,
    /// Packets that the kernel accepted.
    pub sent: u64,
    /// Bytes of their frames, without check sequence and preamble.
    pub bytes: u64,
    /// Packets that the kernel refused. Their sequence numbers are not used again.
    pub failed: u64,
    /// The kernel's first error.
    pub first_error: Option<String>,
}

/// Result of a run of all streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SendReport {
    /// The streams, in their original order.
    pub streams: Vec<StreamReport>,
    /// Packets that were late because a sleep ended after their deadline.
    pub overslept: u64,
    /// Whether a request ended the run before everything was sent.
    pub stopped: bool,
}

impl SendReport {
    /// Packets of all streams that the kernel accepted.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.streams.iter().map(|stream| stream.sent).sum()
    }
}
