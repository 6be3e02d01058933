//! TCP segments that are longer than the network carries, divided into those that it carries.
//!
//! A capture observes them on a sender before its network card divides them (TCP segmentation offload, TSO), and on a
//! receiver or router after the kernel merged them (generic receive offload, GRO). The parts have the headers that Linux
//! gives them when it divides a segment: sequence number and identification of IPv4 grow, and FIN and PSH are those of the
//! last part (`tcp_gso_segment` in `net/ipv4/tcp_offload.c`, `inet_gso_segment` in `net/ipv4/af_inet.c`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::iter;

use crate::{FlowKey, IDENTITY_BYTES, Packet, TcpSegment};

/// Connections whose segment size is remembered. A further one replaces the oldest.
const CONNECTIONS: usize = 65_536;

/// Bytes above IP in a packet of 1500 bytes, the MTU of Ethernet: with IPv4 and IPv6.
const ETHERNET_BODY: [u16; 2] = [1480, 1460];

/// Length of the TCP header without options and with all of them (RFC 9293 section 3.1).
const HEADER: usize = 20;
const LONGEST_HEADER: usize = 60;

/// The least maximum segment size that is believed. It leaves room for data beside all options.
const LEAST_SIZE: u16 = 88;

/// Positions in the TCP header.
const SEQUENCE: usize = 4;
const FLAGS: usize = 13;

/// IP protocol number of UDP (IANA).
const UDP: u8 = 17;

/// Flags that only the last part has: FIN and PSH.
const OF_LAST: u8 = 0x09;
/// The flag that only the first part has: CWR (RFC 3168 section 6.1.2).
const OF_FIRST: u8 = 0x80;

/// Divides the segments of one observation point.
#[derive(Clone, Debug, Default)]
pub struct Segmentation {
    /// Maximum segment size of connections, the smaller of both directions.
    sizes: HashMap<FlowKey, u16>,
    /// The connections, the oldest first.
    order: VecDeque<FlowKey>,
    /// The smallest of all sizes so far.
    smallest: Option<u16>,
    /// Segments that were divided.
    pub divided: u64,
    /// The parts into which they were divided.
    pub parts: u64,
    /// Segments that were divided for an MTU of 1500 bytes, because the SYN segments were not observed.
    pub assumed: u64,
    /// Datagrams of UDP that are longer than an MTU of 1500 bytes allows and not fragmented. A network with a larger MTU
    /// carries them. Otherwise they are several datagrams, before they are divided at the sender (UDP GSO) or after they
    /// were merged at the receiver (UDP GRO). Into which datagrams, a capture does not say.
    pub long_datagrams: u64,
    /// Flows whose packets have an identification of IPv4.
    numbered: HashSet<FlowKey>,
}

impl Segmentation {
    /// Divides a packet, if it is a TCP segment that is too long: calls `each` with the packets that the network carries for
    /// it, and with the length of their frames in bytes. Returns whether it did; otherwise the network carries the packet
    /// itself.
    ///
    /// Too long is what exceeds the smaller maximum segment size of the connection's SYN segments (RFC 9293 section 3.7.1),
    /// less the TCP options (RFC 6691 section 2). If these were not observed, it is what exceeds an MTU of 1500 bytes. A
    /// part holds as many bytes of payload as its identity needs.
    ///
    /// A segment that was merged from short ones and does not exceed this size is not recognised.
    pub fn divide(
        &mut self,
        packet: &Packet<'_>,
        frame: u32,
        mut each: impl FnMut(&Packet<'_>, u32),
    ) -> bool {
        let Some(TooLong { header, length, size, is_assumed }) = self.too_long(packet) else {
            self.long_datagrams += u64::from(is_long_datagram(packet));
            return false;
        };
        let headers = frame.saturating_sub(length);
        let is_numbered = self.is_numbered(packet);
        let length_of = |offset| u32::from(size).min(length - offset);
        for (number, offset) in (0..length).step_by(usize::from(size)).enumerate() {
            let part = Part { number, offset, length: length_of(offset), of: length, is_numbered };
            part.visit(packet, header, |it| each(it, headers + part.length));
            self.parts += 1;
        }
        self.divided += 1;
        self.assumed += u64::from(is_assumed);
        true
    }

    /// Whether the packets of the flow have an identification of IPv4. It passes 0 from time to time; packets without
    /// identification always have 0.
    fn is_numbered(&mut self, packet: &Packet<'_>) -> bool {
        let flow = packet.flow();
        if packet.fragment().identification == 0 {
            return self.numbered.contains(&flow);
        }
        if self.numbered.len() >= CONNECTIONS && !self.numbered.contains(&flow) {
            self.numbered.clear();
        }
        self.numbered.insert(flow);
        true
    }

    /// Number of packets that the network carries for this one.
    pub fn packets(&mut self, packet: &Packet<'_>) -> u64 {
        self.too_long(packet)
            .map_or(1, |TooLong { length, size, .. }| length.div_ceil(size.into()).into())
    }

    /// What is to be divided of a packet; none if the network carries it as it is.
    fn too_long<'a>(&mut self, packet: &Packet<'a>) -> Option<TooLong<'a>> {
        let (segment, header) = TcpSegment::of(packet).zip(packet.tcp_header())?;
        if segment.syn {
            self.remember(packet.flow(), &segment, header);
            return None;
        }
        let length = segment.length;
        let (size, is_assumed) = self.size(packet.flow(), length, header)?;
        Some(TooLong { header, length, size, is_assumed })
    }

    /// Remembers the maximum segment size of a connection that begins.
    fn remember(&mut self, flow: FlowKey, segment: &TcpSegment, header: &[u8]) {
        let Some(size) = maximum_segment_size(header) else { return };
        let connection = connection(flow);
        let is_answer = segment.acknowledgment.is_some();
        let before = self.sizes.get(&connection).copied();
        if before.is_none() {
            self.make_room();
            self.order.push_back(connection);
        }
        let size = before.filter(|_| is_answer).map_or(size, |before| before.min(size));
        self.sizes.insert(connection, size);
        self.smallest = Some(self.smallest.map_or(size, |smallest| smallest.min(size)));
    }

    fn make_room(&mut self) {
        if self.order.len() >= CONNECTIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.sizes.remove(&oldest);
        }
    }

    /// The payload of each part but the last, in bytes, and whether it is assumed; none if a segment of `length` bytes is
    /// not too long.
    fn size(&self, flow: FlowKey, length: u32, header: &[u8]) -> Option<(u16, bool)> {
        let header = u16::try_from(header.len()).ok()?;
        let options = header - 20;
        let of_ethernet = ETHERNET_BODY[usize::from(flow.source.is_ipv6())] - header;
        // Most segments need no look at their connection.
        let least = self.smallest.map_or(of_ethernet, |size| of_ethernet.min(size - options));
        if length <= least.into() {
            return None;
        }
        let known = self.sizes.get(&connection(flow));
        let size = known.map_or(of_ethernet, |size| size - options);
        (length > size.into()).then_some((size, known.is_none()))
    }
}

