//! Packets that a capture lost, and when.

use wirestamp_clock::{Time, Utc};

/// An interval in which the capture at one point lost packets.
///
/// The packets were on the wire: they must not be counted as lost by the network. The interval may be longer than
/// the loss, but not shorter. Where intervals overlap, each lost packet belongs to one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureLoss {
    /// Earliest stamp that a lost packet would have had.
    pub from: Time<Utc>,
    /// Latest stamp that a lost packet would have had. Not before `from`.
    pub until: Time<Utc>,
    /// Number of packets lost. Includes packets that the filter would have rejected, unless the kernel applies
    /// the filter.
    pub packets: u64,
}

impl CaptureLoss {
    /// One interval that covers both, with the packets of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            until: self.until.max(other.until),
            packets: self.packets.saturating_add(other.packets),
        }
    }
}
