//! Totals of all flows, with a bounded number of series: counters that never fall, and voice streams by their MOS.

use wirestamp_metrics::flow::{FlowMonitor, FlowReport, RtpReport};
use wirestamp_results::Families;

/// User satisfaction by the lowest MOS of each class (ITU-T G.107 Table B.1).
const CLASSES: [(f64, &str); 5] = [
    (4.34, "very-satisfied"),
    (4.03, "satisfied"),
    (3.60, "some-dissatisfied"),
    (3.10, "many-dissatisfied"),
    (2.58, "nearly-all-dissatisfied"),
];
const BELOW: &str = "not-recommended";
const UNKNOWN: &str = "unknown";

/// Totals of the flows in memory and of those that were evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FlowTotals {
    packets: u64,
    bytes: u64,
    expected: u64,
    lost: u64,
    late: u64,
    /// Voice streams in memory: of each class, below all classes, and without a MOS.
    streams: [u64; CLASSES.len() + 2],
}

impl FlowTotals {
    /// Of a monitor, of its RTP streams only those that were evicted.
    pub(super) fn without_flows(monitor: &FlowMonitor) -> Self {
        Self {
            packets: monitor.packets(),
            bytes: monitor.bytes(),
            expected: monitor.evicted.rtp_expected,
            lost: monitor.evicted.rtp_lost,
            late: monitor.evicted.rtp_late,
            ..Self::default()
        }
    }

    /// The same with the RTP streams of the flows in memory.
    pub(super) fn with(mut self, reports: &[FlowReport]) -> Self {
        for report in reports {
            let Some(rtp) = &report.rtp else { continue };
            self.expected += rtp.expected;
            self.lost += report.lost.unwrap_or(0);
            self.late += rtp.late.unwrap_or(0);
            // A video has neither a MOS nor a reason.
            if rtp.mos.is_some() || rtp.mos_unknown.is_some() {
                self.streams[class(rtp)] += 1;
            }
        }
        self
    }

    /// The same with counters that are not below those of before: a packet that was lost may still arrive, and Prometheus
    /// takes a falling counter for one that began again at 0.
    pub(super) fn after(self, before: &Self) -> Self {
        Self {
            packets: self.packets.max(before.packets),
            bytes: self.bytes.max(before.bytes),
            expected: self.expected.max(before.expected),
            lost: self.lost.max(before.lost),
            late: self.late.max(before.late),
            streams: self.streams,
        }
    }

    pub(super) fn collect(&self, families: &mut Families) {
        for (name, value) in [
            ("wirestamp_flows_packets_total", self.packets),
            ("wirestamp_flows_bytes_total", self.bytes),
            ("wirestamp_flows_rtp_expected_packets_total", self.expected),
            ("wirestamp_flows_rtp_lost_packets_total", self.lost),
            ("wirestamp_flows_rtp_late_packets_total", self.late),
        ] {
            families.add(name, &[], value);
        }
        let names = CLASSES.iter().map(|(_, name)| *name).chain([BELOW, UNKNOWN]);
        for (name, count) in names.zip(self.streams) {
            let labels = [("users", name.to_owned())];
            families.add("wirestamp_flows_voice_streams", &labels, count);
        }
    }
}

/// Place of a stream's class in [`FlowTotals::streams`].
fn class(rtp: &RtpReport) -> usize {
    let Some(mos) = rtp.mos else { return CLASSES.len() + 1 };
    CLASSES.iter().position(|(lowest, _)| mos >= *lowest).unwrap_or(CLASSES.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_never_fall() {
        let before = FlowTotals { lost: 9, streams: [1; 7], ..FlowTotals::default() };
        let now = FlowTotals { packets: 4, lost: 8, ..FlowTotals::default() };
        let shown = FlowTotals { packets: 4, lost: 9, ..FlowTotals::default() };
        assert_eq!(now.after(&before), shown);
    }
}
