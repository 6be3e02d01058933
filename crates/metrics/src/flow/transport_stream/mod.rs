//! Errors of an MPEG transport stream: ETSI TR 101 290 (V1.4.1) sections 5.2.1 and 5.2.2.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the stream, and its report |
//! | `part.rs` | the packets of one PID |

mod part;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::transport_stream::{
    NULL_PID, PACKET_BYTES, Section, SectionError, TsPacket, begins_packet, is_marked_damaged,
    is_transport_stream,
};

use part::Part;

/// Min datagrams in a row that prove that a flow is a transport stream.
const MIN_DATAGRAMS: u64 = 4;
/// Max PIDs that are observed.
const MAX_PARTS: usize = 256;

/// Time between two checks of what is missing.
const CHECK_INTERVAL: Span = Span::from_millis(50);

/// PID of the program association table.
const ASSOCIATION_PID: u16 = 0;
/// Table of the program association table, and of a program map (ISO/IEC 13818-1 table 2-31).
const ASSOCIATION_TABLE: u8 = 0;
const MAP_TABLE: u8 = 2;

/// Counts of TR 101 290. Packets that the capture lost, or that arrive reordered, count as errors of continuity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransportStreamReport {
    /// Packets of 188 bytes.
    pub packets: u64,
    /// Packets without content (PID 0x1FFF), which fill the stream to a constant rate.
    pub null_packets: u64,
    /// PIDs, without that of null packets.
    pub pids: u64,
    /// Indicator 1.2: packets without the byte 0x47 at the begin.
    pub sync_byte_errors: u64,
    /// 1.3: the program association table is missing for more than 0.5 s (each 0.5 s counts), encrypted, or another table has
    /// its PID.
    pub pat_errors: u64,
    /// 1.4: packets of a PID are missing, out of order, or repeated more than once.
    pub continuity_errors: u64,
    /// 1.5: a program map is missing for more than 0.5 s, or encrypted; each 0.5 s counts.
    pub pmt_errors: u64,
    /// 2.1: packets that a receiver before this point marked as damaged.
    pub transport_errors: u64,
    /// 2.2, of program association tables and program maps that are in one packet: a wrong checksum.
    pub crc_errors: u64,
    /// 2.3a: more than 100 ms between the arrivals of two clock references (PCR) of a PID.
    pub pcr_repetition_errors: u64,
    /// 2.3b: clock references that jump back, or by more than 100 ms ahead, without a mark.
    pub pcr_discontinuity_errors: u64,
    /// 2.5: more than 700 ms between the arrivals of two presentation time stamps of audio or video of a PID.
    pub pts_errors: u64,
    /// Packets with an impossible length of the adaptation field.
    pub malformed_packets: u64,
}

/// A stream that is observed, in bounded memory.
#[derive(Clone, Debug, Default)]
pub(super) struct TransportStream {
    datagrams: u64,
    /// Whether a datagram was not captured completely.
    is_cut: bool,
    counts: TransportStreamReport,
    parts: BTreeMap<u16, Part>,
    /// When it was last checked what is missing.
    checked: Option<Time<Utc>>,
}

impl TransportStream {
    /// Records the payload of the next datagram of the flow: its captured bytes, and its length on the wire. A datagram with
    /// other content is ignored, or begins the recognition again.
    pub(super) fn record(&mut self, payload: &[u8], length: usize, time: Time<Utc>) {
        let is_known = self.datagrams >= MIN_DATAGRAMS;
        if payload.len() < length {
            self.is_cut |= is_known;
            return;
        }
        if !is_known && !is_transport_stream(payload) {
            *self = Self::default();
            return;
        }
        if is_known && (payload.is_empty() || !payload.len().is_multiple_of(PACKET_BYTES)) {
            return;
        }
        self.datagrams += 1;
        self.check(time);
        payload.chunks(PACKET_BYTES).for_each(|bytes| self.record_packet(bytes, time));
    }

    /// The counts; none for other flows, and if packets were not captured completely.
    pub(super) fn report(&self) -> Option<TransportStreamReport> {
        let is_known = self.datagrams >= MIN_DATAGRAMS && !self.is_cut;
        let pids = self.parts.values().filter(|part| part.has_packets()).count();
        let pids = u64::try_from(pids).unwrap_or(u64::MAX);
        is_known.then_some(TransportStreamReport { pids, ..self.counts })
    }

    /// Counts what is missing for too long by now.
    fn check(&mut self, time: Time<Utc>) {
        let Some(checked) = self.checked else {
            self.checked = Some(time);
            self.parts.entry(ASSOCIATION_PID).or_default().expect_table(time);
            return;
        };
        if time - checked < CHECK_INTERVAL {
            return;
        }
        self.checked = Some(time);
        for (pid, part) in &mut self.parts {
            let missing = part.check(time, &mut self.counts);
            match *pid {
                ASSOCIATION_PID => self.counts.pat_errors += missing,
                _ => self.counts.pmt_errors += missing,
            }
        }
    }

    fn record_packet(&mut self, bytes: &[u8], time: Time<Utc>) {
        self.counts.packets += 1;
        if !begins_packet(bytes) {
            self.counts.sync_byte_errors += 1;
            return;
        }
        let packet = TsPacket::parse(bytes);
        if is_marked_damaged(bytes) {
            // No further errors are counted of it: any field may be wrong.
            self.counts.transport_errors += 1;
            if let Some(part) = packet.and_then(|packet| self.parts.get_mut(&packet.pid)) {
                part.interrupt();
            }
            return;
        }
        let Some(packet) = packet else {
            self.counts.malformed_packets += 1;
            return;
        };
        if packet.pid == NULL_PID {
            self.counts.null_packets += 1;
            return;
        }
        if !self.parts.contains_key(&packet.pid) && self.parts.len() >= MAX_PARTS {
            return;
        }
        let part = self.parts.entry(packet.pid).or_default();
        part.record(&packet, time, &mut self.counts);
        if part.is_table() && packet.begins_unit {
            match packet.pid {
                ASSOCIATION_PID => self.record_associations(&packet, time),
                _ => self.record_map(&packet, time),
            }
        }
    }

    /// Follows the program association table.
    fn record_associations(&mut self, packet: &TsPacket<'_>, time: Time<Utc>) {
        let Self { counts, parts, .. } = self;
        let missing = parts.entry(ASSOCIATION_PID).or_default().begin_table(time);
        counts.pat_errors += missing + u64::from(packet.scrambled);
        match Section::begin(packet) {
            Ok(section) if section.table != ASSOCIATION_TABLE => counts.pat_errors += 1,
            Ok(section) if section.is_current => {
                for program in section.associations().filter(|it| it.program != 0) {
                    if parts.len() < MAX_PARTS || parts.contains_key(&program.pid) {
                        parts.entry(program.pid).or_default().expect_table(time);
                    }
                }
            }
            Err(SectionError::Checksum) => counts.crc_errors += 1,
            Ok(_) | Err(SectionError::Continued | SectionError::Malformed) => {}
        }
    }

    /// Follows a program map.
    fn record_map(&mut self, packet: &TsPacket<'_>, time: Time<Utc>) {
        let Some(part) = self.parts.get_mut(&packet.pid) else { return };
        match Section::begin(packet) {
            // Other tables may have the same PID.
            Ok(section) if section.table != MAP_TABLE => {}
            found => {
                self.counts.pmt_errors += part.begin_table(time) + u64::from(packet.scrambled);
                self.counts.crc_errors += u64::from(found == Err(SectionError::Checksum));
            }
        }
    }
}
