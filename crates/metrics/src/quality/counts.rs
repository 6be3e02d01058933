//! Packets by outcome, and the error bounds of the clocks.

use serde::{Deserialize, Serialize};
use wirestamp_clock::Span;

use crate::numeric::{count_to_f64, nanos_to_f64};

/// Number of packets by outcome.
///
/// Once the correlator has finished, `sent = matched + lost + undetermined_sent` and `received = matched + duplicated
/// + unexpected + undetermined_received`. Before that, undecided packets are in no count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Observations at A.
    pub sent: u64,
    /// Observations at B, including duplicates and unexpected packets.
    pub received: u64,
    /// Packets observed at both points, each counted once.
    pub matched: u64,
    /// Packets observed at A and not at B within the timeout (RFC 7680 section 2.4).
    pub lost: u64,
    /// Duplicates at B beyond the first packet (RFC 5560 section 3): a packet that came three times counts two.
    pub duplicated: u64,
    /// Matched packets that came after a packet of their flow that left A later (RFC 4737 section 3.3). A packet
    /// overtaken by many counts one.
    pub reordered: u64,
    /// Observations at B of packets not observed at A.
    pub unexpected: u64,
    /// Undetermined observations at A.
    #[serde(rename = "given_up_sent")]
    pub undetermined_sent: u64,
    /// Undetermined observations at B.
    #[serde(rename = "given_up_received")]
    pub undetermined_received: u64,
    /// Observations at A indistinguishable from an earlier one; also counted in `sent`.
    pub identical: u64,
}

/// Loss is unknown if less than one in this many packets of A was matched.
const HARDLY_ANY: u64 = 10;
/// A point has about as many packets as another if it has at least one in this many.
const COMPARABLE: u64 = 2;

impl Counts {
    /// Whether hardly any packet of A was matched: less than a tenth.
    #[must_use]
    pub const fn are_unmatched(&self) -> bool {
        self.matched.saturating_mul(HARDLY_ANY) < self.sent
    }

    /// Whether the loss is unknown: hardly any packet of A was matched, and B observed at least half as many other packets
    /// as were lost. Of these, `unidentified` have no identity.
    #[must_use]
    pub const fn is_loss_unknown(&self, unidentified: u64) -> bool {
        let only_at_b = self.unexpected.saturating_add(unidentified);
        self.lost > 0 && self.are_unmatched() && only_at_b.saturating_mul(COMPARABLE) >= self.lost
    }

    /// Adds the counts of other packets.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.matched += other.matched;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.unexpected += other.unexpected;
        self.undetermined_sent += other.undetermined_sent;
        self.undetermined_received += other.undetermined_received;
        self.identical += other.identical;
    }
}

/// Bounds of the clock errors in one-way delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockError {
    /// Mean of the bounds, in nanoseconds: max error of the mean delay.
    pub mean: f64,
    /// Max of the bounds: max error of any delay.
    pub max: Span,
}

impl ClockError {
    /// Records the bound of delay number `count`.
    pub(super) fn record(&mut self, bound: Span, count: u64) {
        self.mean += (nanos_to_f64(bound.as_nanos()) - self.mean) / count_to_f64(count);
        self.max = self.max.max(bound);
    }

    /// Adds the bounds of `theirs` delays to those of `ours`.
    pub(super) fn merge(&mut self, ours: u64, other: &Self, theirs: u64) {
        if theirs > 0 {
            let share = count_to_f64(theirs) / count_to_f64(ours + theirs);
            self.mean += (other.mean - self.mean) * share;
            self.max = self.max.max(other.max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_unknown_if_other_packets_arrived() {
        let of = |matched, unexpected| {
            let counts =
                Counts { sent: 100, matched, lost: 100 - matched, unexpected, ..Counts::default() };
            counts.is_loss_unknown(0)
        };
        assert_eq!([of(0, 50), of(9, 46), of(0, 49), of(10, 90)], [true, true, false, false]);
        assert!(Counts { sent: 2, lost: 2, ..Counts::default() }.is_loss_unknown(1));
        assert!(!Counts::default().is_loss_unknown(1));
    }
}
