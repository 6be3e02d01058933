//! Flows as IPFIX records, with totals since their begin and with their growth since the last record.

mod deltas;

use std::net::Ipv4Addr;

use crate::protocol::ipfix::element::{
    DESTINATION_TRANSPORT_PORT, DROPPED_PACKET_DELTA_COUNT, DROPPED_PACKET_TOTAL_COUNT,
    FLOW_END_MILLISECONDS, FLOW_END_NANOSECONDS, FLOW_START_MILLISECONDS, FLOW_START_NANOSECONDS,
    LAYER2_OCTET_DELTA_COUNT, LAYER2_OCTET_TOTAL_COUNT, METERING_PROCESS_ID, PACKET_DELTA_COUNT,
    PACKET_TOTAL_COUNT, PROTOCOL_IDENTIFIER, SOURCE_TRANSPORT_PORT,
};
use crate::protocol::ipfix::{Element, Part, Row, Template, Value};
use wirestamp_clock::Time;
use wirestamp_metrics::flow::FlowReport;

use super::element;
use super::values::{addresses, millis, nanos, number_of};
pub(super) use deltas::{FlowCounts, FlowDeltas};

/// Unknown values are omitted from records, so there is a template for each combination of known values, from this ID
/// on.
const FLOWS: u16 = 272;
const IS_IPV6: u16 = 1;
/// Its packets have sequence numbers.
const IS_NUMBERED: u16 = 2;
const IS_RTP: u16 = 4;
const HAS_JITTER: u16 = 8;
const HAS_MOS: u16 = 16;
const IS_TCP: u16 = 32;
const HAS_ROUND_TRIP: u16 = 64;

/// Possible combinations for an IPv4 flow.
const KINDS: [u16; 8] = [
    0,
    IS_TCP,
    IS_TCP | HAS_ROUND_TRIP,
    IS_NUMBERED | HAS_JITTER,
    IS_NUMBERED | IS_RTP,
    IS_NUMBERED | IS_RTP | HAS_JITTER,
    IS_NUMBERED | IS_RTP | HAS_MOS,
    IS_NUMBERED | IS_RTP | HAS_JITTER | HAS_MOS,
];

/// Templates of all flow records.
pub(super) fn templates() -> impl Iterator<Item = Template> {
    let empty = empty();
    KINDS.into_iter().flat_map(|kind| [kind, kind | IS_IPV6]).filter_map(move |flags| {
        // The template does not depend on the values.
        row(0, "", (&empty, FlowCounts::default()), flags).template(FLOWS + flags, 0).ok()
    })
}

/// Record of a flow of a task, with its growth.
pub(super) fn record((number, name): (u64, &str), report: &FlowReport, delta: FlowCounts) -> Part {
    let flags = flags(report);
    row(number, name, (report, delta), flags).part(FLOWS + flags)
}

/// Known values of a flow, as flags.
fn flags(report: &FlowReport) -> u16 {
    let if_known = |is_known: bool, flags: u16| if is_known { flags } else { 0 };
    let family = if_known(report.src.is_ipv6() || report.dst.is_ipv6(), IS_IPV6);
    let kind = match (&report.rtp, report.udp_test(), &report.tcp) {
        (Some(rtp), _, _) => {
            let jitter = if_known(rtp.jitter_ms.is_some(), HAS_JITTER);
            IS_NUMBERED | IS_RTP | jitter | if_known(rtp.mos.is_some(), HAS_MOS)
        }
        (None, Some(_), _) => IS_NUMBERED | HAS_JITTER,
        (None, None, Some(tcp)) => IS_TCP | if_known(tcp.rtt_ns.is_some(), HAS_ROUND_TRIP),
        (None, None, None) => 0,
    };
    family | kind
}

