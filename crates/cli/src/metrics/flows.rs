//! Metrics of the worst flows of a running capture.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wirestamp_capture::Capture;
use wirestamp_clock::ClockService;
use wirestamp_metrics::flow::{EndedStreams, FlowReport, MOS_BOUNDS};
use wirestamp_results::{Families, Labels, seconds};
use wirestamp_session::LiveFigures;
use wirestamp_session::flows::SharedFlows;

use super::flow_totals::FlowTotals;
use super::{Endpoint, capture};
use crate::output::Output;

/// Number of exported flows, worst first: each has its own series in Prometheus, and the number of flows
/// is unbounded. `metrics.md` states the number.
const MAX_FLOWS: usize = 20;

/// Scrapes within this time get the same flows, to bound their load on the capture.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Serves the flow metrics of a capture at `endpoint`, if open. Returns the figures that the capture has
/// to update.
pub(crate) fn serve(
    endpoint: &Endpoint,
    flows: &Arc<SharedFlows>,
    capture: &Capture,
    clock: &Arc<ClockService>,
    output: Output,
) -> anyhow::Result<Option<Arc<LiveFigures>>> {
    let flows = Arc::clone(flows);
    let newest = Mutex::new(None::<(Instant, FlowSnapshot)>);
    capture::serve_with(endpoint, capture, clock, output, move |families| {
        let mut newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.as_ref().is_none_or(|(then, _)| then.elapsed() >= MAX_AGE) {
            let before = newest.as_ref().map(|(_, seen)| seen.totals).unwrap_or_default();
            *newest = Some((Instant::now(), FlowSnapshot::after(&before, &flows)));
        }
        if let Some((_, seen)) = &*newest {
            seen.collect(families);
        }
    })
}

/// The flows at one time.
struct FlowSnapshot {
    kept: usize,
    evicted: u64,
    ended: EndedStreams,
    totals: FlowTotals,
    worst: Vec<FlowReport>,
}

impl FlowSnapshot {
    fn after(before: &FlowTotals, flows: &SharedFlows) -> Self {
        flows.count_ended();
        // Before the reports: flows that are evicted meanwhile must not be in both.
        let without_flows = FlowTotals::without_flows(&flows.lock().monitor);
        let mut worst = flows.reports();
        let (evicted, ended) = {
            let monitor = &flows.lock().monitor;
            (monitor.evicted.flows, monitor.ended)
        };
        let kept = worst.len();
        let totals = without_flows.with(&worst).after(before);
        keep_newest(&mut worst);
        worst.sort_unstable_by(FlowReport::worst_first);
        worst.truncate(MAX_FLOWS);
        Self { kept, evicted, ended, totals, worst }
    }

    fn collect(&self, families: &mut Families) {
        let kept = u32::try_from(self.kept).map_or(f64::INFINITY, f64::from);
        families.add("wirestamp_flows", &[], kept);
        families.add("wirestamp_flows_given_up_total", &[], self.evicted);
        self.totals.collect(families);
        let EndedStreams { up_to, count, sum } = self.ended;
        let buckets = MOS_BOUNDS.into_iter().zip(up_to);
        families.add_histogram("wirestamp_flows_rtp_mos", &[], buckets, (count, sum));
        self.worst.iter().for_each(|report| flow(families, report, &labels(report)));
    }
}

/// Removes all but the newest of the RTP streams that have the same labels: those of calls one after the other.
fn keep_newest(reports: &mut Vec<FlowReport>) {
    let mut known = HashSet::new();
    // Later streams of a flow come after earlier ones.
    reports.reverse();
    reports.retain(|it| known.insert((it.flow(), it.rtp.as_ref().map(|rtp| rtp.ssrc))));
}

fn labels(report: &FlowReport) -> Vec<(&'static str, String)> {
    let rtp = report.rtp.as_ref();
    let ssrc = rtp.map_or_else(String::new, |rtp| format!("0x{:08x}", rtp.ssrc));
    let codec = rtp.and_then(|rtp| rtp.codec.clone()).unwrap_or_default();
    vec![
        ("src", report.src.to_string()),
        ("dst", report.dst.to_string()),
        ("sport", report.sport.to_string()),
        ("dport", report.dport.to_string()),
        ("protocol", report.protocol.to_string()),
        ("ssrc", ssrc),
        ("codec", codec),
    ]
}

/// Adds one of the worst flows.
fn flow(families: &mut Families, report: &FlowReport, labels: &Labels) {
    let FlowReport { packets, bytes, rtp, tcp, .. } = report;
    families.add("wirestamp_flow_packets_total", labels, *packets);
    families.add("wirestamp_flow_bytes_total", labels, *bytes);
    if let Some(lost) = report.lost {
        families.add("wirestamp_flow_lost_packets_total", labels, lost);
    }
    if let Some(round_trip) = tcp.and_then(|tcp| tcp.rtt_ns) {
        families.add("wirestamp_flow_round_trip_seconds", labels, seconds(round_trip.p50));
    }
    let Some(rtp) = rtp else { return };
    if let Some(jitter) = rtp.jitter_ms {
        families.add("wirestamp_flow_jitter_seconds", labels, jitter / 1e3);
    }
    if let (Some(mos), Some(r_factor)) = (rtp.mos, rtp.r_factor) {
        families.add("wirestamp_flow_mos", labels, mos);
        families.add("wirestamp_flow_r_factor", labels, r_factor);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_two_flows_have_the_same_labels() {
        let report = |port: u16, first_ns: i64| -> FlowReport {
            let report = json!({
                "src": "10.0.0.1", "dst": "10.0.0.2", "sport": 1, "dport": port, "protocol": 17, "packets": 2,
                "bytes": 100, "first_ns": first_ns, "last_ns": 9, "trains": 1,
            });
            serde_json::from_value(report).unwrap()
        };
        let mut reports = vec![report(4000, 1), report(4000, 2), report(4002, 1), report(4000, 3)];
        keep_newest(&mut reports);
        let kept: Vec<_> = reports.iter().map(|it| (it.dport, it.first_ns)).collect();
        assert_eq!(kept, [(4000, 3), (4002, 1)]);
    }
}
