//! One direction of a test with numbered packets.

use std::collections::BTreeMap;

use wirestamp_clock::{Span, Stamp};
use wirestamp_packet::{FlowKey, PacketId};

use crate::{Observation, Outcome, Point, Quality, UndeterminedReason};

/// Max packets that a packet may overtake for the delay variation to be known.
const WINDOW: usize = 1024;

/// A packet at its sender: number, stamp, bytes on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) number: u64,
    pub(super) stamp: Stamp,
    pub(super) length: u32,
}

/// Outcomes of the packets of one direction. Packets are identified by their numbers, so no correlator is needed, and
/// clocks days apart are allowed.
pub(super) struct Direction {
    flow: FlowKey,
    pub(super) quality: Quality,
    /// NextExp of RFC 4737 section 3.3.
    expected: u64,
    /// Delays of the last packets received.
    delays: BTreeMap<u64, Span>,
    /// Negative delays beyond the stated clock errors.
    pub(super) impossible: u64,
}

impl Direction {
    pub(super) fn new(flow: FlowKey) -> Self {
        Self {
            flow,
            quality: Quality::of_flow(),
            expected: 0,
            delays: BTreeMap::new(),
            impossible: 0,
        }
    }

    fn observation(&self, number: u64, stamp: Stamp, length: u32) -> Observation {
        Observation { id: PacketId(number), flow: self.flow, length, stamp }
    }

    fn sent(&self, departure: Departure) -> Observation {
        self.observation(departure.number, departure.stamp, departure.length)
    }

    /// Records the first arrival of a packet, in the order of arrival.
    pub(super) fn record_arrival(&mut self, departure: Departure, received: Stamp) {
        let Departure { number, stamp, length } = departure;
        let (delay, error) = (received.utc - stamp.utc, stamp.error + received.error);
        self.impossible += u64::from(delay + error < Span::ZERO);
        let before = number.checked_sub(1).and_then(|before| self.delays.get(&before));
        let after = self.delays.get(&(number + 1));
        let outcome = Outcome::Matched {
            sent: self.sent(departure),
            received: self.observation(number, received, length),
            sequence: number,
            delay,
            error,
            reordered: number < self.expected,
            since_previous: before.map(|&before| delay - before),
            until_next: after.map(|&after| after - delay),
        };
        self.quality.record(&outcome);
        self.expected = self.expected.max(number + 1);
        self.delays.insert(number, delay);
        if self.delays.len() > WINDOW {
            self.delays.pop_first();
        }
    }

    /// Records a duplicate of a packet.
    pub(super) fn record_duplicate(&mut self, departure: Departure, received: Stamp) {
        let received = self.observation(departure.number, received, departure.length);
        self.quality.record(&Outcome::Duplicated { sent: self.sent(departure), received });
    }

    /// Records a lost packet, in the order of sending.
    pub(super) fn record_loss(&mut self, departure: Departure) {
        let sent = self.sent(departure);
        self.quality.record(&Outcome::Lost { sent, sequence: departure.number });
    }

    /// Records a packet of which the arrival or its time is unknown.
    pub(super) fn record_undetermined(&mut self, departure: Departure, reason: UndeterminedReason) {
        self.quality.record(&Outcome::Undetermined {
            point: Point::A,
            observation: self.sent(departure),
            sequence: Some(departure.number),
            reason,
        });
    }
}
