//! How often each outcome occurred, and the error bounds of the clocks.

use serde::{Deserialize, Serialize};
use wirestamp_clock::Span;

use crate::numeric::{count_to_f64, nanos_to_f64};

/// How often each thing happened to a packet.
///
/// Once the correlator has finished, the books balance:
/// `sent = matched + lost + undetermined_sent` and
/// `received = matched + duplicated + unexpected + undetermined_received`. Before that, packets that
/// are not decided yet are in no count at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Counts {
    /// Observations at A.
    pub sent: u64,
    /// Observations at B, every copy of a packet and the unexpected ones too.
    pub received: u64,
    /// Packets seen at both points, each counted once.
    pub matched: u64,
    /// Packets seen at A and not at B within the time-out (RFC 7680 section 2.4).
    pub lost: u64,
    /// Copies at B beyond the first of a packet (RFC 5560 section 3): a packet that came three
    /// times counts two.
    pub duplicated: u64,
    /// Matched packets that came after a packet of their flow that had left A later (RFC 4737
    /// section 3.3). A packet that is overtaken by many counts one.
    pub reordered: u64,
    /// Observations at B of packets that A has not seen.
    pub unexpected: u64,
    /// Observations at A of which the correlator could not find out what became.
    #[serde(rename = "given_up_sent")]
    pub undetermined_sent: u64,
    /// Observations at B of which the correlator could not find out where they came from.
    #[serde(rename = "given_up_received")]
    pub undetermined_received: u64,
    /// Observations at A that could not be told from an earlier one; these are in `sent` too.
    pub identical: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
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

/// The bounds of the errors that the clocks bring into one-way delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockError {
    /// The mean of the bounds, in nanoseconds: how far the mean delay can be off.
    pub mean: f64,
    /// The greatest of the bounds: how far any delay can be off.
    pub max: Span,
}

impl ClockError {
    /// Takes the bound of the delay that is number `count`.
    pub(super) fn record(&mut self, bound: Span, count: u64) {
        self.mean += (nanos_to_f64(bound.as_nanos()) - self.mean) / count_to_f64(count);
        self.max = self.max.max(bound);
    }

    /// Takes the bounds of `theirs` more delays, where there are `ours` by now.
    pub(super) fn merge(&mut self, ours: u64, other: &Self, theirs: u64) {
        if theirs > 0 {
            let share = count_to_f64(theirs) / count_to_f64(ours + theirs);
            self.mean += (other.mean - self.mean) * share;
            self.max = self.max.max(other.max);
        }
    }
}
