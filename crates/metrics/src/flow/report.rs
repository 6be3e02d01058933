//! What is told of a flow.

use std::cmp::Ordering;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use wirestamp_packet::FlowKey;

use super::config::FlowConfig;
use super::iperf3::{Iperf3Report, Test};
use super::media_report::RtpReport;
use super::stream::Stream;
use super::table::{Content, Flow};
use super::tcp::Direction;
use super::volume::Volume;
use crate::Summary;
use crate::numeric::count_to_f64;

/// What was counted beside the flows that have a state of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct EvictedFlows {
    /// Flows that were idle for longest when there was no room for a new one. One that comes back is
    /// a new one.
    pub flows: u64,
    /// Their RTP streams.
    pub streams: u64,
    /// Their packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What they lost, as far as it was known ([`FlowReport::lost`]).
    pub lost: u64,
}

/// The quality of a flow, or of one RTP stream of it.
///
/// Serialised, its keys are those of the command line's contract; times are in nanoseconds where the
/// key does not say otherwise. What cannot be known is null.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FlowReport {
    /// Its source.
    pub src: IpAddr,
    /// Its destination.
    pub dst: IpAddr,
    /// The port of the source; 0 for protocols without ports.
    pub sport: u16,
    /// The port of the destination.
    pub dport: u16,
    /// The protocol above IP, as IANA numbers it.
    pub protocol: u8,
    /// Packets that were seen.
    pub packets: u64,
    /// Their bytes on the wire, with link headers.
    pub bytes: u64,
    /// The earliest stamp, in nanoseconds after 1970 UTC.
    pub first_ns: i64,
    /// The latest.
    pub last_ns: i64,
    /// The mean rate between the two, in bits per second; none of packets that came at one time.
    pub throughput_bps: Option<f64>,
    /// Of RTP, packets that did not come, by their numbers, each counted once whether or not others
    /// were doubled; the same of a test of iperf3. Of TCP, segments that were sent again: what the sender took for lost.
    /// None where nothing tells.
    pub lost: Option<u64>,
    /// Of RTP and iperf3, copies beyond the first.
    pub duplicated: Option<u64>,
    /// Packets that came after one that was sent later.
    pub reordered: Option<u64>,
    /// The times between packets. Percentiles are within 3 %.
    pub interarrival_ns: Option<Summary>,
    /// Packet trains: runs of packets without a gap longer than [`FlowConfig::train_gap`].
    pub trains: u64,
    /// The longest time between two packets.
    pub max_gap_ns: Option<i64>,
    /// What only RTP has.
    #[serde(flatten)]
    pub rtp: Option<RtpReport>,
    /// What only TCP has.
    #[serde(flatten)]
    pub tcp: Option<TcpReport>,
    /// What only a UDP test of iperf3 has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iperf3: Option<Iperf3Report>,
}

/// What TCP tells of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct TcpReport {
    /// Segments with bytes that had been sent before.
    pub retransmitted: u64,
    /// The round trip from the point of observation to the receiver and back: from a segment to
    /// the acknowledgment that covers it. Those of the other direction go the other way; both
    /// together are the whole round trip. None if only one direction was seen.
    pub rtt_ns: Option<Summary>,
    /// The same of the segment that opened the conversation.
    pub handshake_ns: Option<i64>,
}

impl FlowReport {
    /// The flow.
    #[must_use]
    pub fn flow(&self) -> FlowKey {
        FlowKey {
            source: SocketAddr::new(self.src, self.sport),
            destination: SocketAddr::new(self.dst, self.dport),
            protocol: self.protocol,
        }
    }

    /// Packets that were sent, as far as that is known; where nothing tells, those that came.
    #[must_use]
    pub fn sent(&self) -> u64 {
        match (&self.rtp, &self.iperf3) {
            (Some(rtp), _) => rtp.expected,
            (None, Some(test)) => test.sent,
            (None, None) => self.packets,
        }
    }

