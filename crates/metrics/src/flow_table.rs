//! Quality of each flow.

use std::collections::HashMap;

use wirestamp_packet::FlowKey;

use crate::{Outcome, Quality};

/// A [`Quality`] per flow.
///
/// Memory is bounded by a limit on the number of flows: the first `limit` flows have a quality each, and later ones
/// share [`others`](Self::others). A flow of few packets takes some kilobytes, one of many up to a few hundred,
/// depending on the spread of its delays.
#[derive(Clone, Debug)]
pub struct FlowTable {
    limit: usize,
    /// Quality over the flows that came after the table was full.
    pub others: Quality,
    flows: HashMap<FlowKey, Quality>,
}

impl FlowTable {
    /// A table for at most `limit` flows.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, others: Quality::new(), flows: HashMap::new() }
    }

    /// Records an outcome in its flow.
    pub fn record(&mut self, outcome: &Outcome) {
        let flow = outcome.flow();
        if let Some(quality) = self.flows.get_mut(&flow) {
            quality.record(outcome);
        } else if self.flows.len() < self.limit {
            self.flows.entry(flow).or_insert_with(Quality::of_flow).record(outcome);
        } else {
            self.others.record(outcome);
        }
    }

    /// Quality over all flows. Its [`SequenceMetrics`](crate::SequenceMetrics) cover the flows in the table.
    #[must_use]
    pub fn total(&self) -> Quality {
        let mut total = self.others.clone();
        self.flows.values().for_each(|flow| total.merge(flow));
        total
    }

    /// Flows in the table with their qualities, in the order of the keys.
    #[must_use]
    pub fn flows(&self) -> Vec<(FlowKey, &Quality)> {
        let mut flows: Vec<_> = self.flows.iter().map(|(flow, quality)| (*flow, quality)).collect();
        flows.sort_by_key(|(flow, _)| *flow);
        flows
    }
}
