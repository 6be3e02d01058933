//! Where packets become flows.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::rtp::Rtp;
use wirestamp_packet::{FlowKey, Packet, TcpSegment};

use super::config::FlowConfig;
use super::header::{Header, StreamContext};
use super::media::{Media, PacketKind};
use super::missed::CaptureLosses;
use super::report::{self, EvictedFlows, FlowReport};
use super::signalling::Announcements;
use super::table::{Content, Flow, Table};
use super::volume::Volume;
use crate::CaptureLoss;

/// A packet at the point of observation.
#[derive(Clone, Copy, Debug)]
pub struct FlowPacket<'a> {
    /// What was captured of it.
    pub packet: &'a Packet<'a>,
    /// Bytes of its frame on the wire.
    pub length: u32,
    /// When it passed.
    pub time: Time<Utc>,
}

/// The quality of each flow at one point, in bounded memory.
///
/// RTP streams are recognised without being told a port: by several packets of one source in sequence
/// (RFC 3550 appendix A.1), or at once where SIP announced them. What SIP said also tells what
/// dynamic payload types mean. UDP tests of iperf3 are recognised by the clocks and counts in them.
#[derive(Clone, Debug)]
pub struct FlowMonitor {
    config: FlowConfig,
    table: Table,
    announced: Announcements,
    missed: CaptureLosses,
    capture_missed: u64,
    total: Volume,
    streams: usize,
    evicted: EvictedFlows,
}

impl FlowMonitor {
    /// A monitor that has seen nothing.
    #[must_use]
    pub fn new(config: FlowConfig) -> Self {
        Self {
            config,
            table: Table::new(config.flows),
            announced: Announcements::default(),
            missed: CaptureLosses::default(),
            capture_missed: 0,
            total: Volume::default(),
            streams: 0,
            evicted: EvictedFlows::default(),
        }
    }

    /// Takes the next packet, in the order of capture.
    pub fn observe(&mut self, seen: &FlowPacket<'_>) {
        let FlowPacket { packet, length, time } = *seen;
        self.total.packets += 1;
        self.total.bytes += u64::from(length);
        self.total.first = self.total.first.map_or(Some(time), |first| Some(first.min(time)));
        self.total.last = self.total.last.max(Some(time));
        let key = packet.flow();
        let place = self.table.place(&key).unwrap_or_else(|| self.open(key));
        self.announced.read(&key, packet.payload());
        let flow = self.table.flow(place);
        flow.last_packet = self.total.packets;
        match &flow.content {
            Content::Udp(_) => self.observe_datagram(place, seen),
            Content::Tcp { .. } => {
                flow.rest.record(length, time, self.config.train_gap);
                self.observe_segment(place, seen);
            }
            Content::Other => flow.rest.record(length, time, self.config.train_gap),
        }
        if self.missed.is_urgent() {
            self.decide();
        }
    }

    /// Takes note that the capture lost packets, before or after the packets around them are observed:
    /// packets of RTP that are missing at that time are counted as the capture's, not as the
    /// network's.
    ///
    /// As many are as the capture lost: those that were due in the stretch by the numbers,
    /// timestamps and arrivals around them, and if they are fewer, those that may have passed in it
    /// and were due nearest to it. What is missing beyond that is the network's. Which ones they are
    /// cannot be known where both lost packets at the same time; all streams then have their part
    /// in what the network lost, by what they miss, and each report says between which bounds the truth
    /// lies. The bounds hold if what the capture lost was of flows that were seen on both sides of it,
    /// and what of it has no numbers came no denser than it was seen to come.
    pub fn missed(&mut self, missed: CaptureLoss) {
        self.capture_missed = self.capture_missed.saturating_add(missed.packets);
        self.missed.note(missed);
        if self.missed.is_urgent() {
            self.decide();
        }
    }

