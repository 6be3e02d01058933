//! What the fields of records mean.
//!
//! Those without an enterprise are IANA's ("IPFIX Entities"); the names are as they are there, in capitals.

/// What a field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Element {
    /// The enterprise that has laid it down, by its number at IANA; 0 if that is IANA itself.
    pub enterprise: u32,
    /// Its number there, of 15 bits.
    pub number: u16,
}

impl Element {
    const fn iana(number: u16) -> Self {
        Self { enterprise: 0, number }
    }
}

/// Packets (64 bits), of the stretch of time that a record is of.
pub const PACKET_DELTA_COUNT: Element = Element::iana(2);
/// The protocol above IP (8 bits).
pub const PROTOCOL_IDENTIFIER: Element = Element::iana(4);
/// A port (16 bits).
pub const SOURCE_TRANSPORT_PORT: Element = Element::iana(7);
/// An address (4 bytes).
pub const SOURCE_IPV4_ADDRESS: Element = Element::iana(8);
/// A port (16 bits).
pub const DESTINATION_TRANSPORT_PORT: Element = Element::iana(11);
/// An address (4 bytes).
pub const DESTINATION_IPV4_ADDRESS: Element = Element::iana(12);
/// An address (16 bytes).
pub const SOURCE_IPV6_ADDRESS: Element = Element::iana(27);
/// An address (16 bytes).
pub const DESTINATION_IPV6_ADDRESS: Element = Element::iana(28);
/// Packets (64 bits), since the first of them.
pub const PACKET_TOTAL_COUNT: Element = Element::iana(86);
/// Packets that were dropped (64 bits), of the stretch of time that a record is of.
pub const DROPPED_PACKET_DELTA_COUNT: Element = Element::iana(133);
/// Packets that were dropped (64 bits), since the first of them.
pub const DROPPED_PACKET_TOTAL_COUNT: Element = Element::iana(135);
/// Where packets were observed, in an observation domain (64 bits).
pub const OBSERVATION_POINT_ID: Element = Element::iana(138);
/// What has measured (32 bits).
pub const METERING_PROCESS_ID: Element = Element::iana(143);
/// When a record begins, in milliseconds since 1970 (64 bits).
pub const FLOW_START_MILLISECONDS: Element = Element::iana(152);
/// When a record ends, in milliseconds since 1970 (64 bits).
pub const FLOW_END_MILLISECONDS: Element = Element::iana(153);
/// When a record begins (64 bits, NTP's format).
pub const FLOW_START_NANOSECONDS: Element = Element::iana(156);
/// When a record ends (64 bits, NTP's format).
pub const FLOW_END_NANOSECONDS: Element = Element::iana(157);
/// Bytes of a packet from the header of IP on (64 bits).
pub const IP_TOTAL_LENGTH: Element = Element::iana(224);
/// The share of packets that were looked at, chosen at random (double precision).
pub const SAMPLING_PROBABILITY: Element = Element::iana(311);
/// Bytes of a packet with the header of its link (16 bits).
pub const DATA_LINK_FRAME_SIZE: Element = Element::iana(312);
/// When a packet was observed, in milliseconds since 1970 (64 bits).
pub const OBSERVATION_TIME_MILLISECONDS: Element = Element::iana(323);
/// When a packet was observed (64 bits, NTP's format, of which 11 do not count).
pub const OBSERVATION_TIME_MICROSECONDS: Element = Element::iana(324);
/// When a packet was observed (64 bits, NTP's format).
pub const OBSERVATION_TIME_NANOSECONDS: Element = Element::iana(325);
/// A hash of a packet (64 bits).
pub const DIGEST_HASH_VALUE: Element = Element::iana(326);
/// Bytes of packets with the headers of their link (64 bits), since the first of them.
pub const LAYER2_OCTET_TOTAL_COUNT: Element = Element::iana(353);
/// Of delays along a path, in microseconds (32 bits; RFC 9951).
pub const PATH_DELAY_MEAN_DELTA_MICROSECONDS: Element = Element::iana(530);
/// Of delays along a path, in microseconds (32 bits; RFC 9951).
pub const PATH_DELAY_MIN_DELTA_MICROSECONDS: Element = Element::iana(531);
/// Of delays along a path, in microseconds (32 bits; RFC 9951).
pub const PATH_DELAY_MAX_DELTA_MICROSECONDS: Element = Element::iana(532);
