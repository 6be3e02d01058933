//! Counts of one round: a row of the raw results.

use serde::{Deserialize, Serialize};
use wirestamp_report::format::{approximate, real};

/// Packet counts of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Round {
    /// Sent, and how long that took.
    pub(super) sent: u64,
    pub(super) elapsed_ns: i64,
    /// Dropped by the receiving interface, before any capture.
    pub(super) interface_dropped: u64,
    /// Dropped by the kernel because the capture's buffer was full, or still there at the end; none if the
    /// capture does not report it.
    pub(super) kernel_dropped: Option<u64>,
    /// Captured: in the file.
    pub(super) captured: u64,
}

impl Round {
    /// The share of the packets sent that is not in the file, in percent.
    pub(super) fn loss_percent(&self) -> f64 {
        100.0 * real(self.sent.saturating_sub(self.captured)) / real(self.sent.max(1))
    }

    /// How fast they were sent.
    pub(super) fn packets_per_second(&self) -> f64 {
        real(self.sent) * 1e9 / approximate(self.elapsed_ns.max(1))
    }

    /// Packets that neither the interface nor the capture accounts for; none if the capture does not report
    /// drops.
    pub(super) fn unaccounted(&self) -> Option<i64> {
        let accounted = self.interface_dropped + self.kernel_dropped? + self.captured;
        i64::try_from(i128::from(self.sent) - i128::from(accounted)).ok()
    }
}
