//! Information elements.
//!
//! Elements without an enterprise are IANA's ("IPFIX Entities"); the constants have their names.

/// An information element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Element {
    /// Enterprise number (IANA); 0 for IANA's own elements.
    pub enterprise: u32,
    /// Element ID, 15 bits.
    pub number: u16,
}

impl Element {
    const fn iana(number: u16) -> Self {
        Self { enterprise: 0, number }
    }
}

/// Packets in the interval of the record (64 bits).
pub const PACKET_DELTA_COUNT: Element = Element::iana(2);
/// Protocol above IP (8 bits).
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
/// Packets since the begin of the flow (64 bits).
pub const PACKET_TOTAL_COUNT: Element = Element::iana(86);
/// Dropped packets in the interval of the record (64 bits).
pub const DROPPED_PACKET_DELTA_COUNT: Element = Element::iana(133);
/// Dropped packets since the begin of the flow (64 bits).
pub const DROPPED_PACKET_TOTAL_COUNT: Element = Element::iana(135);
/// Observation point in its domain (64 bits).
pub const OBSERVATION_POINT_ID: Element = Element::iana(138);
/// Metering process (32 bits).
pub const METERING_PROCESS_ID: Element = Element::iana(143);
/// Begin of the record, in milliseconds since 1970 (64 bits).
pub const FLOW_START_MILLISECONDS: Element = Element::iana(152);
/// End of the record, in milliseconds since 1970 (64 bits).
pub const FLOW_END_MILLISECONDS: Element = Element::iana(153);
/// Begin of the record (64 bits, NTP format).
pub const FLOW_START_NANOSECONDS: Element = Element::iana(156);
/// End of the record (64 bits, NTP format).
pub const FLOW_END_NANOSECONDS: Element = Element::iana(157);
/// Length of the IP packet (64 bits).
pub const IP_TOTAL_LENGTH: Element = Element::iana(224);
/// Sampling probability (double precision).
pub const SAMPLING_PROBABILITY: Element = Element::iana(311);
/// Length of the packet with link header (16 bits).
pub const DATA_LINK_FRAME_SIZE: Element = Element::iana(312);
/// Observation time in milliseconds since 1970 (64 bits).
pub const OBSERVATION_TIME_MILLISECONDS: Element = Element::iana(323);
/// Observation time (64 bits, NTP format, the last 11 insignificant).
pub const OBSERVATION_TIME_MICROSECONDS: Element = Element::iana(324);
/// Observation time (64 bits, NTP format).
pub const OBSERVATION_TIME_NANOSECONDS: Element = Element::iana(325);
/// Hash of a packet (64 bits).
pub const DIGEST_HASH_VALUE: Element = Element::iana(326);
/// Bytes with link headers in the interval of the record (64 bits).
pub const LAYER2_OCTET_DELTA_COUNT: Element = Element::iana(352);
/// Bytes with link headers since the begin of the flow (64 bits).
pub const LAYER2_OCTET_TOTAL_COUNT: Element = Element::iana(353);
/// Mean path delay in microseconds (32 bits; RFC 9951).
pub const PATH_DELAY_MEAN_DELTA_MICROSECONDS: Element = Element::iana(530);
/// Min path delay in microseconds (32 bits; RFC 9951).
pub const PATH_DELAY_MIN_DELTA_MICROSECONDS: Element = Element::iana(531);
/// Max path delay in microseconds (32 bits; RFC 9951).
pub const PATH_DELAY_MAX_DELTA_MICROSECONDS: Element = Element::iana(532);
