//! Packet fields that the hashes read.

use std::net::IpAddr;

use super::{bob, ipsx};
use crate::Packet;
use crate::internet::SelectionFields;

/// Range of hashed bytes above IP: `length` bytes from `offset` on, counted from the transport header. Extension
/// headers are not counted, because routers change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PayloadWindow {
    /// Bytes above IP before the window.
    pub offset: usize,
    /// Bytes in the window, at most [`MAX_LENGTH`](Self::MAX_LENGTH); more are not hashed.
    pub length: usize,
}

impl PayloadWindow {
    /// Max length of a window, as of an identity.
    pub const MAX_LENGTH: usize = crate::IDENTITY_BYTES;
}

impl Default for PayloadWindow {
    /// The eight bytes after UDP's checksum, which are before TCP's. With checksum offload both are set only after a
    /// capture on the sender. RFC 5475 recommends four bytes or more.
    fn default() -> Self {
        Self { offset: 8, length: 8 }
    }
}

/// The bytes of the IP header that BOB hashes, for both versions of IP.
const HEADER_BYTES: usize = 12;

/// Bytes 10, 11, 14, 15 and 16 of an IPv6 address, counted from 1.
const IPV6_ADDRESS_BYTES: [usize; 5] = [9, 10, 13, 14, 15];

impl Packet<'_> {
    /// The BOB hash of the packet, over the bytes of RFC 5475 section 6.2.4.1.
    ///
    /// For IPv4: identification, flags, fragment offset, source and destination address. For IPv6: the payload
    /// length, and bytes 10, 11, 14, 15 and 16 of both addresses. Then the bytes above IP in `window`. The RFC does
    /// not define the case of a shorter packet; here its available bytes are hashed.
    ///
    /// `None` if bytes of the window were on the wire but not captured, or if IP's length field or extension headers
    /// do not determine the end of the packet: another point would hash other bytes.
    #[must_use]
    pub fn bob(&self, window: PayloadWindow, initial: u32) -> Option<u32> {
        let on_wire = self.body_length()?;
        let start = window.offset.min(on_wire);
        let length = window.length.min(PayloadWindow::MAX_LENGTH).min(on_wire - start);
        let payload = self.body().get(start..start + length)?;

        let mut input = self.header_fields();
        input.push(payload);
        Some(bob(input.bytes(), initial))
    }

    /// The IPSX hash of the packet (RFC 5475 appendix A.1).
    ///
    /// `None` for IPv6, for which it is not defined, and if fewer than eight bytes above IP were captured. It reads
    /// UDP's checksum, so that with checksum offload a capture on the sender has another hash.
    #[must_use]
    pub fn ipsx(&self) -> Option<u16> {
        let [_, f4] = self.body().first_chunk::<8>()?.as_chunks::<4>().0 else { return None };
        let flow = self.flow();
        match (self.selecting(), flow.source.ip(), flow.destination.ip()) {
            (
                SelectionFields::V4 { fragmentation },
                IpAddr::V4(source),
                IpAddr::V4(destination),
            ) => {
                let f4 = u32::from_be_bytes(*f4);
                Some(ipsx([fragmentation, source.to_bits(), destination.to_bits(), f4]))
            }
            _ => None,
        }
    }

    /// The bytes of the IP header that BOB hashes, in the RFC's order.
    fn header_fields(&self) -> Input {
        let mut input = Input::default();
        match self.selecting() {
            SelectionFields::V4 { fragmentation } => input.push(&fragmentation.to_be_bytes()),
            SelectionFields::V6 { payload_length } => input.push(&payload_length.to_be_bytes()),
        }
        let flow = self.flow();
        for address in [flow.source.ip(), flow.destination.ip()] {
            match address {
                IpAddr::V4(v4) => input.push(&v4.octets()),
                IpAddr::V6(v6) => input.push(&IPV6_ADDRESS_BYTES.map(|place| v6.octets()[place])),
            }
        }
        input
    }
}

/// The hashed bytes, collected without an allocation.
struct Input {
    bytes: [u8; HEADER_BYTES + PayloadWindow::MAX_LENGTH],
    length: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self { bytes: [0; HEADER_BYTES + PayloadWindow::MAX_LENGTH], length: 0 }
    }
}

impl Input {
    /// Appends bytes; drops those beyond the capacity, which the callers above rule out.
    fn push(&mut self, bytes: &[u8]) {
        let room = self.bytes.iter_mut().skip(self.length).zip(bytes);
        self.length += room.map(|(to, from)| *to = *from).count();
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use crate::samples::Datagram;

    fn hashes(packet: &[u8]) -> (Option<u32>, Option<u16>) {
        let packet = Packet::parse(LinkType::Ip, packet).expect("an IP packet");
        (packet.bob(PayloadWindow::default(), 0x0003_2545), packet.ipsx())
    }

    /// The input was written by hand from the sample's fields, and hashed by the RFC's C code and, for IPSX, its ten
    /// steps in Python.
    #[test]
    fn fields_are_those_of_the_rfc() {
        let datagram = Datagram::new(b"hello");
        // 0007 4000, 10.77.1.1, 10.77.2.2, "hello"; in IPSX 000d 1234 for "hello".
        assert_eq!(hashes(&datagram.ipv4()), (Some(0xb06b_1803), Some(0xde5e)));
        // 13 bytes, 0a0b0e0f10, 1a1b1e1f20, "hello".
        let mut v6 = datagram.ipv6(17, &[]);
        v6[8..40].iter_mut().zip(1..).for_each(|(byte, number)| *byte = number);
        assert_eq!(hashes(&v6), (Some(0x46eb_26f9), None));
    }

    #[test]
    fn window_ends_with_the_packet() {
        let packet = Datagram::new(b"hello").ipv4();
        let packet = Packet::parse(LinkType::Ip, &packet).expect("an IP packet");
        // Only the header fields, by the RFC's C code.
        for (offset, length) in [(13, 8), (usize::MAX, usize::MAX), (0, 0)] {
            let window = PayloadWindow { offset, length };
            assert_eq!(packet.bob(window, 0x0003_2545), Some(0xea1b_ce09));
        }
        let all = |length| packet.bob(PayloadWindow { offset: 0, length }, 0);
        assert_eq!(all(13), all(usize::MAX));
    }

    #[test]
    fn missing_bytes_give_no_hash() {
        let datagram = Datagram::new(b"hello");
        assert_eq!(hashes(&datagram.ipv4()[..32]).0, None);
        assert_eq!(hashes(&datagram.ipv4()[..27]), (None, None));
        let mut unset = datagram.ipv4();
        unset[2..4].fill(0);
        assert_eq!(hashes(&unset).0, None);
    }

    #[test]
    fn mutable_fields_are_not_hashed() {
        let sent = Datagram::new(b"hello, world");
        let received = Datagram {
            ttl: 3,
            dscp_ecn: 1,
            flow_label: 9,
            header_checksum: 5,
            transport_checksum: 6,
            ..sent.clone()
        };
        assert_eq!(hashes(&sent.ipv4()).0, hashes(&received.ipv4()).0);
        assert_eq!(hashes(&sent.ipv6(17, &[])).0, hashes(&received.ipv6(17, &[])).0);
        // A hop-by-hop header with a padding option, or with another one.
        let extended = |option| hashes(&sent.ipv6(0, &[17, 0, option, 4, 0, 0, 0, 0])).0;
        assert_eq!(extended(1), extended(5));
    }
}
