//! GapLosses in a gap, and corrections of them.

use wirestamp_clock::{Time, Utc};

use super::uncertainty::ImpairmentUncertainty;

/// What a gap comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GapLosses {
    /// Packets that the network lost, and the runs that they make.
    pub(super) by_network: u64,
    pub(super) periods: u64,
    /// Packets that the capture lost.
    pub(super) by_capture: u64,
    /// What is in doubt of what the network lost.
    pub(super) uncertainty: ImpairmentUncertainty,
}

impl GapLosses {
    pub(super) fn lose(&mut self, packets: u64) {
        self.by_network += packets;
        self.periods += u64::from(packets > 0);
    }
}

/// What a gap came to, and what it comes to now.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossChange {
    pub(super) before: GapLosses,
    pub(super) now: GapLosses,
    /// When the packet behind the gap came.
    pub(super) time: Time<Utc>,
}
