//! Outcome of a packet between two points.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::FlowKey;

use crate::{Config, Observation, Point};

/// Outcome of an observation.
///
/// Every observation at A has exactly one of the outcomes [`Matched`](Self::Matched), [`Lost`](Self::Lost) and
/// [`Undetermined`](Self::Undetermined); every observation at B exactly one of [`Matched`](Self::Matched),
/// [`Duplicated`](Self::Duplicated), [`Unexpected`](Self::Unexpected) and [`Undetermined`](Self::Undetermined).
/// [`Identical`](Self::Identical) is reported in addition to these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Observed at both points.
    Matched {
        /// The packet at A.
        sent: Observation,
        /// Its first arrival at B.
        received: Observation,
        /// Sequence number in its flow at A, from 0, as used by RFC 4737 and RFC 3357. It increases by one per packet,
        /// and by more only where the correlator removed the flow during a pause for lack of memory.
        sequence: u64,
        /// One-way delay (RFC 7679 section 3.4): the time from A to B. Negative where the clocks disagree by more than
        /// the true delay; reported unchanged, because it shows the clock error.
        delay: Span,
        /// Bound of the clock error in `delay`.
        error: Span,
        /// Whether the packet is reordered (Type-P-Reordered, RFC 4737 section 3.3): a packet of its flow that left A
        /// later arrived at B before. Duplicates are ignored.
        reordered: bool,
        /// Delay of this packet minus that of the previous packet of its flow at A: the delay variation of the pair
        /// (RFC 3393 section 2.4, with consecutive packets as the selection function, first example of section 2.5).
        /// `None` while the previous one is unmatched; if it is matched later, the pair is reported there as
        /// `until_next`.
        since_previous: Option<Span>,
        /// Delay of the next packet of the flow at A minus that of this one, if it was matched before: the other half
        /// of `since_previous`. Each pair is reported once.
        until_next: Option<Span>,
    },
    /// Observed at A and not at B within the timeout (RFC 7680 section 2.4). Includes packets in flight at the end of
    /// the observation: let B observe for the timeout longer than A.
    ///
    /// For each flow, losses and [`Undetermined`](Self::Undetermined) packets are reported in the order of departure;
    /// those that a capture may have missed are reported later.
    Lost {
        /// The packet at A.
        sent: Observation,
        /// Sequence number in its flow, as in [`Matched`](Self::Matched).
        sequence: u64,
    },
    /// Duplicate at B of a packet already matched (RFC 5560 section 3).
    Duplicated {
        /// The packet at A.
        sent: Observation,
        /// The duplicate at B.
        received: Observation,
    },
    /// Observed at B only: it did not pass A, was changed on the way, or took longer than the timeout.
    Unexpected {
        /// The packet at B.
        received: Observation,
    },
    /// Undetermined: counted neither as lost nor as unexpected.
    Undetermined {
        /// Point of the observation.
        point: Point,
        /// The packet.
        observation: Observation,
        /// Sequence number in its flow, if observed at A.
        sequence: Option<u64>,
        /// Reason.
        reason: UndeterminedReason,
    },
    /// Packet at A that is indistinguishable from one that left A less than the timeout before. Arrivals at B are
    /// matched in the order of departure, so that the counts are correct; but if one is lost, the delays of the others
    /// may be those of their twins.
    Identical {
        /// The later of the two.
        sent: Observation,
    },
}

/// Reason for an undetermined outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UndeterminedReason {
    /// The correlator had no memory left for it, or for its possible counterpart.
    Memory,
    /// The capture at the other point lost packets when this one may have passed
    /// ([`Correlator::missed`](crate::Correlator::missed)).
    Missed,
    /// The capture at the other point was not running when this one may have passed. Set by the user of the correlator
    /// ([`Outcome::where_captured`]).
    NotCaptured,
}

impl Outcome {
    /// Outcome of a packet observed only at A: lost, or undetermined for `reason`.
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

    /// Outcome of a packet observed only at B: unexpected, or undetermined for `reason`.
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

    /// The outcome, or undetermined if the packet may have passed the other point while nothing was captured there.
    ///
    /// `rule` is the configuration of the correlator. `covers` returns whether all packets at a point from one time
    /// until another, both inclusive, were captured.
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

    /// Flow of the packet.
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
