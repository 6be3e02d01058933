//! Packets of which no number tells when they are missing.

use wirestamp_clock::{Span, Time, Utc};

/// The packets of a flow that are neither of RTP nor of a test of iperf3.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnnumberedPackets {
    pub(super) first: Time<Utc>,
    pub(super) last: Time<Utc>,
    /// The least time between two of them.
    pub(super) closest: Span,
}

impl UnnumberedPackets {
    /// How many may have passed in a stretch of time, if no two came closer together than those that
    /// were seen.
    pub(super) fn within(&self, (from, until): (Time<Utc>, Time<Utc>)) -> u64 {
        if until < self.first || self.last < from {
            return 0;
        }
        let times = (until - from).as_nanos().max(0) / self.closest.as_nanos();
        times.unsigned_abs() + 1
    }
}
