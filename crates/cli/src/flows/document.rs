//! The JSON document of `flows`.

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_metrics::flow::{CallReport, EvictedFlows, FlowReport};
use wirestamp_session::TapReport;
use wirestamp_session::flows::Flows;

/// Quality of the flows of a capture file or interface. Times are in nanoseconds unless the key has another unit. Unknown
/// values are null.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The file. Absent for interfaces and for several files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    /// The files and folders, read as one capture. Absent for interfaces and for one file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) files: Option<Vec<String>>,
    /// Packets of all flows. Each fragment counts.
    pub(super) packets: u64,
    /// Bytes on the wire of these packets, with link headers.
    pub(super) bytes: u64,
    /// Time from the first to the last packet, in nanoseconds.
    pub(super) duration_ns: i64,
    /// Frames without a flow.
    pub(super) not_ip: u64,
    /// UDP datagrams in fragments that were not joined, because fragments are missing. RTP packets among them count as lost.
    pub(super) datagrams_not_joined: u64,
    /// Packets with an earlier stamp than the packet before.
    pub(super) out_of_order: u64,
    /// Packets lost by the capture, which are never network losses. Null if the file does not contain the
    /// number.
    pub(super) capture_dropped: Option<u64>,
    /// The part of `capture_dropped` with known times. Excluded from the network losses of flows with
    /// sequence numbers.
    pub(super) capture_dropped_dated: u64,
    /// Max error of a stamp, in nanoseconds. Null if it is unknown.
    pub(super) clock_error_ns: Option<i64>,
    /// One-way delay assumed for rating voice, in milliseconds.
    pub(super) assumed_delay_ms: i64,
    /// De-jitter buffer assumed for rating voice, in milliseconds. Null if it is adaptive.
    pub(super) assumed_jitter_buffer_ms: Option<i64>,
    /// The same buffer in words.
    pub(super) assumed_jitter_buffer: String,
    /// Totals of the flows that were evicted for new ones (`--max-flows`). They are not in `flows`.
    #[serde(rename = "given_up")]
    pub(super) evicted: EvictedFlows,
    /// The flows, worst first: an object for each RTP stream, and one for the other packets of each flow.
    pub(super) flows: Vec<FlowReport>,
    /// SIP calls, oldest first.
    pub(super) calls: Vec<CallReport>,
    /// Calls that `--caller` and `--callee` do not select. Absent without these options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) calls_not_selected: Option<u64>,
    /// Calls that were evicted for new ones (`--max-flows`).
    pub(super) evicted_calls: u64,
    /// Reports by RTCP that were joined with no RTP stream.
    pub(super) rtcp_unmatched_reports: u64,
    /// Datagrams of RTCP that cannot be read, of an end that receives RTP streams and does not send the stream that the
    /// datagram names: encrypted (SRTCP), not captured completely, or damaged.
    pub(super) rtcp_unreadable_packets: u64,
    /// The capture, if it was not a file.
    #[serde(flatten)]
    pub(super) tap: Option<Tap>,
    #[serde(skip)]
    pub(super) remarks: Vec<String>,
}

/// The report of a live capture.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tap {
    /// The capture. Absent for files.
    pub(super) tap: TapReport,
}

impl Document {
    /// The report of these flows; `capture_dropped` packets were lost by the capture, or it is unknown how many.
    pub(super) fn of(flows: &mut Flows, capture_dropped: Option<u64>) -> Self {
        let monitor = &mut flows.monitor;
        let config = monitor.config.clone();
        let millis = |span: wirestamp_clock::Span| span.as_nanos() / 1_000_000;
        let mut reports = Vec::with_capacity(monitor.flow_count());
        reports.extend(monitor.flows());
        reports.sort_by(FlowReport::worst_first);
        let dated = monitor.capture_missed();
        if capture_dropped.is_none_or(|dropped| dropped > dated) {
            for report in &mut reports {
                report.capture_missed = None;
                forget_bounds_of_mos(report);
                if let Some(rtcp) = report.rtcp.as_mut().filter(|_| capture_dropped.is_some()) {
                    rtcp.forget_comparison();
                }
            }
        }
        let calls = monitor.calls(&reports);
        Self {
            file: None,
            files: None,
            packets: monitor.packets(),
            bytes: monitor.bytes(),
            duration_ns: monitor.duration().as_nanos(),
            not_ip: flows.not_ip,
            datagrams_not_joined: monitor.datagrams_not_joined(),
            out_of_order: flows.out_of_order,
            capture_dropped,
            capture_dropped_dated: dated,
            clock_error_ns: None,
            assumed_delay_ms: millis(config.delay),
            assumed_jitter_buffer_ms: config.buffer.fixed().map(millis),
            assumed_jitter_buffer: config.buffer.to_string(),
            evicted: monitor.evicted,
            evicted_calls: monitor.evicted_calls(),
            rtcp_unmatched_reports: monitor.unmatched_rtcp_reports(),
            rtcp_unreadable_packets: monitor.unreadable_rtcp_packets(),
            calls,
            calls_not_selected: None,
            flows: reports,
            tap: None,
            remarks: Vec::new(),
        }
    }

