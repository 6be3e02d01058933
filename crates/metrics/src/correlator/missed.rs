//! What the capture at a point lost.

use wirestamp_clock::{Time, Utc};

/// A stretch of time in which the capture at one point lost packets, all of them between two
/// packets that it delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// When it may have begun: the stamp of the last packet delivered before it is right, and
    /// anything later that is known is as good.
    pub from: Time<Utc>,
    /// When it was over: at the latest the stamp of the first packet delivered after it.
    pub until: Time<Utc>,
    /// How many packets were lost.
    pub packets: u64,
}
