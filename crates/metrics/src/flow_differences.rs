//! Packets of TCP or UDP that only one of two points observed.

use std::collections::HashMap;

use wirestamp_packet::FlowKey;

use crate::Outcome;

/// Max flows with counts of their own; further ones share theirs.
const MAX_FLOWS: usize = 65_536;

/// Lost and unexpected packets of each flow of a protocol.
///
/// If a flow has both, a device or kernel may have merged or divided its packets, so that B observed others instead of
/// those of A.
#[derive(Clone, Debug)]
pub struct FlowDifferences {
    /// IP protocol number.
    protocol: u8,
    flows: HashMap<FlowKey, Differences>,
    others: Differences,
}

/// Numbers of packets that one point observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// At A only.
    pub lost: u64,
    /// At B only.
    pub unexpected: u64,
}

impl Differences {
    /// Whether packets are missing at B, and others are there.
    #[must_use]
    pub const fn are_both(self) -> bool {
        self.lost > 0 && self.unexpected > 0
    }
}

impl FlowDifferences {
    /// Differences of the flows with this IP protocol number.
    pub(crate) fn of_protocol(protocol: u8) -> Self {
        Self { protocol, flows: HashMap::new(), others: Differences::default() }
    }

    /// Records an outcome.
    pub(crate) fn record(&mut self, outcome: &Outcome) {
        if let Some(count) = self.count(outcome) {
            *count += 1;
        }
    }

    /// Takes back an outcome, because the other point may not have captured at that time.
    pub(crate) fn take_back(&mut self, outcome: &Outcome) {
        if let Some(count) = self.count(outcome) {
            *count = count.saturating_sub(1);
        }
    }

    /// The count of a lost or unexpected packet; none for other outcomes.
    fn count(&mut self, outcome: &Outcome) -> Option<&mut u64> {
        let flow = outcome.flow();
        let is_lost = match outcome {
            Outcome::Lost { .. } => true,
            Outcome::Unexpected { .. } => false,
            _ => return None,
        };
        if flow.protocol != self.protocol {
            return None;
        }
        let has_room = self.flows.len() < MAX_FLOWS || self.flows.contains_key(&flow);
        let of = if has_room { self.flows.entry(flow).or_default() } else { &mut self.others };
        Some(if is_lost { &mut of.lost } else { &mut of.unexpected })
    }

    /// The packets of a flow.
    #[must_use]
    pub fn of(&self, flow: &FlowKey) -> Differences {
        self.flows.get(flow).copied().unwrap_or_default()
    }

    /// Whether any flow has packets of both kinds.
    #[must_use]
    pub fn are_both_in_any(&self) -> bool {
        self.others.are_both() || self.flows.values().any(|of| of.are_both())
    }

    /// The packets of all flows.
    #[must_use]
    pub fn total(&self) -> Differences {
        let Self { flows, others, .. } = self;
        flows.values().fold(*others, |sum, of| Differences {
            lost: sum.lost + of.lost,
            unexpected: sum.unexpected + of.unexpected,
        })
    }
}
