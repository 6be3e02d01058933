//! Quality of each flow.

use std::collections::HashMap;

use wirestamp_packet::FlowKey;

use crate::{FlowDifferences, JitterBuffer, Outcome, Quality};

/// IP protocol numbers (IANA).
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A [`Quality`] per flow.
///
/// Memory is bounded by a limit on the number of flows: the first `limit` flows have a quality each, and later ones
/// share [`others`](Self::others). A flow of few packets takes some kilobytes, one of many up to a few hundred,
/// depending on the spread of its delays.
#[derive(Clone, Debug)]
pub struct FlowTable {
    limit: usize,
    buffer: JitterBuffer,
    /// Quality over the flows that came after the table was full.
    pub others: Quality,
    flows: HashMap<FlowKey, Quality>,
    /// Segments of TCP that only one point observed.
    tcp: FlowDifferences,
    /// Datagrams of UDP that only one point observed.
    udp: FlowDifferences,
}

impl FlowTable {
    /// A table for at most `limit` flows.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let buffer = JitterBuffer::default();
        let others = Quality::new();
        let [tcp, udp] = [TCP, UDP].map(FlowDifferences::of_protocol);
        Self { limit, buffer, others, flows: HashMap::new(), tcp, udp }
    }

    /// Rates voice for receivers with this de-jitter buffer.
    #[must_use]
    pub fn with_jitter_buffer(self, buffer: JitterBuffer) -> Self {
        Self { buffer, ..self }
    }

    /// The de-jitter buffer for which voice is rated.
    #[must_use]
    pub const fn jitter_buffer(&self) -> JitterBuffer {
        self.buffer
    }

    /// Records an outcome in its flow.
    pub fn record(&mut self, outcome: &Outcome) {
        self.tcp.record(outcome);
        self.udp.record(outcome);
        let flow = outcome.flow();
        if let Some(quality) = self.flows.get_mut(&flow) {
            quality.record(outcome);
        } else if self.flows.len() < self.limit {
            let new = || Quality::of_flow().with_jitter_buffer(self.buffer);
            self.flows.entry(flow).or_insert_with(new).record(outcome);
        } else {
            self.others.record(outcome);
        }
    }

    /// States that the other point may not have captured at the time of a recorded outcome.
    pub fn note_outside_capture(&mut self, outcome: &Outcome) {
        self.tcp.take_back(outcome);
        self.udp.take_back(outcome);
    }

    /// Segments of TCP that only one point observed while the other one captured.
    #[must_use]
    pub const fn tcp_differences(&self) -> &FlowDifferences {
        &self.tcp
    }

    /// Datagrams of UDP that only one point observed while the other one captured.
    #[must_use]
    pub const fn udp_differences(&self) -> &FlowDifferences {
        &self.udp
    }

    /// Quality over all flows. Its [`SequenceMetrics`](crate::SequenceMetrics) cover the flows in the table.
    #[must_use]
    pub fn total(&self) -> Quality {
        let mut total = self.others.clone();
        self.flows.values().for_each(|flow| total.merge(flow));
        total
    }

    /// Quality of a flow; none if it is not in the table.
    #[must_use]
    pub fn get(&self, flow: &FlowKey) -> Option<&Quality> {
        self.flows.get(flow)
    }

    /// Flows in the table with their qualities, in the order of the keys.
    #[must_use]
    pub fn flows(&self) -> Vec<(FlowKey, &Quality)> {
        let mut flows: Vec<_> = self.flows.iter().map(|(flow, quality)| (*flow, quality)).collect();
        flows.sort_by_key(|(flow, _)| *flow);
        flows
    }
}
