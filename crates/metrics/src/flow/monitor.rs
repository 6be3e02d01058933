//! Assignment of packets to flows.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::rtcp::begins_rtcp;
use wirestamp_packet::rtp::Rtp;
use wirestamp_packet::{
    Encapsulation, FlowKey, JoinedDatagram, Packet, Reassembly, Segmentation, TcpSegment,
};

use super::call::{CallReport, Calls};
use super::config::FlowConfig;
use super::ended_streams::EndedStreams;
use super::header::{Header, StreamContext};
use super::loss_times::LossTimes;
use super::media::{Media, PacketKind};
use super::missed::CaptureLosses;
use super::report::{self, EvictedFlows, FlowReport};
use super::rtcp;
use super::signalling::{Announcements, is_sip};
use super::table::{Content, Flow, Table};
use super::volume::Volume;
use crate::CaptureLoss;

/// A packet at the observation point.
#[derive(Clone, Copy, Debug)]
pub struct FlowPacket<'a> {
    /// Captured bytes.
    pub packet: &'a Packet<'a>,
    /// Length of the frame on the wire in bytes.
    pub length: u32,
    /// Capture time.
    pub time: Time<Utc>,
    /// What carried it, if anything.
    pub encapsulation: Option<Encapsulation>,
}

/// A UDP datagram, captured in one packet or in fragments.
struct Datagram<'a> {
    /// Captured bytes of the payload, and its length on the wire.
    payload: &'a [u8],
    payload_length: usize,
    /// Bytes of all its frames on the wire.
    length: u32,
    time: Time<Utc>,
    /// Whether it is already counted among the packets outside RTP streams.
    is_counted: bool,
}

/// Quality of each flow at one point, in bounded memory.
///
/// RTP streams are recognised on any port: by several packets of one source in sequence (RFC 3550 appendix A.1), or by
/// the first packet where SIP announced the stream. SIP also supplies the meaning of dynamic payload types. UDP tests
/// of iperf3 are recognised by their clocks and counters.
///
/// A UDP datagram in fragments is one packet of its flow, with the bytes of all fragments, if all were captured. An RTP
/// stream has it at the time of the fragment that completes it. Until then, and if a fragment is missing, each fragment is a
/// packet: the first one of the flow, later ones of a flow with the ports 0.
///
/// A call between the ports of an earlier call that is over has its own RTP streams, also with the same SSRC.
#[derive(Clone, Debug)]
pub struct FlowMonitor {
    /// Configuration.
    pub config: FlowConfig,
    table: Table,
    announced: Announcements,
    calls: Calls,
    /// Last packet of the evicted RTP streams.
    evicted_until: Option<Time<Utc>>,
    segmentation: Segmentation,
    fragments: Reassembly,
    missed: CaptureLosses,
    loss_times: LossTimes,
    total: Volume,
    streams: usize,
    unjoined_rtcp: rtcp::Unjoined,
    /// Totals of evicted flows.
    pub evicted: EvictedFlows,
    /// MOS of ended RTP streams.
    pub ended: EndedStreams,
}

impl FlowMonitor {
    /// An empty monitor.
    #[must_use]
    pub fn new(config: FlowConfig) -> Self {
        Self {
            table: Table::new(config.flows),
            calls: Calls::new(config.calls),
            evicted_until: None,
            announced: Announcements::new(2 * config.calls),
            config,
            segmentation: Segmentation::default(),
            fragments: Reassembly::default(),
            missed: CaptureLosses::default(),
            loss_times: LossTimes::default(),
            total: Volume::default(),
            streams: 0,
            unjoined_rtcp: rtcp::Unjoined::default(),
            evicted: EvictedFlows::default(),
            ended: EndedStreams::default(),
        }
    }

    /// Records the next packet, in the order of capture.
    pub fn observe(&mut self, seen: &FlowPacket<'_>) {
        let FlowPacket { packet, length, time, encapsulation } = *seen;
        self.total.packets += 1;
        self.total.bytes += u64::from(length);
        self.total.first = self.total.first.map_or(Some(time), |first| Some(first.min(time)));
        self.total.last = self.total.last.max(Some(time));
        let key = packet.flow();
        let place = self.table.place(&key).unwrap_or_else(|| self.open(key));
        let flow = self.table.flow(place);
        flow.last_packet = self.total.packets;
        if let Some(encapsulation) = encapsulation {
            flow.encapsulations.get_or_insert_default().record(encapsulation);
        }
        match &flow.content {
            Content::Udp(_) if packet.is_fragment() => {
                flow.rest.record(length, time, self.config.train_gap);
                self.observe_fragment(seen);
            }
            Content::Udp(_) => {
                let payload = packet.payload();
                if is_sip(&key, payload) {
                    self.read_message(payload, &key, time);
                }
                let payload_length = packet.payload_length().unwrap_or(payload.len());
                let datagram =
                    Datagram { payload, payload_length, length, time, is_counted: false };
                self.observe_datagram(place, &datagram);
            }
            Content::Tcp { .. } => {
                flow.rest.record(length, time, self.config.train_gap);
                self.observe_segment(place, seen);
            }
            Content::Other => flow.rest.record(length, time, self.config.train_gap),
        }
        if self.missed.is_urgent {
            self.decide();
        }
    }

