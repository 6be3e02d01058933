//! Detects which flows changed since the last report.

use std::collections::HashMap;

use serde_json::json;
use wirestamp_metrics::flow::FlowReport;
use wirestamp_packet::FlowKey;

/// The last report of each flow: of its RTP streams and of its other packets.
#[derive(Default)]
pub(super) struct ReportedFlows(HashMap<FlowKey, Vec<Part>>);

/// A flow to report.
pub(super) struct FlowChange {
    pub(super) last_ns: i64,
    pub(super) packets: u64,
    /// The report as JSON.
    pub(super) report: String,
}

/// The fields of a report that identify it or show a change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    ssrc: Option<u32>,
    first_ns: i64,
    last_ns: i64,
    packets: u64,
    lost: Option<u64>,
    capture_missed: Option<u64>,
}

impl ReportedFlows {
    /// Stores the reports and returns the changed ones, ordered by the time of their last packet.
    ///
    /// The first packets of an RTP stream count as a plain flow until the stream is recognised. If that flow was
    /// reported, it is reported again with 0 packets.
    pub(super) fn update(&mut self, reports: &[FlowReport]) -> Vec<FlowChange> {
        let mut now: HashMap<FlowKey, Vec<Part>> = HashMap::new();
        for report in reports {
            now.entry(report.flow()).or_default().push(Part::of(report));
        }
        let before = std::mem::replace(&mut self.0, now);
        let is_known = |report: &FlowReport| {
            before.get(&report.flow()).is_some_and(|parts| parts.contains(&Part::of(report)))
        };
        let changed = reports.iter().filter(|report| !is_known(report)).filter_map(FlowChange::of);
        let elsewhere = before.iter().flat_map(|(flow, parts)| {
            let now = self.0.get(flow).map_or(&[][..], Vec::as_slice);
            let gone = parts.iter().filter(|part| part.is_in_other_report(now));
            gone.map(|part| part.without_packets(flow))
        });
        let mut changes: Vec<_> = changed.chain(elsewhere).collect();
        changes.sort_by_key(|it| it.last_ns);
        changes
    }
}

impl FlowChange {
    /// Serialisation of a report does not fail.
    fn of(report: &FlowReport) -> Option<Self> {
        let FlowReport { last_ns, packets, .. } = *report;
        Some(Self { last_ns, packets, report: serde_json::to_string(report).ok()? })
    }
}

impl Part {
    fn of(report: &FlowReport) -> Self {
        let FlowReport { first_ns, last_ns, packets, lost, capture_missed, .. } = *report;
        let ssrc = report.rtp.as_ref().map(|rtp| rtp.ssrc);
        Self { ssrc, first_ns, last_ns, packets, lost, capture_missed }
    }

    /// Whether its packets are now part of another report of the flow. A flow that was evicted and came back begins
    /// later.
    fn is_in_other_report(&self, now: &[Self]) -> bool {
        let is_there = now.iter().any(|it| (it.ssrc, it.first_ns) == (self.ssrc, self.first_ns));
        !is_there && now.iter().any(|it| it.first_ns <= self.last_ns)
    }

    fn without_packets(&self, flow: &FlowKey) -> FlowChange {
        let Self { first_ns, last_ns, .. } = *self;
        let FlowKey { source, destination, protocol } = flow;
        let mut report = json!({
            "src": source.ip(), "sport": source.port(),
            "dst": destination.ip(), "dport": destination.port(),
            "protocol": protocol, "packets": 0, "first_ns": first_ns, "last_ns": last_ns,
        });
        if let Some(ssrc) = self.ssrc {
            report["ssrc"] = ssrc.into();
        }
        FlowChange { last_ns, packets: 0, report: report.to_string() }
    }
}
