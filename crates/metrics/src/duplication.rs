//! Copies of packets: RFC 5560.

use std::collections::VecDeque;

use wirestamp_packet::PacketId;

use crate::{CountDistribution, Observation};

/// So many replicated packets may have copies that are still to come; that of which the first copy
/// came longest ago is closed first.
const OPEN: usize = 64;

/// How often packets of a stream arrived more than once (RFC 5560 section 5), and how many copies
/// there were of each.
///
/// Memory is constant. A packet whose copies come with those of 64 others between them counts as two.
#[derive(Clone, Debug, Default)]
pub struct Duplication {
    /// Packets that may get more copies: the identity, and copies beyond the first.
    open: VecDeque<(PacketId, u64)>,
    /// Copies beyond the first, of each replicated packet that is closed.
    copies: CountDistribution,
}

impl Duplication {
    /// Takes a copy of `sent` beyond the first.
    pub fn record(&mut self, sent: &Observation) {
        if let Some((_, copies)) = self.open.iter_mut().find(|(id, _)| *id == sent.id) {
            *copies += 1;
            return;
        }
        if self.open.len() == OPEN
            && let Some((_, copies)) = self.open.pop_front()
        {
            self.copies.record(copies);
        }
        self.open.push_back((sent.id, 1));
    }

    /// Adds the figures of another stream.
    pub fn merge(&mut self, other: &Self) {
        self.copies.merge(&other.copies());
    }

    /// Copies beyond the first of each replicated packet. Its count is that of the packets that arrived
    /// more than once: over the packets that arrived at all, that is
    /// Type-P-one-way-replicated-packet-rate (section 5.2).
    #[must_use]
    pub fn copies(&self) -> CountDistribution {
        let mut copies = self.copies.clone();
        self.open.iter().for_each(|(_, open)| copies.record(*open));
        copies
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
    use wirestamp_packet::FlowKey;

    use super::*;

    fn packet(id: u64) -> Observation {
        let stamp = Stamp {
            raw: RawStamp { domain: Domain::Counter, value: 0 },
            utc: Time::from_nanos(0),
            error: Span::ZERO,
        };
        let address = ([10, 77, 1, 1], 1).into();
        let flow = FlowKey { source: address, destination: address, protocol: 17 };
        Observation { id: PacketId(id), flow, length: 60, stamp }
    }

    fn copies(of: impl IntoIterator<Item = u64>) -> Duplication {
        let mut duplication = Duplication::default();
        of.into_iter().for_each(|id| duplication.record(&packet(id)));
        duplication
    }

    #[test]
    fn copies_are_counted_by_packet() {
        let mut found = copies([1, 2, 1, 1]);
        found.merge(&copies([9]));
        let summary = found.copies().summary().expect("copies");
        assert_eq!((summary.count, summary.min, summary.max), (3, 1, 3));
    }

    #[test]
    fn many_replicated_packets_take_no_more_memory() {
        let found = copies((0..1000).flat_map(|id| [id, id]));
        assert_eq!(found.open.len(), OPEN);
        let summary = found.copies().summary().expect("copies");
        assert_eq!((summary.count, summary.min, summary.max), (1000, 2, 2));
    }
}
