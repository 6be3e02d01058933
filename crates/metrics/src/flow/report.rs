//! Report of a flow.

use std::cmp::Ordering;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use wirestamp_clock::Time;
use wirestamp_packet::FlowKey;

use super::config::FlowConfig;
use super::encapsulations::EncapsulationsReport;
use super::encoding::Encoding;
use super::loss_times::LossTimes;
use super::media_report::RtpReport;
use super::rtcp::RtcpReport;
use super::stream::Stream;
use super::table::{Content, Flow};
use super::tcp::Direction;
use super::transport_stream::TransportStreamReport;
use super::udp_test::{Iperf3Report, Test, WirestampReport};
use super::video_frames::VideoFramesReport;
use super::volume::Volume;
use crate::Summary;
use crate::emodel::{Codec, mos_of};
use crate::numeric::count_to_f64;

/// Totals of flows that were evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvictedFlows {
    /// Flows evicted because they were idle for longest when a new flow needed room. A flow that returns counts as
    /// new.
    pub flows: u64,
    /// RTP streams of these flows.
    pub streams: u64,
    /// Packets of these flows.
    pub packets: u64,
    /// Bytes of these flows.
    pub bytes: u64,
    /// Losses of these flows, where known ([`FlowReport::lost`]).
    pub lost: u64,
    /// RTP packets of these flows that were sent, by their sequence numbers.
    pub rtp_expected: u64,
    /// Of those, packets that were lost.
    pub rtp_lost: u64,
    /// Of those, packets later than the assumed de-jitter buffer waits.
    pub rtp_late: u64,
}

/// Quality of a flow, or of one RTP stream in it.
///
/// The serialised keys are part of the command line's contract. Times are in nanoseconds unless the key has another
/// unit. Unknown values are null.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowReport {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port; 0 for protocols without ports.
    pub sport: u16,
    /// Destination port; 0 for protocols without ports.
    pub dport: u16,
    /// IP protocol number (IANA).
    pub protocol: u8,
    /// Packets captured. A UDP datagram in fragments is one packet with the bytes of all fragments; if a fragment is
    /// missing, each of the others is a packet.
    pub packets: u64,
    /// Bytes on the wire, with link headers.
    pub bytes: u64,
    /// Earliest stamp, in nanoseconds since 1970 UTC.
    pub first_ns: i64,
    /// Latest stamp, in nanoseconds since 1970 UTC.
    pub last_ns: i64,
    /// Mean rate between the two, in bits per second; none if all packets came at one time.
    pub throughput_bps: Option<f64>,
    /// For RTP and UDP tests: missing packets by sequence numbers, each counted once, even if other packets were
    /// duplicated. For TCP: retransmitted segments, which the sender took for lost. None for other traffic.
    pub lost: Option<u64>,
    /// For RTP and UDP tests: duplicates beyond the first packet. For TCP over IPv4: segments that were captured again within
    /// 1 ms, with the same identification of IPv4. They are neither in `segments` nor retransmitted. None for other traffic.
    pub duplicated: Option<u64>,
    /// Packets that came after one sent later.
    pub reordered: Option<u64>,
    /// Times between packets. Percentiles are within 3 %.
    pub interarrival_ns: Option<Summary>,
    /// Packet trains: runs of packets without a gap longer than [`FlowConfig::train_gap`].
    pub trains: u64,
    /// Max time between two packets, in nanoseconds.
    pub max_gap_ns: Option<i64>,
    /// Packets of any flow that the capture lost between the first and the last packet of this one. Up to this number of
    /// its packets may be missing in all figures. None if it is unknown when the capture lost packets.
    #[serde(default)]
    pub capture_missed: Option<u64>,
    /// RTP figures.
    #[serde(flatten)]
    pub rtp: Option<RtpReport>,
    /// TCP figures.
    #[serde(flatten)]
    pub tcp: Option<TcpReport>,
    /// Figures of an iperf3 UDP test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iperf3: Option<Iperf3Report>,
    /// Figures of a test of `wirestamp send`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wirestamp: Option<WirestampReport>,
    /// Errors of an MPEG transport stream in UDP or RTP. None for other flows, and where packets were not captured
    /// completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport_stream: Option<TransportStreamReport>,
    /// Reports of the ends of an RTP stream by RTCP. None without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtcp: Option<RtcpReport>,
    /// VLANs, MPLS labels, PPPoE sessions, and tunnels if they are looked into, that carried the packets. None if no packet
    /// had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encapsulations: Option<EncapsulationsReport>,
    /// Frames of a video stream over RTP. None for other streams, for transport streams, and where the codec is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoFramesReport>,
}