/// A segment that is longer than the network carries.
struct TooLong<'a> {
    /// TCP header with its options.
    header: &'a [u8],
    /// Payload in bytes: of the segment, and of each part but the last.
    length: u32,
    size: u16,
    /// Whether the size is that of an MTU of 1500 bytes.
    is_assumed: bool,
}

/// A part of a segment's payload, in bytes.
struct Part {
    number: usize,
    offset: u32,
    length: u32,
    /// The payload of the segment.
    of: u32,
    /// Whether the packets of the flow have an identification of IPv4.
    is_numbered: bool,
}

impl Part {
    /// Calls `visit` with the part as a packet of its own.
    fn visit(&self, packet: &Packet<'_>, header: &[u8], visit: impl FnOnce(&Packet<'_>)) {
        let [offset, length] =
            [self.offset, self.length].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        let captured = packet.payload().get(offset..).unwrap_or_default();
        let captured = &captured[..captured.len().min(length).min(IDENTITY_BYTES)];
        let mut bytes = [0; LONGEST_HEADER + IDENTITY_BYTES];
        let end = header.len() + captured.len();
        bytes[..header.len()].copy_from_slice(header);
        bytes[header.len()..end].copy_from_slice(captured);
        let sequence = &mut bytes[SEQUENCE..SEQUENCE + 4];
        let first = sequence.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
        sequence.copy_from_slice(&first.wrapping_add(self.offset).to_be_bytes());
        if self.offset > 0 {
            bytes[FLAGS] &= !OF_FIRST;
        }
        if self.offset + self.length < self.of {
            bytes[FLAGS] &= !OF_LAST;
        }
        let segment = (&bytes[..end], header.len());
        visit(&packet.with_segment(self.identification(packet), segment, length));
    }

    /// The identification of IPv4, or 0.
    fn identification(&self, packet: &Packet<'_>) -> u32 {
        if !self.is_numbered {
            return 0;
        }
        let first = packet.fragment().identification;
        first.wrapping_add(u32::try_from(self.number).unwrap_or(0)) & 0xffff
    }
}

impl<'a> Packet<'a> {
    /// The TCP header with its options.
    fn tcp_header(&self) -> Option<&'a [u8]> {
        let length = self.body_length()?.checked_sub(self.payload_length()?)?;
        let header = self.body().get(..length)?;
        (HEADER..=LONGEST_HEADER).contains(&length).then_some(header)
    }
}

fn is_long_datagram(packet: &Packet<'_>) -> bool {
    let flow = packet.flow();
    let longest = ETHERNET_BODY[usize::from(flow.source.is_ipv6())];
    flow.protocol == UDP
        && !packet.is_fragment()
        && packet.body_length().is_some_and(|length| length > longest.into())
}

/// The same name for both directions.
fn connection(flow: FlowKey) -> FlowKey {
    let back = FlowKey { source: flow.destination, destination: flow.source, ..flow };
    flow.min(back)
}

/// The option "maximum segment size" of a TCP header (RFC 9293 section 3.2).
fn maximum_segment_size(header: &[u8]) -> Option<u16> {
    let mut rest = header.get(HEADER..)?;
    let options = iter::from_fn(|| {
        let option = rest;
        let length = match option {
            [] | [0, ..] | [_] => return None,
            [1, ..] => 1,
            [_, length, ..] => usize::from(*length).max(2),
        };
        rest = rest.get(length..).unwrap_or_default();
        Some(option)
    });
    let size = |option: &[u8]| match option {
        [2, 4, high, low, ..] => Some(u16::from_be_bytes([*high, *low]).max(LEAST_SIZE)),
        _ => None,
    };
    { options }.find_map(size)
}

#[cfg(test)]
mod tests;