    /// Records a loss of the capture, before or after the packets around it are observed. RTP packets missing at that
    /// time are counted as lost by the capture, not by the network.
    ///
    /// The number of packets assigned to the capture is the number it lost: first those due in the interval by
    /// sequence numbers, timestamps and arrivals around them, then those due nearest to it that may have passed in it.
    /// All other missing packets are network losses.
    ///
    /// Where both lost packets at the same time, it is unknown which packets these are. The network losses are then
    /// distributed over all streams in proportion to their missing packets, and each report has the bounds of the true
    /// value. The bounds hold if the capture lost packets of flows captured before and after the interval, and if
    /// packets without numbers came no closer together than observed.
    pub fn missed(&mut self, missed: CaptureLoss) {
        self.loss_times.note(missed);
        self.missed.note(missed);
        if self.missed.is_urgent {
            self.decide();
        }
    }

    /// Assigns missing packets to the capture or the network, if there is new information.
    fn decide(&mut self) {
        if !self.missed.is_due {
            return;
        }
        let others: Vec<_> = self.table.flows.iter().filter_map(Flow::unnumbered).collect();
        let mut gaps: Vec<_> = self.table.media().flat_map(Media::gaps).collect();
        self.missed.decide(&mut gaps, &others);
        self.table.media().for_each(|media| media.apply_decisions(&mut self.missed));
        self.missed.make_room();
    }

    fn open(&mut self, key: FlowKey) -> usize {
        let (place, evicted) = self.table.open(key);
        if let Some(mut flow) = evicted {
            if let Content::Tcp { sip: Some(stream), .. } = &mut flow.content {
                for (message, time) in stream.flush() {
                    self.read_message(&message, &flow.key, time);
                }
            }
            self.streams -= flow.streams();
            self.evicted_until = self.evicted_until.max(flow.last_of_streams());
            report::add_evicted(&flow, &mut self.evicted);
            if let Content::Udp(media) = &flow.content {
                self.ended.count_evicted(&media.streams, &self.config);
            }
        }
        place
    }

    fn observe_datagram(&mut self, place: usize, datagram: &Datagram<'_>) {
        let Datagram { payload, payload_length: on_wire, length, time, is_counted } = *datagram;
        let Self { config, table, announced, missed, loss_times, streams, unjoined_rtcp, .. } =
            self;
        let Flow { key, rest, content, .. } = table.flow(place);
        let Content::Udp(media) = content else { return };
        let Some(rtp) = Rtp::parse(payload, on_wire) else {
            media.test.record(payload, time, missed);
            media.record_payload(payload, on_wire, time, config.pid_period, loss_times);
            if !is_counted {
                rest.record(length, time, config.train_gap);
            }
            if begins_rtcp(payload) {
                let key = *key;
                rtcp::record(table, &key, (payload, on_wire), time, unjoined_rtcp);
            }
            return;
        };
        let payload_length = rtp.payload_range().map_or(0, |range| range.len());
        media.record_payload(rtp.payload(), payload_length, time, config.pid_period, loss_times);
        let context = StreamContext { config, announced, flow: key };
        let room = *streams < config.flows;
        match media.record(&Header::of(&rtp, length, time), room, context, missed) {
            PacketKind::OfStream if is_counted => rest.remove(1, length.into()),
            PacketKind::Unknown if !is_counted => rest.record(length, time, config.train_gap),
            PacketKind::OfStream | PacketKind::Unknown => {}
            PacketKind::Recognised { packets, bytes } => {
                *streams += 1;
                // The packets before this one were counted with the rest until now.
                let new = if is_counted { (0, 0) } else { (1, u64::from(length)) };
                rest.remove(packets - new.0, bytes - new.1);
            }
        }
    }

    fn observe_segment(&mut self, place: usize, seen: &FlowPacket<'_>) {
        let packets = self.segmentation.packets(seen.packet);
        let Some(segment) = TcpSegment::of(seen.packet) else { return };
        let mut back = None;
        if let Some(peer) = self.table.peer(place) {
            if let Some(until) = segment.acknowledgment {
                peer.record_acknowledgment(until, seen.time);
            }
            back = peer.round_trips.min();
        }
        let Flow { key, content, .. } = self.table.flow(place);
        let Content::Tcp { direction, sip, .. } = content else { return };
        if direction.record_duplicate(&segment, seen.packet.identification(), packets, seen.time) {
            return;
        }
        direction.sent(&segment, packets, seen.time, back);
        let payload = seen.packet.payload();
        if sip.is_none() && is_sip(key, payload) {
            *sip = Some(Box::default());
        }
        if let Some(stream) = sip {
            let key = *key;
            for (message, time) in stream.record(&segment, payload, seen.time) {
                self.read_message(&message, &key, time);
            }
        }
    }