/// Figures that every UDP test has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpTest {
    /// Name of the program.
    pub program: &'static str,
    /// Datagrams sent.
    pub sent: u64,
    /// Interarrival jitter.
    pub jitter_ms: f64,
    /// Datagrams lost by the capture.
    pub capture_lost: u64,
}

/// TCP figures of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpReport {
    /// Segments, as the network carries them: a segment that is longer counts as several ([`wirestamp_packet::Segmentation`]).
    #[serde(default)]
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Round-trip time from the observation point to the receiver: from a segment to the acknowledgment that covers
    /// it. The reports of both directions add up to the whole round trip. Percentiles are within 3 %. None if only one
    /// direction was captured.
    pub rtt_ns: Option<Summary>,
    /// Round-trip time of the SYN, in nanoseconds.
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

    /// Figures of the UDP test that the flow is.
    #[must_use]
    pub fn udp_test(&self) -> Option<UdpTest> {
        let of_iperf3 = self.iperf3.map(|it| UdpTest {
            program: "iperf3",
            sent: it.sent,
            jitter_ms: it.jitter_ms,
            capture_lost: it.capture_lost,
        });
        let of_ours = self.wirestamp.map(|it| UdpTest {
            program: "wirestamp",
            sent: it.sent,
            jitter_ms: it.jitter_ms,
            capture_lost: it.capture_lost,
        });
        of_iperf3.or(of_ours)
    }

    /// Packets sent, where known; otherwise packets captured.
    #[must_use]
    pub fn sent(&self) -> u64 {
        match (&self.rtp, self.udp_test(), &self.tcp) {
            (Some(rtp), _, _) => rtp.expected,
            (None, Some(test), _) => test.sent,
            (None, None, Some(tcp)) => tcp.segments,
            (None, None, None) => self.packets,
        }
    }

    /// Share of packets lost, 0 to 1, of those sent.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        let sent = self.sent();
        let lost = self.lost.filter(|_| sent > 0)?;
        Some((count_to_f64(lost) / count_to_f64(sent)).min(1.0))
    }

    /// Orders flows worst first: by lowest MOS, then highest loss, highest jitter, most bytes. An RTP stream without MOS
    /// has the place of a G.711 call with its loss.
    #[must_use]
    pub fn worst_first(&self, other: &Self) -> Ordering {
        let mos = |report: &Self| {
            let rtp = report.rtp.as_ref();
            rtp.map_or(f64::INFINITY, |rtp| rtp.mos.unwrap_or_else(|| of_loss(report.loss_ratio())))
        };
        let loss = |report: &Self| report.loss_ratio().unwrap_or(0.0);
        let jitter = |report: &Self| {
            let of_rtp = report.rtp.as_ref().and_then(|rtp| rtp.max_jitter_ms);
            of_rtp.or(report.udp_test().map(|test| test.jitter_ms)).unwrap_or(0.0)
        };
        mos(self)
            .total_cmp(&mos(other))
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
            capture_missed: None,
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

    fn of_stream(flow: FlowKey, stream: &Stream, config: &FlowConfig) -> Self {
        let clock_rate = stream.medium.encoding.as_ref().and_then(Encoding::jitter_rate);
        let capture_lost = stream.capture_lost > 0 || stream.uncertainty.lost.max() > 0;
        Self {
            lost: Some(stream.total.lost),
            duplicated: Some(stream.duplicated),
            reordered: Some(stream.reordered),
            rtp: Some(RtpReport::of(stream, config)),
            rtcp: stream.rtcp.as_ref().map(|rtcp| rtcp.report(clock_rate)),
            video: stream.frames.as_ref().map(|frames| frames.report(capture_lost)),
            ..Self::of(flow, &stream.volume)
        }
    }

    fn of_tcp(flow: FlowKey, volume: &Volume, direction: &Direction) -> Self {
        Self {
            lost: Some(direction.retransmitted),
            // Only IPv4 has an identification.
            duplicated: flow.source.is_ipv4().then_some(direction.duplicated),
            reordered: Some(direction.reordered),
            tcp: Some(TcpReport {
                segments: direction.segments,
                retransmitted: direction.retransmitted,
                rtt_ns: direction.round_trips.summary(),
                handshake_ns: direction.handshake.map(|it| it.as_nanos()),
            }),
            ..Self::of(flow, volume)
        }
    }
}

