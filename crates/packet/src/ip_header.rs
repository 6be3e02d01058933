//! Fields of an IP header that do not identify a flow.

use crate::{LinkType, ParseError};

/// Flags in the upper three bits of the fragment field of IPv4 (RFC 791 section 3.1).
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// Bytes of an IPv6 header, which its length field excludes (RFC 8200 section 3).
const IPV6_HEADER: u32 = 40;

/// Fields of the IP header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Version: 4 or 6.
    pub version: u8,
    /// Differentiated services code point, 6 bits (RFC 2474 section 3).
    pub dscp: u8,
    /// Explicit congestion notification, 2 bits (RFC 3168 section 5).
    pub ecn: u8,
    /// Time to live of IPv4, hop limit of IPv6.
    pub hop_limit: u8,
    /// Identification of IPv4 (RFC 791 section 3.1).
    pub identification: Option<u16>,
    /// Flow label of IPv6, 20 bits (RFC 6437).
    pub flow_label: Option<u32>,
    /// Routers must not fragment the packet; false for IPv6, which has no such flag.
    pub dont_fragment: bool,
    /// More fragments of the packet follow; false for IPv6, which has a header of its own for fragments.
    pub more_fragments: bool,
    /// Offset of an IPv4 fragment in bytes.
    pub fragment_offset: u32,
    /// Bytes of the packet on the wire, header included. `None` if the header states 0: a segment for segmentation
    /// offload, or a jumbogram (RFC 2675).
    pub length: Option<u32>,
}

impl IpHeader {
    /// The header of the IP packet in a frame.
    ///
    /// # Errors
    /// As [`Packet::parse`](crate::Packet::parse).
    pub fn of(link: LinkType, bytes: &[u8]) -> Result<Self, ParseError> {
        let packet = link.ip_packet(bytes)?;
        match packet.first().ok_or(ParseError::CutShort)? >> 4 {
            4 => v4(packet).ok_or(ParseError::CutShort),
            6 => v6(packet).ok_or(ParseError::CutShort),
            _ => Err(ParseError::Malformed),
        }
    }
}

/// RFC 791 section 3.1.
fn v4(packet: &[u8]) -> Option<IpHeader> {
    let [_, class, l0, l1, i0, i1, f0, f1, hop_limit, ..] = *packet.first_chunk::<20>()?;
    let (length, fragment) = (u16::from_be_bytes([l0, l1]), u16::from_be_bytes([f0, f1]));
    Some(IpHeader {
        version: 4,
        dscp: class >> 2,
        ecn: class & 3,
        hop_limit,
        identification: Some(u16::from_be_bytes([i0, i1])),
        flow_label: None,
        dont_fragment: fragment & DONT_FRAGMENT != 0,
        more_fragments: fragment & MORE_FRAGMENTS != 0,
        fragment_offset: u32::from(fragment & OFFSET) * 8,
        length: (length > 0).then_some(length.into()),
    })
}

/// RFC 8200 section 3.
fn v6(packet: &[u8]) -> Option<IpHeader> {
    let [v0, v1, v2, v3, l0, l1, _, hop_limit, ..] = *packet.first_chunk::<40>()?;
    let (word, length) = (u32::from_be_bytes([v0, v1, v2, v3]), u16::from_be_bytes([l0, l1]));
    let class = (v0 & 0x0f) << 4 | v1 >> 4;
    Some(IpHeader {
        version: 6,
        dscp: class >> 2,
        ecn: class & 3,
        hop_limit,
        identification: None,
        flow_label: Some(word & 0x000f_ffff),
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
        length: (length > 0).then(|| IPV6_HEADER + u32::from(length)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Datagram;

    #[test]
    fn fields_of_ipv4_are_read() {
        let datagram = Datagram::new(b"hello");
        let mut packet = datagram.ipv4();
        packet[1] = 0xb9; // EF, ECT(1)
        packet[4..8].copy_from_slice(&[0x12, 0x34, 0x60, 0x02]);
        packet[8] = 63;
        let header = IpHeader::of(LinkType::Ethernet, &datagram.frame(&packet)).unwrap();
        let expected = IpHeader {
            version: 4,
            dscp: 46,
            ecn: 1,
            hop_limit: 63,
            identification: Some(0x1234),
            flow_label: None,
            dont_fragment: true,
            more_fragments: true,
            fragment_offset: 16,
            length: Some(33),
        };
        assert_eq!(header, expected);
        packet[2..4].fill(0);
        assert_eq!(IpHeader::of(LinkType::Ip, &packet).unwrap().length, None);
        assert_eq!(IpHeader::of(LinkType::Ip, &packet[..19]), Err(ParseError::CutShort));
    }

    #[test]
    fn fields_of_ipv6_are_read() {
        let mut packet = Datagram::new(b"hello").ipv6(17, &[]);
        packet[..4].copy_from_slice(&[0x6b, 0x91, 0x23, 0x45]);
        packet[7] = 62;
        let header = IpHeader::of(LinkType::Ip, &packet).unwrap();
        assert_eq!((header.version, header.dscp, header.ecn, header.hop_limit), (6, 46, 1, 62));
        assert_eq!((header.identification, header.flow_label), (None, Some(0x1_2345)));
        assert_eq!(header.length, Some(53));
        assert_eq!(IpHeader::of(LinkType::Ip, &packet[..39]), Err(ParseError::CutShort));
        assert_eq!(IpHeader::of(LinkType::Ip, &[0x50; 60]), Err(ParseError::Malformed));
        assert_eq!(IpHeader::of(LinkType::Ip, &[]), Err(ParseError::CutShort));
    }
}
