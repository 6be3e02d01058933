//! Identical packets, whose delays may be those of their neighbours.

use wirestamp_metrics::{Counts, Quality};

use super::result::DelayResult;
use super::unknown_loss::UnknownLoss;

/// Identical packets are many if they are more than one in this many of A.
const MANY: u64 = 10;

/// Reason for a missing skew.
const NO_SKEW: &str =
    "many packets are identical, so that a delay may be that of a neighbour of the packet";

impl DelayResult {
    /// Rejects the skew if it follows from the delays of many identical packets. A skew that was removed is kept.
    pub(super) fn reject_skew_of_identical(&mut self) {
        let clocks = &mut self.clocks;
        let is_estimated = clocks.skew.is_ok() && clocks.correction.skew.is_none();
        if is_estimated && are_many(self.flows.total().counts()) {
            clocks.skew = Err(NO_SKEW);
        }
    }

    /// A note on many identical packets.
    pub(super) fn identical_packets(&self, total: &Quality) -> Option<String> {
        let counts = total.counts();
        let is_explained = matches!(self.unknown_loss, Some(UnknownLoss::TwiceAtA(_)));
        (are_many(counts) && !is_explained).then(|| {
            format!(
                "{} of {} packets at A are identical to one that left less than the timeout before: if one of them is \
                 lost, the delays of others may be those of their neighbours. A --timeout below the time between \
                 identical packets, but above the delay, avoids this.",
                counts.identical, counts.sent
            )
        })
    }
}

/// Whether a considerable part of the packets of A are identical to an earlier one.
const fn are_many(counts: &Counts) -> bool {
    counts.identical.saturating_mul(MANY) > counts.sent
}
