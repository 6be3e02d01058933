//! What a capture lost, and when.

use wirestamp_clock::{Time, Utc};

/// Packets that a capture lost in a stretch of time. They were on the wire: whoever looks for them
/// must not take them for lost by the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// No packet of these would have had an earlier stamp.
    pub from: Time<Utc>,
    /// Nor a later one. Not before `from`.
    pub until: Time<Utc>,
    /// How many packets there were. Where the filter is not applied by the kernel, some of them may
    /// be packets that it would have refused.
    pub packets: u64,
}

impl Missed {
    /// Two stretches as one, which reaches over both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            until: self.until.max(other.until),
            packets: self.packets.saturating_add(other.packets),
        }
    }
}
