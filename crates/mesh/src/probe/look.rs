//! What looks at the packets of an interface for a point of a task.

use std::cell::OnceCell;

use crate::protocol::MachineClock;
use wirestamp_capture::CapturedPacket;
use wirestamp_clock::{Span, Stamp, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation, Sampling};
use wirestamp_packet::{LinkType, Packet};

use super::flows::Flows;
use super::tally::Tally;
use super::watch::Watch;
use crate::spool::Batch;

/// What a point looks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    /// Packets that another point may see, too: all, or a sample.
    Observe(Sampling),
    /// How many packets pass in intervals of this length.
    Count(Span),
    /// How each flow fares.
    Follow,
}

/// Somebody who looks at packets, and tells of them in batches.
pub(super) trait Look: Send {
    /// Looks at a packet.
    fn packet(&mut self, packet: &Passing<'_>);

    /// Takes note of what the capture lost.
    fn missed(&mut self, missed: CaptureLoss);

    /// What passed before a time, by which the capture is complete, if that is enough for a batch.
    fn batches(&mut self, until: Time<Utc>, clock: MachineClock) -> Vec<Batch>;

    /// The last batches, of what passed before a time: nobody looks from then on.
    fn end(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> Vec<Batch>;

    /// The same, where nobody looks again before the time that is returned.
    fn close(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> (Vec<Batch>, Time<Utc>);
}

impl Purpose {
    /// Somebody who looks from a time on.
    pub(super) fn begin(&self, begin: Time<Utc>) -> Box<dyn Look> {
        match self {
            Self::Observe(sampling) => Box::new(Watch::new(sampling.clone(), begin)),
            Self::Count(interval) => Box::new(Tally::new(*interval, begin)),
            Self::Follow => Box::new(Flows::new(begin)),
        }
    }

    /// Whether another point waits for what this one has to tell.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self, Self::Observe(_))
    }
}

/// A packet that passes. What one of those who look has to know of it, the others need not find out again.
pub(super) struct Passing<'a> {
    pub(super) frame: &'a [u8],
    /// Its bytes on the wire.
    pub(super) length: u32,
    pub(super) stamp: Stamp,
    packet: OnceCell<Option<Packet<'a>>>,
    observation: OnceCell<Option<Observation>>,
}

impl<'a> Passing<'a> {
    pub(super) fn new(captured: &CapturedPacket<'a>) -> Self {
        let CapturedPacket { bytes: frame, length, stamp, .. } = *captured;
        let (packet, observation) = (OnceCell::new(), OnceCell::new());
        Self { frame, length, stamp, packet, observation }
    }

    /// One that was observed elsewhere.
    pub(super) fn observed(observation: Observation) -> Self {
        let Observation { length, stamp, .. } = observation;
        let (packet, observation) = (OnceCell::from(None), OnceCell::from(Some(observation)));
        Self { frame: &[], length, stamp, packet, observation }
    }

    /// None if it is none of IP.
    pub(super) fn packet(&self) -> Option<&Packet<'a>> {
        let parse = || Packet::parse(LinkType::Ethernet, self.frame).ok();
        self.packet.get_or_init(parse).as_ref()
    }

    /// None if it cannot be recognised elsewhere.
    pub(super) fn observation(&self) -> Option<&Observation> {
        let observe = || Observation::of(self.packet()?, self.length, self.stamp);
        self.observation.get_or_init(observe).as_ref()
    }
}
