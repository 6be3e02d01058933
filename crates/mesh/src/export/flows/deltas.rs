//! What flows have grown by since their last record. Receivers such as nfdump and pmacct add up records.

use std::collections::{HashMap, HashSet};

use wirestamp_metrics::flow::FlowReport;
use wirestamp_packet::FlowKey;

/// Max flows that are remembered per task, as many as a collector stores.
const MAX_FLOWS: usize = 100_000;

/// Counts of a flow that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::export) struct FlowCounts {
    pub(in crate::export) packets: u64,
    pub(in crate::export) bytes: u64,
    /// By sequence numbers: packets lost by the network.
    pub(in crate::export) lost: u64,
}

/// The last exported counts of each flow of each task.
#[derive(Debug, Default)]
pub(in crate::export) struct FlowDeltas(HashMap<u64, TaskFlows>);

#[derive(Debug, Default)]
struct TaskFlows {
    /// Flows that began earlier and are not known were not exported from their begin on.
    since: Option<i64>,
    flows: HashMap<FlowKey, ExportedFlow>,
}

/// A flow: its RTP streams and its other packets.
#[derive(Debug, Default)]
struct ExportedFlow {
    parts: Vec<ExportedPart>,
    /// Counts that were exported and now belong to another part. The first packets of an RTP stream count as a plain
    /// flow until the stream is recognised.
    ahead: FlowCounts,
    last_ns: i64,
}

#[derive(Clone, Copy, Debug)]
struct ExportedPart {
    ssrc: Option<u32>,
    first_ns: i64,
    last_ns: i64,
    counts: FlowCounts,
}

impl FlowCounts {
    fn of(report: &FlowReport) -> Self {
        // For TCP, it is retransmissions.
        let lost = report.tcp.is_none().then_some(report.lost).flatten().unwrap_or(0);
        Self { packets: report.packets, bytes: report.bytes, lost }
    }

    fn zip(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            packets: with(self.packets, other.packets),
            bytes: with(self.bytes, other.bytes),
            lost: with(self.lost, other.lost),
        }
    }
}

impl FlowDeltas {
    /// Records flows that existed before the export started, at `since`.
    pub(in crate::export) fn start(&mut self, task: u64, reports: &[FlowReport], since: i64) {
        let flows = self.0.entry(task).or_default();
        flows.since = Some(since);
        reports.iter().for_each(|report| flows.remember(report));
    }

    /// The growth of each of these flows since its last record.
    pub(in crate::export) fn of(&mut self, task: u64, reports: &[FlowReport]) -> Vec<FlowCounts> {
        let flows = self.0.entry(task).or_default();
        flows.move_to_streams(reports);
        reports.iter().for_each(|report| flows.note_decrease(report));
        let deltas = reports.iter().map(|report| flows.delta(report)).collect();
        flows.bound();
        deltas
    }
}

impl TaskFlows {
    /// Removes plain flows whose packets now belong to a new RTP stream.
    fn move_to_streams(&mut self, reports: &[FlowReport]) {
        let plain = reports.iter().filter(|it| it.rtp.is_none());
        let plain: HashSet<_> = plain.map(|it| (it.flow(), it.first_ns)).collect();
        for report in reports.iter().filter(|it| it.rtp.is_some()) {
            let key = report.flow();
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            if flow.part(report).is_some() {
                continue;
            }
            let is_moved = |part: &ExportedPart| {
                let is_plain = part.ssrc.is_none() && !plain.contains(&(key, part.first_ns));
                is_plain && report.first_ns <= part.last_ns
            };
            for moved in flow.parts.extract_if(.., |part| is_moved(part)) {
                flow.ahead = flow.ahead.zip(moved.counts, u64::saturating_add);
            }
        }
    }

    /// Counts that moved to another flow were exported already.
    fn note_decrease(&mut self, report: &FlowReport) {
        let Some(flow) = self.flows.get_mut(&report.flow()) else { return };
        let now = FlowCounts::of(report);
        let Some(part) = flow.part(report) else { return };
        let decrease = part.counts.zip(now, u64::saturating_sub);
        part.counts = part.counts.zip(now, u64::min);
        flow.ahead = flow.ahead.zip(decrease, u64::saturating_add);
    }

    fn delta(&mut self, report: &FlowReport) -> FlowCounts {
        let (now, since) = (FlowCounts::of(report), self.since);
        let flow = self.flows.entry(report.flow()).or_default();
        let known = flow.part(report).map(|part| part.counts);
        let is_older = since.is_some_and(|since| report.first_ns < since);
        let before = known.unwrap_or(if is_older { now } else { FlowCounts::default() });
        let grown = now.zip(before, u64::saturating_sub);
        let delta = grown.zip(flow.ahead, u64::saturating_sub);
        flow.ahead = flow.ahead.zip(grown, u64::saturating_sub);
        flow.set(report);
        delta
    }

    fn remember(&mut self, report: &FlowReport) {
        self.flows.entry(report.flow()).or_default().set(report);
    }

    /// Forgets the flows whose last packets are the oldest, beyond the limit.
    fn bound(&mut self) {
        if self.flows.len() > MAX_FLOWS {
            let mut ends: Vec<_> = self.flows.values().map(|it| it.last_ns).collect();
            let (_, newest_gone, _) = ends.select_nth_unstable(self.flows.len() - MAX_FLOWS);
            let newest_gone = *newest_gone;
            self.flows.retain(|_, it| it.last_ns > newest_gone);
        }
    }
}

