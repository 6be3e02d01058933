//! Numbers of packets of flows.

use std::collections::HashMap;

use wirestamp_packet::FlowKey;

/// Max flows with a count of their own.
const MAX_FLOWS: usize = 65_536;

/// A number of packets for each flow. Memory is bounded: packets of further flows are in the total only.
#[derive(Clone, Debug, Default)]
pub struct FlowCounts {
    flows: HashMap<FlowKey, u64>,
    total: u64,
}

impl FlowCounts {
    /// Adds packets of a flow.
    pub fn add(&mut self, flow: FlowKey, packets: u64) {
        if packets == 0 {
            return;
        }
        self.total += packets;
        if self.flows.len() < MAX_FLOWS || self.flows.contains_key(&flow) {
            *self.flows.entry(flow).or_default() += packets;
        }
    }

    /// Packets of a flow.
    #[must_use]
    pub fn of(&self, flow: &FlowKey) -> u64 {
        self.flows.get(flow).copied().unwrap_or_default()
    }

    /// Packets of all flows.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The flows with packets, unordered.
    pub fn flows(&self) -> impl Iterator<Item = &FlowKey> {
        self.flows.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_beyond_the_limit_are_in_the_total() {
        let mut counts = FlowCounts::default();
        let flow = |port: u32| FlowKey {
            source: ([10, 0, 0, 1], u16::try_from(port % 65_536).unwrap()).into(),
            destination: ([10, 0, 0, 2], u16::try_from(port / 65_536).unwrap()).into(),
            protocol: 17,
        };
        (0..65_537).for_each(|port| counts.add(flow(port), 1));
        counts.add(flow(0), 2);
        counts.add(flow(70_000), 0);
        assert_eq!([0, 1, 65_536, 70_000].map(|port| counts.of(&flow(port))), [3, 1, 0, 0]);
        assert_eq!((counts.total(), counts.flows().count()), (65_539, MAX_FLOWS));
    }
}
