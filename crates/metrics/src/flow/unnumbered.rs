//! Packets without sequence numbers, whose loss cannot be detected.

use wirestamp_clock::{Span, Time, Utc};

/// Packets of a flow that belong neither to RTP nor to an iperf3 test.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnnumberedPackets {
    pub(super) first: Time<Utc>,
    pub(super) last: Time<Utc>,
    /// Min time between two of them.
    pub(super) closest: Span,
}

impl UnnumberedPackets {
    /// Max packets that may have passed in an interval, if no two came closer together than observed.
    pub(super) fn within(&self, (from, until): (Time<Utc>, Time<Utc>)) -> u64 {
        if until < self.first || self.last < from {
            return 0;
        }
        let times = (until - from).as_nanos().max(0) / self.closest.as_nanos();
        times.unsigned_abs() + 1
    }
}
