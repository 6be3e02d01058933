//! A packet at several points in a row.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Observation, UndeterminedReason};
use wirestamp_packet::FlowKey;

/// A packet at the points of a row of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainPacket {
    /// Flow at the first point that observed the packet.
    pub flow: FlowKey,
    /// Length on the wire in bytes, at that point.
    pub length: u32,
    /// Sequence number in its flow at that point; none if it is the last point, and for duplicates.
    pub sequence: Option<u64>,
    /// Stamp at each point, as in its file; none if it did not observe the packet.
    pub stamps: Vec<Option<PointStamp>>,
    /// Delay from each point to the next; none unless both observed the packet.
    pub hops: Vec<Option<HopDelay>>,
    /// Delay from the first point to the last; none unless both observed the packet.
    pub whole: Option<HopDelay>,
    /// Outcome on the complete path.
    pub fate: Fate,
}

/// A stamp with its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointStamp {
    /// The stamp in the file.
    pub time: Time<Utc>,
    /// Max error against the system clock of the point; none if the file does not have it.
    pub error: Option<Span>,
}

/// Delay between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopDelay {
    /// One-way delay, with the correction of the clocks.
    pub delay: Span,
    /// Max error because of the clocks; none if it is unknown, as between two machines.
    pub error: Option<Span>,
    /// Whether the packet is reordered (RFC 4737 section 3.3).
    pub reordered: bool,
}

/// Outcome of a packet on the complete path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Observed at the first and at the last point. Points between may not have observed it.
    Complete,
    /// Lost between point number `hop`, from 0, and the next one. `flow` is its flow at the first of these.
    Lost {
        /// Number of the hop, from 0.
        hop: usize,
        /// Flow at the point before the hop.
        flow: FlowKey,
    },
    /// Duplicate at the first point that observed it.
    Duplicated,
    /// Not observed at the points before the first one that observed it.
    Unexpected,
    /// Undetermined, because of a capture or for lack of memory.
    Undetermined(UndeterminedReason),
}

/// A packet at one point.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) flow: FlowKey,
    pub(super) length: u32,
    pub(super) stamp: PointStamp,
    /// Number of the system clock of the stamp.
    clock: Option<usize>,
    /// Sequence number in its flow, once the outcome on the way to the next point is known.
    pub(super) sequence: Option<u64>,
    /// Delay from the point before.
    pub(super) hop: Option<HopDelay>,
    /// Why the point before did not observe it.
    pub(super) begin: Option<Fate>,
    /// Why the next point did not observe it.
    pub(super) end: Option<Fate>,
}

impl Place {
    pub(super) fn new(
        observation: &Observation,
        error: Option<Span>,
        clock: Option<usize>,
    ) -> Self {
        let Observation { flow, length, stamp, .. } = *observation;
        let stamp = PointStamp { time: stamp.utc, error };
        Self { flow, length, stamp, clock, sequence: None, hop: None, begin: None, end: None }
    }

    /// Max error of the delay to another place; none if the difference of their clocks is unknown.
    pub(super) fn error_to(&self, other: &Self) -> Option<Span> {
        let is_one_clock = self.clock.is_some() && self.clock == other.clock;
        Some(self.stamp.error? + other.stamp.error?).filter(|_| is_one_clock)
    }
}
