//! Losses in a gap, and corrections of them.

use wirestamp_clock::{Time, Utc};

use super::uncertainty::ImpairmentUncertainty;

/// Losses in a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GapLosses {
    /// Packets lost by the network, and the runs that they form.
    pub(super) by_network: u64,
    pub(super) periods: u64,
    /// Packets lost by the capture.
    pub(super) by_capture: u64,
    /// Uncertainty of the network losses.
    pub(super) uncertainty: ImpairmentUncertainty,
}

impl GapLosses {
    pub(super) fn lose(&mut self, packets: u64) {
        self.by_network += packets;
        self.periods += u64::from(packets > 0);
    }
}

/// Losses of a gap before and after a correction.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossChange {
    pub(super) before: GapLosses,
    pub(super) now: GapLosses,
    /// Arrival time of the packet after the gap.
    pub(super) time: Time<Utc>,
}
