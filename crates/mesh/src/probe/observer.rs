//! Observers: consumers of the packets at a point of a task.

use std::cell::OnceCell;

use crate::protocol::MachineClock;
use wirestamp_capture::CapturedPacket;
use wirestamp_clock::{Stamp, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation};
use wirestamp_packet::{Encapsulation, LinkType, Packet};

use super::answer_log::AnswerEvent;
use crate::spool::Batch;

/// Consumer of packets that produces batches for the collector.
pub(super) trait Observer: Send {
    /// Processes a packet.
    fn packet(&mut self, packet: &ObservedPacket<'_>);

    /// Records packets that the capture missed.
    fn missed(&mut self, missed: CaptureLoss);

    /// Records news of the answers of an active test.
    fn answers(&mut self, _: AnswerEvent) {}

    /// Batches of the packets before `until`, if there are enough for a batch. The capture is complete up to that time.
    fn batches(&mut self, until: Time<Utc>, clock: MachineClock) -> Vec<Batch>;

    /// The last batches, up to `until`, when the capture ends.
    fn end(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> Vec<Batch>;

    /// The last batches when the point is no longer observed, and the earliest time at which it may be observed again.
    fn close(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> (Vec<Batch>, Time<Utc>);
}

/// A packet with known flow and identity. Both are computed at most once, for all observers.
pub(super) struct ObservedPacket<'a> {
    pub(super) frame: &'a [u8],
    link: LinkType,
    /// Length on the wire, in bytes.
    pub(super) length: u32,
    pub(super) stamp: Stamp,
    packet: OnceCell<Option<Packet<'a>>>,
    observation: OnceCell<Option<Observation>>,
    shard_hash: OnceCell<Option<u64>>,
}

impl<'a> ObservedPacket<'a> {
    pub(super) fn new(captured: &CapturedPacket<'a>, link: LinkType) -> Self {
        let CapturedPacket { bytes: frame, length, stamp, .. } = *captured;
        let (packet, observation) = (OnceCell::new(), OnceCell::new());
        let shard_hash = OnceCell::new();
        Self { frame, link, length, stamp, packet, observation, shard_hash }
    }

    /// A packet that was observed elsewhere, by a test end.
    pub(super) fn observed(observation: Observation) -> Self {
        let Observation { length, stamp, .. } = observation;
        let (packet, observation) = (OnceCell::from(None), OnceCell::from(Some(observation)));
        let shard_hash = OnceCell::new();
        Self { frame: &[], link: LinkType::Ip, length, stamp, packet, observation, shard_hash }
    }

    /// What carried the packet, if anything.
    pub(super) fn encapsulation(&self) -> Option<Encapsulation> {
        Encapsulation::of(self.link, self.frame, false)
    }

    /// The parsed packet; none if it is not IP.
    pub(super) fn packet(&self) -> Option<&Packet<'a>> {
        let parse = || {
            let mut packet = Packet::parse(self.link, self.frame).ok()?;
            packet.apply_frame_length(self.frame.len(), self.length);
            Some(packet)
        };
        self.packet.get_or_init(parse).as_ref()
    }

    /// Hash of the flow, which decides the shard (`FlowKey::shard_hash`); none if it is not IP.
    pub(super) fn shard_hash(&self) -> Option<u64> {
        let hash = || Some(self.packet()?.flow().shard_hash());
        *self.shard_hash.get_or_init(hash)
    }

    /// The observation; none if the packet cannot be matched at another point.
    pub(super) fn observation(&self) -> Option<&Observation> {
        let observe = || Observation::of(self.packet()?, self.length, self.stamp);
        self.observation.get_or_init(observe).as_ref()
    }
}
