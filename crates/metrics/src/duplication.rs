//! Duplicate packets: RFC 5560.

use std::collections::VecDeque;

use wirestamp_packet::PacketId;

use crate::{CountDistribution, Observation};

/// Max duplicated packets that may get further duplicates; the oldest is closed first.
const MAX_OPEN: usize = 64;

/// Packets of a stream that arrived more than once (RFC 5560 section 5), and the number of duplicates of each.
///
/// Memory is constant. A packet whose duplicates arrive with those of 64 others between them counts as two.
#[derive(Clone, Debug, Default)]
pub struct Duplication {
    /// Open packets: identity, and duplicates so far.
    open: VecDeque<(PacketId, u64)>,
    /// Duplicates of each closed packet.
    duplicates: CountDistribution,
}

impl Duplication {
    /// Records a duplicate of `sent`.
    pub fn record(&mut self, sent: &Observation) {
        if let Some((_, duplicates)) = self.open.iter_mut().find(|(id, _)| *id == sent.id) {
            *duplicates += 1;
            return;
        }
        if self.open.len() == MAX_OPEN
            && let Some((_, duplicates)) = self.open.pop_front()
        {
            self.duplicates.record(duplicates);
        }
        self.open.push_back((sent.id, 1));
    }

    /// Adds the figures of another stream.
    pub fn merge(&mut self, other: &Self) {
        self.duplicates.merge(&other.duplicates());
    }

    /// Number of duplicates per duplicated packet. Its count is the number of packets that arrived more than once;
    /// over all packets that arrived, this is Type-P-one-way-replicated-packet-rate (section 5.2).
    #[must_use]
    pub fn duplicates(&self) -> CountDistribution {
        let mut duplicates = self.duplicates.clone();
        self.open.iter().for_each(|(_, open)| duplicates.record(*open));
        duplicates
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

    fn duplicates(of: impl IntoIterator<Item = u64>) -> Duplication {
        let mut duplication = Duplication::default();
        of.into_iter().for_each(|id| duplication.record(&packet(id)));
        duplication
    }

    #[test]
    fn duplicates_are_counted_by_packet() {
        let mut found = duplicates([1, 2, 1, 1]);
        found.merge(&duplicates([9]));
        let summary = found.duplicates().summary().expect("duplicates");
        assert_eq!((summary.count, summary.min, summary.max), (3, 1, 3));
    }

    #[test]
    fn memory_is_bounded() {
        let found = duplicates((0..1000).flat_map(|id| [id, id]));
        assert_eq!(found.open.len(), MAX_OPEN);
        let summary = found.duplicates().summary().expect("duplicates");
        assert_eq!((summary.count, summary.min, summary.max), (1000, 2, 2));
    }
}
