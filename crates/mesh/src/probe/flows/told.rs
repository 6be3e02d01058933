//! What was told of flows, so that of each only what is new is told.

use std::collections::HashMap;

use serde_json::json;
use wirestamp_metrics::flow::FlowReport;
use wirestamp_packet::FlowKey;

/// What was told last of each flow that is followed: of its RTP streams, and of the packets that belong to none.
#[derive(Default)]
pub(super) struct Told(HashMap<FlowKey, Vec<Part>>);

/// What is new of a flow.
pub(super) struct News {
    pub(super) last_ns: i64,
    pub(super) packets: u64,
    /// As it is told: an object of JSON.
    pub(super) report: String,
}

/// A report, as far as it has to be known again.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    ssrc: Option<u32>,
    first_ns: i64,
    last_ns: i64,
    packets: u64,
    lost: Option<u64>,
}

impl Told {
    /// Takes all that there is now for told, and says what is new of that, in the order of the flows' latest packets.
    ///
    /// The first packets of an RTP stream are those of a plain flow until they are recognised. If that was told, it is
    /// told again, without packets.
    pub(super) fn tell(&mut self, reports: &[FlowReport]) -> Vec<News> {
        let mut now: HashMap<FlowKey, Vec<Part>> = HashMap::new();
        for report in reports {
            now.entry(report.flow()).or_default().push(Part::of(report));
        }
        let before = std::mem::replace(&mut self.0, now);
        let is_known = |report: &FlowReport| {
            before.get(&report.flow()).is_some_and(|parts| parts.contains(&Part::of(report)))
        };
        let changed = reports.iter().filter(|report| !is_known(report)).filter_map(News::of);
        let elsewhere = before.iter().flat_map(|(flow, parts)| {
            let now = self.0.get(flow).map_or(&[][..], Vec::as_slice);
            let gone = parts.iter().filter(|part| part.is_told_elsewhere(now));
            gone.map(|part| part.without_packets(flow))
        });
        let mut news: Vec<_> = changed.chain(elsewhere).collect();
        news.sort_by_key(|it| it.last_ns);
        news
    }
}

impl News {
    /// What is a report can be written.
    fn of(report: &FlowReport) -> Option<Self> {
        let FlowReport { last_ns, packets, .. } = *report;
        Some(Self { last_ns, packets, report: serde_json::to_string(report).ok()? })
    }
}

impl Part {
    fn of(report: &FlowReport) -> Self {
        let FlowReport { first_ns, last_ns, packets, lost, .. } = *report;
        Self { ssrc: report.rtp.as_ref().map(|rtp| rtp.ssrc), first_ns, last_ns, packets, lost }
    }

    /// Whether its packets are in what is told of its flow now. A flow that was let go and came back begins later.
    fn is_told_elsewhere(&self, now: &[Self]) -> bool {
        let is_there = now.iter().any(|it| (it.ssrc, it.first_ns) == (self.ssrc, self.first_ns));
        !is_there && now.iter().any(|it| it.first_ns <= self.last_ns)
    }

    fn without_packets(&self, flow: &FlowKey) -> News {
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
        News { last_ns, packets: 0, report: report.to_string() }
    }
}
