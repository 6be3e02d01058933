//! The stream that a report is about.
//!
//! A stream is known by its SSRC and its addresses. Its receiver reports in the opposite direction, its sender in the same
//! one. RTCP has the ports of RTP (RFC 5761), or the next higher ones (RFC 3550 section 11).

use std::net::SocketAddr;

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::FlowKey;
use wirestamp_packet::rtcp::{
    Blocks, Compound, ExtendedBlock, ExtendedBlocks, ReportBlock, RtcpPacket, VoipMetrics,
    first_sender,
};

use super::super::stream::Stream;
use super::super::table::{Content, Table};

/// Max blocks of a datagram that are joined. An RR has at most 31; the others are counted as unmatched.
const MAX_BLOCKS: usize = 128;

/// The flows that may have the streams of one direction.
type Candidates = [Option<FlowKey>; 2];

/// RTCP that belongs to no stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::flow) struct Unjoined {
    /// Reports that are about no stream, or about several.
    pub(in crate::flow) reports: u64,
    /// Datagrams that cannot be read, of an end that receives streams and does not send one with the SSRC of the datagram.
    pub(in crate::flow) unreadable: u64,
}

/// Records the RTCP of a datagram: its flow, captured bytes, length on the wire, and time. Adds to `unjoined` what belongs to
/// no stream.
#[cold]
pub(in crate::flow) fn record(
    table: &mut Table,
    flow: &FlowKey,
    (payload, on_wire): (&[u8], usize),
    time: Time<Utc>,
    unjoined: &mut Unjoined,
) {
    let back = FlowKey { source: flow.destination, destination: flow.source, ..*flow };
    let (sent, received) = (candidates(flow), candidates(&back));
    let mut join = Join { table, sent, received, time, blocks: 0, unmatched: 0 };
    match Compound::parse(payload, on_wire) {
        Some(compound) => compound.packets().for_each(|packet| join.packet(&packet)),
        None => {
            if let Some(sender) = first_sender(payload)
                && let Some(stream) = join.sent_stream(sender)
            {
                stream.rtcp().unreadable();
            } else if join.receives_streams() {
                unjoined.unreadable += 1;
            }
        }
    }
    unjoined.reports += join.unmatched;
}

/// Flows with the ports of this RTCP, and with the next lower ones.
fn candidates(flow: &FlowKey) -> Candidates {
    let lower = |end: SocketAddr| Some(SocketAddr::new(end.ip(), end.port().checked_sub(1)?));
    let ends = lower(flow.source).zip(lower(flow.destination));
    [Some(*flow), ends.map(|(source, destination)| FlowKey { source, destination, ..*flow })]
}

/// A datagram that is joined with the streams.
struct Join<'a> {
    table: &'a mut Table,
    /// Flows of the streams that its sender sends, and of those that it receives.
    sent: Candidates,
    received: Candidates,
    time: Time<Utc>,
    blocks: usize,
    unmatched: u64,
}

impl Join<'_> {
    fn packet(&mut self, packet: &RtcpPacket<'_>) {
        match packet {
            RtcpPacket::SenderReport { sender, info, blocks } => {
                let time = self.time;
                if let Some(stream) = self.sent_stream(*sender) {
                    stream.rtcp().sender_report(info.ntp_middle(), time);
                }
                self.receiver_reports(*sender, blocks);
            }
            RtcpPacket::ReceiverReport { sender, blocks } => self.receiver_reports(*sender, blocks),
            RtcpPacket::ExtendedReport { sender, blocks } => self.extended_reports(*sender, blocks),
            RtcpPacket::Goodbye { .. } | RtcpPacket::Other { .. } => {}
        }
    }

    fn receiver_reports(&mut self, sender: u32, blocks: &Blocks<'_>) {
        for block in blocks.iter() {
            self.receiver_report(sender, &block);
        }
    }

    fn receiver_report(&mut self, sender: u32, block: &ReportBlock) {
        let time = self.time;
        let Some(stream) = self.received_stream(block.ssrc) else { return };
        let Some(round_trip) = stream.rtcp().receiver_report(sender, block, time) else { return };
        // The end that answers is also the sender of its own stream.
        if let Some(own) = self.sent_stream(sender) {
            own.rtcp().round_trip_to_sender(round_trip);
        }
    }

    fn extended_reports(&mut self, sender: u32, blocks: &ExtendedBlocks<'_>) {
        let time = self.time;
        for block in blocks.iter() {
            match block {
                ExtendedBlock::ReceiverReference { ntp_middle } => {
                    self.reference(sender, ntp_middle);
                }
                ExtendedBlock::DelaySinceLast(answers) => {
                    let Some(own) = self.sent_stream(sender) else { continue };
                    for answer in answers.iter().take(MAX_BLOCKS) {
                        own.rtcp().answer(&answer, time);
                    }
                }
                ExtendedBlock::VoipMetrics(metrics) => self.voip_metrics(&metrics),
                ExtendedBlock::Other { .. } => {}
            }
        }
    }

    /// A reference time is for the senders of all streams that its reporter receives.
    fn reference(&mut self, reporter: u32, ntp_middle: u32) {
        for key in self.received.into_iter().flatten() {
            let Some(place) = self.table.place(&key) else { continue };
            let Content::Udp(media) = &mut self.table.flow(place).content else { continue };
            let reported = media.streams.iter_mut().filter_map(|stream| stream.rtcp.as_mut());
            for rtcp in reported.filter(|rtcp| rtcp.is_received_by(reporter)) {
                rtcp.reference(reporter, ntp_middle, self.time);
            }
        }
    }

    fn voip_metrics(&mut self, metrics: &VoipMetrics) {
        if let Some(stream) = self.received_stream(metrics.ssrc) {
            stream.rtcp().voip_metrics(metrics);
        }
    }

    /// Whether the sender of the datagram receives a stream.
    fn receives_streams(&mut self) -> bool {
        self.received.into_iter().flatten().any(|key| {
            let place = self.table.place(&key);
            place.is_some_and(|place| self.table.flow(place).streams() > 0)
        })
    }

    fn sent_stream(&mut self, ssrc: u32) -> Option<&mut Stream> {
        find(self.table, self.sent, ssrc)
    }

    /// The stream of a report, which is counted if there is none.
    fn received_stream(&mut self, ssrc: u32) -> Option<&mut Stream> {
        self.blocks += 1;
        let candidates = if self.blocks > MAX_BLOCKS { [None; 2] } else { self.received };
        let found = find(self.table, candidates, ssrc);
        self.unmatched += u64::from(found.is_none());
        found
    }
}

/// The stream with this SSRC, if only one of these flows has it: the newest one, because those of earlier calls come first.
fn find(table: &mut Table, candidates: Candidates, ssrc: u32) -> Option<&mut Stream> {
    let mut found = None;
    for key in candidates.into_iter().flatten() {
        let Some(place) = table.place(&key) else { continue };
        let Content::Udp(media) = &table.flow(place).content else { continue };
        if let Some(stream) = media.streams.iter().rposition(|stream| stream.ssrc == ssrc)
            && found.replace((place, stream)).is_some()
        {
            return None;
        }
    }
    let (place, stream) = found?;
    match &mut table.flow(place).content {
        Content::Udp(media) => media.streams.get_mut(stream),
        _ => None,
    }
}
