//! Packets that a point did not capture although a later point observed them.

use std::collections::HashMap;

use wirestamp_metrics::{Outcome, Point, UndeterminedReason};
use wirestamp_session::ChainPacket;

/// Max number of stamps. The packets of further ones count as lost.
const MAX_STAMPS: usize = 1 << 20;

/// Packets that the second of two points did not observe, but a later point did: their number by their stamp at the
/// first point, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservedLater(HashMap<i64, u32>);

impl ObservedLater {
    /// Adds a packet if it belongs to these on the hop with this number, from 0.
    pub(super) fn add(&mut self, hop: usize, packet: &ChainPacket) {
        let stamps = &packet.stamps;
        let (Some(left), None) = (stamps[hop], stamps[hop + 1]) else { return };
        let is_observed_later = stamps[hop + 2..].iter().any(Option::is_some);
        let time = left.time.as_nanos();
        if is_observed_later && (self.0.len() < MAX_STAMPS || self.0.contains_key(&time)) {
            *self.0.entry(time).or_default() += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The outcome between the two points: undetermined instead of lost, once for each of these packets.
    pub(super) fn correct(&mut self, outcome: Outcome) -> Outcome {
        let Outcome::Lost { sent, sequence } = outcome else { return outcome };
        let Some(packets) = self.0.get_mut(&sent.stamp.utc.as_nanos()) else { return outcome };
        let Some(rest) = packets.checked_sub(1) else { return outcome };
        *packets = rest;
        Outcome::Undetermined {
            point: Point::A,
            observation: sent,
            sequence: Some(sequence),
            reason: UndeterminedReason::NotCaptured,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
    use wirestamp_metrics::Observation;
    use wirestamp_packet::{FlowKey, PacketId};
    use wirestamp_session::{Fate, PointStamp};

    use super::*;

    fn flow() -> FlowKey {
        let end = |host| SocketAddr::from(([10, 0, 0, host], 5000));
        FlowKey { source: end(1), destination: end(2), protocol: 17 }
    }

    /// A packet with these stamps.
    fn packet(stamps: &[Option<i64>]) -> ChainPacket {
        let stamp = |at| PointStamp { time: Time::from_nanos(at), error: None };
        ChainPacket {
            flow: flow(),
            length: 60,
            sequence: Some(0),
            stamps: stamps.iter().map(|at| at.map(stamp)).collect(),
            hops: vec![None; stamps.len() - 1],
            whole: None,
            fate: Fate::Complete,
        }
    }

    fn lost(at: i64) -> Outcome {
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        let stamp = Stamp { raw, utc: Time::from_nanos(at), error: Span::ZERO };
        let sent = Observation { id: PacketId(1), flow: flow(), length: 60, stamp };
        Outcome::Lost { sent, sequence: 7 }
    }

    #[test]
    fn packets_observed_later_are_not_lost() {
        let mut hops = [ObservedLater::default(), ObservedLater::default()];
        for stamps in [
            [Some(10), Some(20), Some(30)],
            [Some(11), None, Some(31)],
            [Some(11), None, Some(32)],
            [Some(12), None, None],
            [Some(13), Some(23), None],
            [None, None, Some(34)],
        ] {
            for (number, hop) in hops.iter_mut().enumerate() {
                hop.add(number, &packet(&stamps));
            }
        }
        let [mut first, second] = hops;
        assert!(second.is_empty());
        let is_lost = |at| matches!(first.correct(lost(at)), Outcome::Lost { .. });
        // Two packets of one stamp, and a third one that is lost.
        assert_eq!([10, 11, 11, 11, 12, 13].map(is_lost), [true, false, false, true, true, true]);
    }
}
