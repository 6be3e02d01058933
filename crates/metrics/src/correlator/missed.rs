//! What the capture at a point lost.

use wirestamp_clock::{Time, Utc};

/// A stretch of time in which the capture at one point lost packets. It need not be exact, but must
/// not be too short; where stretches overlap, each packet lost is in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// When it may have begun: at the earliest with the stamp of the last packet delivered before
    /// it.
    pub from: Time<Utc>,
    /// When it was over: at the latest the stamp of the first packet delivered after it.
    pub until: Time<Utc>,
    /// How many packets were lost.
    pub packets: u64,
}