    /// The share of packets that were lost, 0 to 1, of those that were sent.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        let sent = self.sent();
        let lost = self.lost.filter(|_| sent > 0)?;
        Some((count_to_f64(lost) / count_to_f64(sent)).min(1.0))
    }

    /// Compares two flows by what hurts: the worst opinion score first, then the greatest loss, then
    /// the greatest jitter, then the most bytes.
    #[must_use]
    pub fn worst_first(&self, other: &Self) -> Ordering {
        let opinion =
            |report: &Self| report.rtp.as_ref().and_then(|rtp| rtp.mos).unwrap_or(f64::INFINITY);
        let loss = |report: &Self| report.loss_ratio().unwrap_or(0.0);
        let jitter = |report: &Self| {
            let of_rtp = report.rtp.as_ref().and_then(|rtp| rtp.max_jitter_ms);
            of_rtp.or(report.iperf3.map(|test| test.jitter_ms)).unwrap_or(0.0)
        };
        opinion(self)
            .total_cmp(&opinion(other))
            .then_with(|| loss(other).total_cmp(&loss(self)))
            .then_with(|| jitter(other).total_cmp(&jitter(self)))
            .then_with(|| other.bytes.cmp(&self.bytes))
            .then_with(|| self.flow().cmp(&other.flow()))
    }

    fn of(flow: FlowKey, volume: &Volume) -> Self {
        let nanos = |time: Option<wirestamp_clock::Time<_>>| time.map_or(0, |it| it.as_nanos());
        Self {
            src: flow.source.ip(),
            dst: flow.destination.ip(),
            sport: flow.source.port(),
            dport: flow.destination.port(),
            protocol: flow.protocol,
            packets: volume.packets,
            bytes: volume.bytes,
            first_ns: nanos(volume.first),
            last_ns: nanos(volume.last),
            throughput_bps: volume.bits_per_second(),
            lost: None,
            duplicated: None,
            reordered: None,
            interarrival_ns: volume.gaps.summary(),
            trains: volume.trains,
            max_gap_ns: volume.gaps.max(),
            rtp: None,
            tcp: None,
            iperf3: None,
        }
    }

    fn of_stream(flow: FlowKey, stream: &Stream, config: &FlowConfig) -> Self {
        Self {
            lost: Some(stream.total.lost),
            duplicated: Some(stream.duplicated),
            reordered: Some(stream.reordered),
            rtp: Some(RtpReport::of(stream, config)),
            ..Self::of(flow, &stream.volume)
        }
    }

    fn of_tcp(flow: FlowKey, volume: &Volume, direction: &Direction) -> Self {
        Self {
            lost: Some(direction.retransmitted),
            reordered: Some(direction.reordered),
            tcp: Some(TcpReport {
                retransmitted: direction.retransmitted,
                rtt_ns: direction.round_trips.summary(),
                handshake_ns: direction.handshake.map(|it| it.as_nanos()),
            }),
            ..Self::of(flow, volume)
        }
    }
}

/// The report of the packets that belong to no RTP stream.
fn of_rest(flow: &Flow, test: Option<&Test>) -> FlowReport {
    let report = FlowReport::of(flow.key, &flow.rest);
    let Some(test) = test else { return report };
    FlowReport {
        lost: Some(test.lost),
        duplicated: Some(test.duplicated),
        reordered: Some(test.reordered()),
        iperf3: Some(test.report()),
        ..report
    }
}

/// The reports of a flow.
pub(super) fn of(flow: &Flow, config: &FlowConfig) -> Vec<FlowReport> {
    let (mut reports, mut test) = (Vec::new(), None);
    match &flow.content {
        Content::Tcp { direction, .. } => {
            return vec![FlowReport::of_tcp(flow.key, &flow.rest, direction)];
        }
        Content::Udp(media) => {
            test = media.test.test();
            let streams = media.streams.iter();
            reports.extend(streams.map(|it| FlowReport::of_stream(flow.key, it, config)));
        }
        Content::Other => {}
    }
    if flow.rest.packets > 0 {
        reports.push(of_rest(flow, test));
    }
    reports
}

/// Adds up what is known of a flow that has to go.
pub(super) fn add_evicted(flow: &Flow, sum: &mut EvictedFlows) {
    sum.flows += 1;
    sum.packets += flow.rest.packets;
    sum.bytes += flow.rest.bytes;
    match &flow.content {
        Content::Tcp { direction, .. } => sum.lost += direction.retransmitted,
        Content::Udp(media) => {
            sum.lost += media.test.test().map_or(0, |test| test.lost);
            for stream in &media.streams {
                sum.streams += 1;
                sum.packets += stream.volume.packets;
                sum.bytes += stream.volume.bytes;
                sum.lost += stream.total.lost;
            }
        }
        Content::Other => {}
    }
}
