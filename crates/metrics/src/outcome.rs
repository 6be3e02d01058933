//! What became of a packet between two points.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::FlowKey;

use crate::{Config, Observation, Point};

/// What became of an observation.
///
/// Every observation at A ends in exactly one of [`Matched`](Self::Matched),
/// [`Lost`](Self::Lost) and [`Undetermined`](Self::Undetermined); every observation at B in exactly one of
/// [`Matched`](Self::Matched), [`Duplicated`](Self::Duplicated),
/// [`Unexpected`](Self::Unexpected) and [`Undetermined`](Self::Undetermined).
/// [`Identical`](Self::Identical) comes in addition to these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Seen at both points.
    Matched {
        /// The packet at A.
        sent: Observation,
        /// Its first copy at B.
        received: Observation,
        /// Its place among the packets of its flow that left A, from 0 on: the sequence number that
        /// the metrics of RFC 4737 and RFC 3357 order a stream by. It grows by one from packet to
        /// packet, and by more only where the correlator had so many flows that it had to forget
        /// how many packets this one had sent before a pause.
        sequence: u64,
        /// The one-way delay (RFC 7679 section 3.4): the time from A to B. Negative where the
        /// clocks of the points disagree by more than the packet took; such delays are reported
        /// as they are, because hiding them would hide what they say about the clocks.
        delay: Span,
        /// How far `delay` can be off because of the clocks.
        error: Span,
        /// Whether the packet is reordered (Type-P-Reordered, RFC 4737 section 3.3): a packet of
        /// its flow that left A after it had already come to B. Copies do not take part.
        reordered: bool,
        /// The delay of this packet less that of the packet of its flow that left A just before
        /// it: the delay variation of the pair (RFC 3393 section 2.4, with consecutive packets,
        /// the first example of section 2.5, as the selection function). `None` while the earlier
        /// one has not been matched; if it is matched later, the pair is reported there, as
        /// `until_next`.
        since_previous: Option<Span>,
        /// The delay of the packet of the same flow that left A just after this one, less that
        /// of this one, if that packet had been matched already: the other half of
        /// `since_previous`. Each pair is reported once.
        until_next: Option<Span>,
    },
    /// Seen at A and not at B within the time-out (RFC 7680 section 2.4). Also packets that were
    /// still under way when the observation ended: let B observe for the time-out longer than A.
    ///
    /// Of one flow, losses are reported in the order in which the packets left A, given up ones
    /// ([`Undetermined`](Self::Undetermined)) among them; but those that a capture might have missed come
    /// later.
    Lost {
        /// The packet at A.
        sent: Observation,
        /// Its place among the packets of its flow that left A, as in [`Matched`](Self::Matched).
        sequence: u64,
    },
    /// One more copy at B of a packet that was already matched (RFC 5560 section 3).
    Duplicated {
        /// The packet at A.
        sent: Observation,
        /// The copy at B that is one too many.
        received: Observation,
    },
    /// Seen at B only: it did not pass A, or it was changed on the way, or it took longer than
    /// the time-out.
    Unexpected {
        /// The packet at B.
        received: Observation,
    },
    /// What became of this one could not be found out. It is counted neither as lost nor as
    /// unexpected.
    Undetermined {
        /// Where it was seen.
        point: Point,
        /// The packet.
        observation: Observation,
        /// If it was seen at A, its place among the packets of its flow that left A.
        sequence: Option<u64>,
        /// Why.
        reason: UndeterminedReason,
    },
    /// This packet at A cannot be told from one that left A less than the time-out before it. The
    /// copies at B are matched in the order of departure, so that the counts are right, but if
    /// one of them is lost, the delays of the others may be those of their twins.
    Identical {
        /// The later of the two.
        sent: Observation,
    },
}

/// Why it could not be found out what became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UndeterminedReason {
    /// The correlator had no room left for it, or for what might have been its counterpart.
    Memory,
    /// The capture at the other point lost packets where this one may have passed
    /// ([`Correlator::missed`](crate::Correlator::missed)).
    Missed,
    /// The capture at the other point did not run yet, or no longer, when this one may have passed.
    /// The correlator does not know when captures run: its user does
    /// ([`Outcome::where_captured`]).
    NotCaptured,
}

impl Outcome {
    /// The outcome of a packet that only A saw: nothing accounts for it, or `reason` does.
    pub(crate) fn not_at_b(
        sent: Observation,
        sequence: u64,
        reason: Option<UndeterminedReason>,
    ) -> Self {
        match reason {
            None => Self::Lost { sent, sequence },
            Some(reason) => {
                let sequence = Some(sequence);
                Self::Undetermined { point: Point::A, observation: sent, sequence, reason }
            }
        }
    }

    /// The outcome of a packet that only B saw: nothing accounts for it, or `reason` does.
    pub(crate) fn not_at_a(received: Observation, reason: Option<UndeterminedReason>) -> Self {
        match reason {
            None => Self::Unexpected { received },
            Some(reason) => Self::Undetermined {
                point: Point::B,
                observation: received,
                sequence: None,
                reason,
            },
        }
    }

    /// The outcome, or that it cannot be known, because the packet may have passed the other point while
    /// nothing was captured there.
    ///
    /// `rule` is what it was matched by. `covers` says of a point whether all that passed there from one
    /// time until another was captured, both included.
    #[must_use]
    pub fn where_captured(
        self,
        rule: &Config,
        covers: impl FnOnce(Point, Time<Utc>, Time<Utc>) -> bool,
    ) -> Self {
        let not_captured = |covered: bool| (!covered).then_some(UndeterminedReason::NotCaptured);
        match self {
            Self::Lost { sent, sequence } => {
                let left = sent.stamp.utc;
                let covered = covers(Point::B, left - rule.skew, left + rule.timeout);
                Self::not_at_b(sent, sequence, not_captured(covered))
            }
            Self::Unexpected { received } => {
                let came = received.stamp.utc;
                let covered = covers(Point::A, came - rule.timeout, came + rule.skew);
                Self::not_at_a(received, not_captured(covered))
            }
            decided => decided,
        }
    }

    /// The flow of the packet.
    #[must_use]
    pub fn flow(&self) -> FlowKey {
        match self {
            Self::Matched { sent, .. }
            | Self::Lost { sent, .. }
            | Self::Duplicated { sent, .. }
            | Self::Identical { sent } => sent.flow,
            Self::Unexpected { received } => received.flow,
            Self::Undetermined { observation, .. } => observation.flow,
        }
    }
}