impl ExportedFlow {
    /// The part that a report is about.
    fn part(&mut self, report: &FlowReport) -> Option<&mut ExportedPart> {
        let key = (ssrc(report), report.first_ns);
        self.parts.iter_mut().find(|it| (it.ssrc, it.first_ns) == key)
    }

    fn set(&mut self, report: &FlowReport) {
        let FlowReport { first_ns, last_ns, .. } = *report;
        self.last_ns = self.last_ns.max(last_ns);
        let counts = FlowCounts::of(report);
        match self.part(report) {
            Some(part) => (part.last_ns, part.counts) = (last_ns, counts),
            None => self.parts.push(ExportedPart { ssrc: ssrc(report), first_ns, last_ns, counts }),
        }
    }
}

fn ssrc(report: &FlowReport) -> Option<u32> {
    report.rtp.as_ref().map(|it| it.ssrc)
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::super::tests::{PLAIN, report, rtp};
    use super::*;

    fn plain(first_ns: i64, last_ns: i64, packets: u64) -> FlowReport {
        FlowReport { first_ns, last_ns, packets, bytes: 100 * packets, ..report(PLAIN) }
    }

    fn stream(first_ns: i64, last_ns: i64, packets: u64, lost: u64) -> FlowReport {
        let rtp = rtp(None, None).rtp;
        FlowReport { rtp, lost: Some(lost), ..plain(first_ns, last_ns, packets) }
    }

    fn packets(deltas: &mut FlowDeltas, reports: &[FlowReport]) -> Vec<u64> {
        let deltas = deltas.of(1, reports);
        assert!(deltas.iter().all(|it| it.bytes == 100 * it.packets));
        deltas.iter().map(|it| it.packets).collect()
    }

    #[test]
    fn flow_reported_again_has_its_growth() {
        let mut deltas = FlowDeltas::default();
        assert_eq!(packets(&mut deltas, &[plain(10, 20, 3)]), [3]);
        assert_eq!(packets(&mut deltas, &[plain(10, 30, 7)]), [4]);
        assert_eq!(packets(&mut deltas, &[plain(10, 30, 7)]), [0]);
        // It was evicted and came back.
        assert_eq!(packets(&mut deltas, &[plain(40, 50, 2)]), [2]);
    }

    #[test]
    fn flows_from_before_the_start_are_not_counted_again() {
        let mut deltas = FlowDeltas::default();
        deltas.start(1, &[plain(10, 20, 3)], 25);
        assert_eq!(packets(&mut deltas, &[plain(10, 30, 5), plain(26, 30, 4)]), [2, 4]);
        // Not known at the start.
        assert_eq!(packets(&mut deltas, &[plain(11, 30, 9)]), [0]);
        assert_eq!(packets(&mut deltas, &[plain(11, 40, 10)]), [1]);
    }

    #[test]
    fn first_packets_of_a_stream_are_counted_once() {
        let mut deltas = FlowDeltas::default();
        assert_eq!(packets(&mut deltas, &[plain(10, 30, 3)]), [3]);
        assert_eq!(packets(&mut deltas, &[stream(10, 90, 9, 0)]), [6]);
        let other = plain(100, 100, 1);
        assert_eq!(packets(&mut deltas, &[other, stream(10, 110, 11, 0)]), [1, 2]);
    }

    /// The plain flow keeps some of its packets; the reports may come in any order and at different times.
    #[test]
    fn packets_that_stay_in_the_plain_flow_are_counted_once() {
        let (before, plain, stream) = (plain(10, 50, 4), plain(10, 10, 1), stream(20, 90, 4, 0));
        for order in [[plain.clone(), stream.clone()], [stream, plain]] {
            for at_once in [true, false] {
                let mut deltas = FlowDeltas::default();
                assert_eq!(packets(&mut deltas, slice::from_ref(&before)), [4]);
                let sum: u64 = if at_once {
                    packets(&mut deltas, &order).iter().sum()
                } else {
                    order.iter().flat_map(|it| packets(&mut deltas, slice::from_ref(it))).sum()
                };
                assert_eq!(sum, 1);
            }
        }
    }

    /// A late packet makes a loss undone.
    #[test]
    fn losses_that_were_withdrawn_are_not_exported_twice() {
        let mut deltas = FlowDeltas::default();
        let lost = [2, 1, 3].map(|lost| deltas.of(1, &[stream(10, 90, 9, lost)])[0].lost);
        assert_eq!(lost, [2, 0, 1]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut deltas = FlowDeltas::default();
        let flow = |number: u32| {
            let [.., high, low] = number.to_be_bytes();
            let src = [192, 0, high, low].into();
            let sport = u16::try_from(number >> 16).unwrap();
            FlowReport { src, sport, ..plain(number.into(), number.into(), 1) }
        };
        let reports: Vec<_> = (0..100_010).map(flow).collect();
        packets(&mut deltas, &reports);
        assert_eq!(deltas.0[&1].flows.len(), MAX_FLOWS - 1);
        assert_eq!(packets(&mut deltas, &reports[100_009..]), [0]);
    }
}