fn row<'a>(
    number: u64,
    name: &'a str,
    (report, delta): (&'a FlowReport, FlowCounts),
    flags: u16,
) -> Row<'a> {
    let mut row = every(number, name, report, flags & IS_IPV6 != 0);
    if flags & (IS_NUMBERED | IS_TCP) != 0 {
        row.push((element::REORDERED_TOTAL, count(report.reordered)));
    }
    if flags & IS_NUMBERED != 0 {
        row.extend(numbered(report));
    }
    if flags & IS_RTP != 0 {
        row.extend(stream(report));
    }
    let rtp = report.rtp.as_ref();
    if flags & HAS_JITTER != 0 {
        let of_test = report.udp_test().map(|it| it.jitter_ms);
        let jitter = rtp.and_then(|it| it.jitter_ms).or(of_test);
        row.push((element::JITTER, whole_nanos(jitter.unwrap_or(0.0) * 1e6)));
    }
    if flags & HAS_MOS != 0 {
        row.push((element::MOS, Value::F64(rtp.and_then(|it| it.mos).unwrap_or(0.0))));
    }
    if flags & IS_TCP != 0 {
        row.push((element::RETRANSMITTED_TOTAL, count(report.tcp.map(|it| it.retransmitted))));
    }
    if flags & HAS_ROUND_TRIP != 0 {
        let trip = report.tcp.and_then(|it| it.rtt_ns);
        let min = trip.map_or(0, |it| it.min.max(0).unsigned_abs());
        row.push((element::ROUND_TRIP_MIN, Value::U64(min)));
        row.push((element::ROUND_TRIP_MEAN, whole_nanos(trip.map_or(0.0, |it| it.mean))));
    }
    // After the totals: nfdump stores totals and deltas in the same place, the last one stays, and it adds up records.
    row.push((PACKET_DELTA_COUNT, Value::U64(delta.packets)));
    row.push((LAYER2_OCTET_DELTA_COUNT, Value::U64(delta.bytes)));
    if flags & IS_NUMBERED != 0 {
        row.push((DROPPED_PACKET_DELTA_COUNT, Value::U64(delta.lost)));
    }
    Row(row)
}

/// Elements of every record.
fn every<'a>(
    number: u64,
    name: &'a str,
    report: &FlowReport,
    is_ipv6: bool,
) -> Vec<(Element, Value<'a>)> {
    let [first, last] = [report.first_ns, report.last_ns].map(Time::from_nanos);
    let mut row =
        vec![(METERING_PROCESS_ID, number_of(number)), (element::TASK_NAME, Value::Text(name))];
    row.extend(addresses([report.src, report.dst], is_ipv6));
    row.extend([
        (SOURCE_TRANSPORT_PORT, Value::U16(report.sport)),
        (DESTINATION_TRANSPORT_PORT, Value::U16(report.dport)),
        (PROTOCOL_IDENTIFIER, Value::U8(report.protocol)),
        (FLOW_START_NANOSECONDS, Value::Time(first)),
        (FLOW_END_NANOSECONDS, Value::Time(last)),
        // nfdump and pmacct support no finer ones.
        (FLOW_START_MILLISECONDS, millis(first)),
        (FLOW_END_MILLISECONDS, millis(last)),
        (PACKET_TOTAL_COUNT, Value::U64(report.packets)),
        (LAYER2_OCTET_TOTAL_COUNT, Value::U64(report.bytes)),
    ]);
    row
}

/// Elements of flows with sequence numbers.
fn numbered(report: &FlowReport) -> [(Element, Value<'static>); 3] {
    let of_rtp = report.rtp.as_ref().map(|it| it.capture_lost);
    let missed = of_rtp.or(report.udp_test().map(|it| it.capture_lost));
    [
        (DROPPED_PACKET_TOTAL_COUNT, count(report.lost)),
        (element::DUPLICATED_TOTAL, count(report.duplicated)),
        (element::MISSED_TOTAL, count(missed)),
    ]
}

/// Elements of an RTP stream.
fn stream(report: &FlowReport) -> [(Element, Value<'_>); 3] {
    let rtp = report.rtp.as_ref();
    let codec = rtp.and_then(|it| it.codec.as_deref()).unwrap_or_default();
    [
        (element::SOURCE_OF_RTP, Value::U32(rtp.map_or(0, |it| it.ssrc))),
        (element::PAYLOAD_TYPE, Value::U8(rtp.map_or(0, |it| it.payload_type))),
        (element::CODEC_NAME, Value::Text(codec)),
    ]
}

fn count(value: Option<u64>) -> Value<'static> {
    Value::U64(value.unwrap_or(0))
}

fn whole_nanos(value: f64) -> Value<'static> {
    Value::U64(nanos(value).max(0).unsigned_abs())
}

/// A flow without any known values.
fn empty() -> FlowReport {
    let unspecified = Ipv4Addr::UNSPECIFIED.into();
    FlowReport {
        src: unspecified,
        dst: unspecified,
        sport: 0,
        dport: 0,
        protocol: 0,
        packets: 0,
        bytes: 0,
        first_ns: 0,
        last_ns: 0,
        throughput_bps: None,
        lost: None,
        duplicated: None,
        reordered: None,
        interarrival_ns: None,
        trains: 0,
        max_gap_ns: None,
        capture_missed: Some(0),
        rtp: None,
        tcp: None,
        iperf3: None,
        wirestamp: None,
        transport_stream: None,
        rtcp: None,
        encapsulations: None,
        video: None,
    }
}

#[cfg(test)]
mod tests;