    /// Decides which of the packets that are missing the capture lost, if there is news of them.
    fn decide(&mut self) {
        if !self.missed.is_due() {
            return;
        }
        let others: Vec<_> = self.table.flows().iter().filter_map(Flow::unnumbered).collect();
        let mut gaps: Vec<_> = self.table.media().flat_map(Media::gaps).collect();
        self.missed.decide(&mut gaps, &others);
        self.table.media().for_each(|media| media.apply_decisions(&mut self.missed));
        self.missed.make_room();
    }

    fn open(&mut self, key: FlowKey) -> usize {
        let (place, evicted) = self.table.open(key);
        if let Some(flow) = evicted {
            self.streams -= flow.streams();
            report::add_evicted(&flow, &mut self.evicted);
        }
        place
    }

    fn observe_datagram(&mut self, place: usize, seen: &FlowPacket<'_>) {
        let FlowPacket { packet, length, time } = *seen;
        let Self { config, table, announced, missed, streams, .. } = self;
        let Flow { key, rest, content, .. } = table.flow(place);
        let on_wire = packet.payload_length().unwrap_or(packet.payload().len());
        let Content::Udp(media) = content else { return };
        let Ok(rtp) = Rtp::parse(packet.payload(), on_wire) else {
            media.test.record(packet.payload(), time, missed);
            return rest.record(length, time, config.train_gap);
        };
        let context = StreamContext { config, announced, flow: key };
        let room = *streams < config.flows;
        match media.record(&Header::of(&rtp, length, time), room, context, missed) {
            PacketKind::OfStream => {}
            PacketKind::Unknown => rest.record(length, time, config.train_gap),
            PacketKind::Recognised { packets, bytes } => {
                *streams += 1;
                // All but this one were counted with the rest until now.
                rest.packets -= packets - 1;
                rest.bytes -= bytes - u64::from(length);
                if rest.packets == 0 {
                    *rest = Volume::default();
                }
            }
        }
    }

    fn observe_segment(&mut self, place: usize, seen: &FlowPacket<'_>) {
        let Some(segment) = TcpSegment::of(seen.packet) else { return };
        let mut back = None;
        if let Some(peer) = self.table.peer(place) {
            if let Some(until) = segment.acknowledgment {
                peer.acknowledged(until, seen.time);
            }
            back = peer.round_trips.min();
        }
        if let Content::Tcp { direction, .. } = &mut self.table.flow(place).content {
            direction.sent(&segment, seen.time, back);
        }
    }

    /// What is known of each flow, in no particular order: one report for each RTP stream, and one for
    /// the packets of a flow that belong to none. What is missing is judged by all that is known now,
    /// which changes the flows.
    pub fn flows(&mut self) -> impl Iterator<Item = FlowReport> {
        self.some_flows(0, usize::MAX)
    }

    /// The same of `count` flows only, those after the first `skipped`: flows keep their places, so
    /// that one who has little time can ask for some and come again for the others.
    pub fn some_flows(&mut self, skipped: usize, count: usize) -> impl Iterator<Item = FlowReport> {
        self.decide();
        let config = self.config;
        let flows = self.table.flows().iter().skip(skipped).take(count);
        flows.flat_map(move |flow| report::of(flow, &config))
    }

    /// How many flows have a state of their own.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.flows().len()
    }

    /// Whether no packet has come yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was given up for want of room.
    #[must_use]
    pub fn evicted(&self) -> &EvictedFlows {
        &self.evicted
    }

    /// Packets that the capture lost at times that are known ([`Self::missed`]).
    #[must_use]
    pub fn capture_missed(&self) -> u64 {
        self.capture_missed
    }

    /// Packets of all flows.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.total.packets
    }

    /// Their bytes on the wire.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.total.bytes
    }

    /// From the earliest packet to the latest.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.total.duration()
    }

    /// How flows are watched.
    #[must_use]
    pub fn config(&self) -> &FlowConfig {
        &self.config
    }
}
