//! Writes classic pcap: file header and packet records (pcap-savefile(5)).

use super::buffer::{Record, RecordedPacket};
use super::times::since_epoch;
use wirestamp_packet::LinkType;

use crate::CapturedPacket;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
const RECORD_HEADER: usize = 16;

/// Unit of the fraction of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    Micro,
    Nano,
}

/// Appends the file header.
pub(super) fn begin(into: &mut Vec<u8>, precision: Precision, snaplen: u32, link: LinkType) {
    let magic = match precision {
        Precision::Micro => MAGIC_MICROSECONDS,
        Precision::Nano => MAGIC_NANOSECONDS,
    };
    into.extend(magic.to_ne_bytes());
    into.extend(VERSION.map(u16::to_ne_bytes).as_flattened());
    // Two fields that are always zero follow the version.
    into.extend([0, 0, snaplen, link.number()].map(u32::to_ne_bytes).as_flattened());
}

/// Appends the record of a packet. The format's times end in 2106; later ones are clamped.
pub(super) fn packet(into: &mut Vec<u8>, precision: Precision, packet: &CapturedPacket<'_>) {
    let time = since_epoch(packet.stamp.utc);
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    let fraction = match precision {
        Precision::Micro => time.subsec_micros(),
        Precision::Nano => time.subsec_nanos(),
    };
    let captured = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
    let head = [seconds, fraction, captured, packet.length.max(captured)];
    into.extend_from_slice(head.map(u32::to_ne_bytes).as_flattened());
    into.extend_from_slice(packet.bytes);
}

/// The first record of a sequence of packets in this machine's byte order.
pub(super) fn parse_record(sequence: &[u8]) -> Option<Record> {
    let [captured, length] = *sequence.get(8..RECORD_HEADER)?.as_chunks::<4>().0 else {
        return None;
    };
    let captured = u32::from_ne_bytes(captured) as usize;
    let packet = RecordedPacket { interface: 0, length: u32::from_ne_bytes(length) };
    Some(Record { length: RECORD_HEADER + captured, packet: Some(packet) })
}