    /// Joins fragments of UDP, which are already counted as packets. A complete datagram becomes one packet of its flow.
    #[cold]
    fn observe_fragment(&mut self, seen: &FlowPacket<'_>) {
        let FlowPacket { packet, length, time, .. } = *seen;
        let Some(joined) = self.fragments.join(packet, length, time) else { return };
        let JoinedDatagram { flow: key, payload, payload_length, length, .. } = joined;
        if is_sip(&key, &payload) {
            self.read_message(&payload, &key, time);
        }
        let later_bytes = u64::from(length - joined.first_length);
        let mut later = key;
        later.source.set_port(0);
        later.destination.set_port(0);
        if let Some(place) = self.table.place(&later) {
            let later_packets = u64::from(joined.fragments - 1);
            self.table.flow(place).rest.remove(later_packets, later_bytes);
        }
        let place = self.table.place(&key).unwrap_or_else(|| self.open(key));
        let flow = self.table.flow(place);
        flow.last_packet = self.total.packets;
        // Without a packet, the flow that had the first fragment was evicted.
        let is_counted = flow.rest.packets > 0;
        if is_counted {
            flow.rest.bytes += later_bytes;
        }
        let payload = &*payload;
        let datagram = Datagram { payload, payload_length, length, time, is_counted };
        self.observe_datagram(place, &datagram);
    }

    /// Reads a message of SIP.
    #[cold]
    fn read_message(&mut self, message: &[u8], flow: &FlowKey, time: Time<Utc>) {
        let Self { announced, calls, .. } = self;
        calls.record(message, flow, time);
        announced.note(message, |later, former| calls.follows(later, former));
    }

    /// The calls that SIP messages describe, oldest first, with their streams of `flows`.
    pub fn calls(&mut self, flows: &[FlowReport]) -> Vec<CallReport> {
        for (flow, message, time) in self.table.waiting_messages() {
            self.read_message(&message, &flow, time);
        }
        self.calls.reports(flows, self.evicted_until)
    }

    /// The same during the capture. Messages of TCP that wait for earlier segments are not included.
    #[must_use]
    pub fn calls_so_far(&self, flows: &[FlowReport]) -> Vec<CallReport> {
        self.calls.reports(flows, self.evicted_until)
    }

    /// Calls that were evicted for new ones.
    #[must_use]
    pub fn evicted_calls(&self) -> u64 {
        self.calls.evicted
    }

    /// Report blocks and VoIP metrics of RTCP that were joined with no RTP stream: none was captured, its ports are others,
    /// it was not recognised yet, or several streams have its SSRC.
    #[must_use]
    pub fn unmatched_rtcp_reports(&self) -> u64 {
        self.unjoined_rtcp.reports
    }

    /// Datagrams of RTCP that cannot be read, of an end that receives RTP streams and sends none with the SSRC of the datagram.
    /// They are encrypted (SRTCP), not captured completely, or damaged.
    #[must_use]
    pub fn unreadable_rtcp_packets(&self) -> u64 {
        self.unjoined_rtcp.unreadable
    }

    /// UDP datagrams in fragments that were not joined, because fragments are missing. RTP packets among them count as lost.
    #[must_use]
    pub const fn datagrams_not_joined(&self) -> u64 {
        self.fragments.not_joined()
    }

    /// Reports of all flows, in no particular order: one for each RTP stream, and one for the other packets of a flow.
    /// Reassigns missing packets first, which changes the flows.
    pub fn flows(&mut self) -> impl Iterator<Item = FlowReport> {
        self.some_flows(0, usize::MAX)
    }

    /// Reports of `count` flows after the first `skipped`. Flows keep their positions, so that a caller with little
    /// time can read them in portions.
    pub fn some_flows(&mut self, skipped: usize, count: usize) -> impl Iterator<Item = FlowReport> {
        self.decide();
        let (config, losses) = (&self.config, &self.loss_times);
        let flows = self.table.flows.iter().skip(skipped).take(count);
        flows.flat_map(move |flow| report::of(flow, config, losses))
    }

    /// Adds the streams of `count` flows after the first `skipped` that have ended by the newest packet to [`Self::ended`].
    pub fn count_ended(&mut self, skipped: usize, count: usize) {
        self.decide();
        let Some(now) = self.total.last else { return };
        let Self { table, ended, config, .. } = self;
        for flow in table.flows.iter_mut().skip(skipped).take(count) {
            if let Content::Udp(media) = &mut flow.content {
                ended.count_ended(&mut media.streams, now, config);
            }
        }
    }

    /// Packets lost by the capture at known times ([`Self::missed`]).
    #[must_use]
    pub fn capture_missed(&self) -> u64 {
        self.loss_times.packets
    }

    /// Number of flows kept.
    #[must_use]
    pub fn flow_count(&self) -> usize {
        self.table.flows.len()
    }

    /// Packets of all flows.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.total.packets
    }

    /// Bytes of all flows on the wire.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.total.bytes
    }

    /// Time from the earliest packet to the latest.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.total.duration()
    }
}