/// MOS of a call without delay by its loss alone: G.107 equation 7-29 for G.711 with concealment.
fn of_loss(ratio: Option<f64>) -> f64 {
    let percent = 100.0 * ratio.unwrap_or(0.0);
    let robustness = Codec::G711Concealing.loss_robustness().unwrap_or(f64::INFINITY);
    mos_of(93.2 - 95.0 * percent / (percent + robustness))
}

/// Report of the packets outside RTP streams.
fn of_rest(flow: &Flow, test: Option<&Test>) -> FlowReport {
    let report = FlowReport::of(flow.key, &flow.rest);
    let Some(test) = test else { return report };
    FlowReport {
        lost: Some(test.lost),
        duplicated: Some(test.duplicated),
        reordered: Some(test.reordered()),
        iperf3: test.iperf3(),
        wirestamp: test.wirestamp(),
        ..report
    }
}

/// Reports of a flow.
pub(super) fn of(flow: &Flow, config: &FlowConfig, losses: &LossTimes) -> Vec<FlowReport> {
    let mut reports = by_content(flow, config, losses);
    for report in &mut reports {
        let [first, last] = [report.first_ns, report.last_ns].map(Time::from_nanos);
        let missed = losses.between(first, last);
        report.capture_missed = Some(missed);
        report.encapsulations = flow.encapsulations.as_ref().map(|it| it.report());
        if let Some(rtcp) = report.rtcp.as_mut().filter(|_| missed > 0) {
            rtcp.forget_comparison();
        }
    }
    reports
}

fn by_content(flow: &Flow, config: &FlowConfig, losses: &LossTimes) -> Vec<FlowReport> {
    let (mut reports, mut test, mut transport_stream) = (Vec::new(), None, None);
    match &flow.content {
        Content::Tcp { direction, .. } => {
            return vec![FlowReport::of_tcp(flow.key, &flow.rest, direction)];
        }
        Content::Udp(media) => {
            (test, transport_stream) = (media.test.test(), media.transport_stream(losses));
            let streams = media.streams.iter();
            reports.extend(streams.map(|it| FlowReport::of_stream(flow.key, it, config)));
        }
        Content::Other => {}
    }
    if flow.rest.packets > 0 {
        reports.push(of_rest(flow, test));
    }
    let is_video =
        |report: &FlowReport| report.rtp.as_ref().is_some_and(|rtp| rtp.media_delivery.is_some());
    let place = reports.iter().position(is_video).or(reports.len().checked_sub(1));
    if let Some(place) = place {
        // The numbers of RTP show more losses than the counters of its content.
        let is_rtp = reports[place].rtp.is_some();
        reports[place].transport_stream = transport_stream.map(|it| TransportStreamReport {
            media_delivery: it.media_delivery.filter(|_| !is_rtp),
            ..it
        });
    }
    reports
}

/// Adds the counts of an evicted flow.
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
                sum.rtp_expected += stream.total.expected;
                sum.rtp_lost += stream.total.lost;
                sum.rtp_late += stream.late().unwrap_or(0);
            }
        }
        Content::Other => {}
    }
}
