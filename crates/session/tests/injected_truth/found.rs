//! The correlator's outcome of each packet.

use std::collections::HashMap;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Outcome, Quality};

/// The outcomes of a packet that was seen at tap A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) matched: Option<Matched>,
    pub(crate) lost: u32,
    pub(crate) copies: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    pub(crate) delay: Span,
    pub(crate) error: Span,
    /// The same delay as the difference of the stamps in UTC, and the sum of both stamp errors.
    pub(crate) in_utc: Span,
    pub(crate) in_utc_error: Span,
    pub(crate) reordered: bool,
}

/// All outcomes, packet by packet.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) quality: Quality,
    /// Packets by their stamp at tap A. Stamps are unique: the kernel needs more than a nanosecond for each packet.
    packets: HashMap<i64, Packet>,
    /// Packets that were matched more than once.
    matched_again: u64,
}

impl Found {
    pub(crate) fn record(&mut self, outcome: &Outcome) {
        self.quality.record(outcome);
        match outcome {
            Outcome::Matched { sent, received, delay, error, reordered, .. } => {
                let matched = Matched {
                    delay: *delay,
                    error: *error,
                    in_utc: received.stamp.utc - sent.stamp.utc,
                    in_utc_error: received.stamp.error + sent.stamp.error,
                    reordered: *reordered,
                };
                let before = self.packet(sent.stamp.utc).matched.replace(matched);
                self.matched_again += u64::from(before.is_some());
            }
            Outcome::Lost { sent, .. } => self.packet(sent.stamp.utc).lost += 1,
            Outcome::Duplicated { sent, .. } => self.packet(sent.stamp.utc).copies += 1,
            // Only counted, in `quality`.
            Outcome::Unexpected { .. }
            | Outcome::Undetermined { .. }
            | Outcome::Identical { .. } => {}
        }
    }

    fn packet(&mut self, stamp: Time<Utc>) -> &mut Packet {
        self.packets.entry(stamp.as_nanos()).or_default()
    }

    /// Number of different packets, and of packets that were matched more than once.
    pub(crate) fn packets(&self) -> (usize, u64) {
        (self.packets.len(), self.matched_again)
    }

    /// Outcome of the packet with this stamp at tap A.
    pub(crate) fn at(&self, stamp: Time<Utc>) -> Option<&Packet> {
        self.packets.get(&stamp.as_nanos())
    }
}