    /// Whether the capture's ledger balances; always true for files.
    pub(super) fn is_balanced(&self) -> bool {
        self.tap.as_ref().is_none_or(|it| it.tap.balanced)
    }
}

/// Without knowing what the capture lost, and when, no MOS bounds those of the network, unless no packet is missing.
fn forget_bounds_of_mos(flow: &mut FlowReport) {
    let is_complete = flow.lost == Some(0);
    if let Some(rtp) = flow.rtp.as_mut().filter(|_| !is_complete) {
        (rtp.mos_lowest, rtp.mos_highest) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Time;
    use wirestamp_metrics::flow::{FlowConfig, FlowPacket, RtpReport};
    use wirestamp_packet::{LinkType, Packet};

    use super::*;

    /// A packet of 20 ms of PCMU in UDP.
    fn voice(number: u16) -> Vec<u8> {
        let timestamp = (u32::from(number) * 160).to_be_bytes();
        let [high, low] = number.to_be_bytes();
        let rtp = [&[0x80, 0, high, low][..], &timestamp, &[0, 0, 0, 7], &[0xff; 160]].concat();
        let ip = [0x45, 0, 0, 200, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let udp = [0x0f, 0xa0, 0x13, 0x8c, 0, 180, 0, 0];
        [&ip[..], &udp, &rtp].concat()
    }

    /// The stream of these packets in a capture that lost this number.
    fn stream(numbers: impl IntoIterator<Item = u16>, capture_dropped: Option<u64>) -> RtpReport {
        let mut flows = Flows::new(FlowConfig::default());
        for number in numbers {
            let bytes = voice(number);
            let packet = Packet::parse(LinkType::Ip, &bytes).unwrap();
            let time = Time::from_nanos(i64::from(number) * 20_000_000);
            let length = u32::try_from(bytes.len()).unwrap();
            let packet = FlowPacket { packet: &packet, length, time, encapsulation: None };
            flows.monitor.observe(&packet);
        }
        let document = Document::of(&mut flows, capture_dropped);
        document.flows.into_iter().find_map(|flow| flow.rtp).unwrap()
    }

    fn with_a_gap() -> impl Iterator<Item = u16> {
        (0..200).filter(|number| *number != 100)
    }

    #[test]
    fn bounds_of_mos_are_null_where_losses_of_the_capture_are_unknown() {
        // Without a number, and with losses at an unknown time.
        for capture_dropped in [None, Some(1)] {
            let rtp = stream(with_a_gap(), capture_dropped);
            assert!(rtp.mos.is_some_and(|mos| mos < 4.4), "{:?}", rtp.mos);
            assert_eq!((rtp.mos_lowest, rtp.mos_highest), (None, None), "{capture_dropped:?}");
        }
    }

    #[test]
    fn bounds_of_mos_are_known_without_losses_of_the_capture() {
        let rtp = stream(with_a_gap(), Some(0));
        assert!(rtp.mos.is_some());
        assert_eq!((rtp.mos_lowest, rtp.mos_highest), (rtp.mos, rtp.mos));
    }

    #[test]
    fn bounds_of_mos_are_known_where_no_packet_is_missing() {
        let rtp = stream(0..200, None);
        assert!(rtp.mos.is_some());
        assert_eq!((rtp.mos_lowest, rtp.mos_highest), (rtp.mos, rtp.mos));
    }
}
