//! Reusable buffer of a test packet: only the changing fields are rewritten for each packet.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    IpDscp, IpHeaders, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder, ip_number,
};

use wirestamp_clock::Span;

use crate::{MacAddress, Payload, rtp};

/// TTL and hop limit: the value of RFC 1700, and the default of Linux.
const HOP_LIMIT: u8 = 64;
/// Bytes between the checksum in the UDP header and the payload (RFC 768), including the checksum.
const CHECKSUM_BEFORE_PAYLOAD: usize = 2;

/// Source and destination of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameAddresses {
    pub(crate) mac: [MacAddress; 2],
    /// Both of the same IP version.
    pub(crate) address: [SocketAddr; 2],
}

/// A test packet: the payload alone, or a whole frame.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    bytes: Vec<u8>,
    payload_at: usize,
    /// For a frame: the ones' complement sum of the constant data that the UDP checksum covers.
    fixed_sum: Option<u16>,
    rtp: Option<rtp::Encoding>,
}

/// Constant contents of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) stream: u16,
    /// Length of the UDP payload.
    pub(crate) payload_bytes: usize,
    /// Encoding of the RTP header, if there is one.
    pub(crate) rtp: Option<rtp::Encoding>,
}

impl Datagram {
    /// A UDP payload, for a socket that adds the headers.
    pub(crate) fn without_headers(contents: Contents) -> Self {
        Self { bytes: contents.blank(), payload_at: 0, fixed_sum: None, rtp: contents.rtp }
    }

    /// A frame: Ethernet, IP without fragmentation, UDP.
    /// None if the addresses differ in IP version or the packet is too long for IP.
    pub(crate) fn with_headers(
        addresses: &FrameAddresses,
        dscp: u8,
        contents: Contents,
    ) -> Option<Self> {
        let payload = contents.blank();
        let (bytes, fixed_sum) = frame(addresses, dscp, &payload)?;
        let payload_at = bytes.len() - payload.len();
        Some(Self { bytes, payload_at, fixed_sum: Some(fixed_sum), rtp: contents.rtp })
    }

    /// Writes the fields and the checksum of the packet that is due `offset` after the start of sending; returns it.
    pub(crate) fn write(&mut self, payload: &Payload, offset: Span) -> &[u8] {
        let (headers, body) = self.bytes.split_at_mut(self.payload_at);
        let (rtp_header, body) = body.split_at_mut(rtp_bytes(self.rtp));
        payload.write(body);
        if let Some(encoding) = self.rtp {
            encoding.write(payload.sequence, offset, rtp_header);
        }
        if let Some(fixed_sum) = self.fixed_sum {
            let of_rtp = rtp_header.get(rtp::CHANGING).unwrap_or_default();
            let checksum = checksum(fixed_sum, [of_rtp, &body[Payload::CHANGING]]);
            headers[self.payload_at - CHECKSUM_BEFORE_PAYLOAD..]
                .copy_from_slice(&checksum.to_be_bytes());
        }
        &self.bytes
    }
}

/// A frame with this payload, and the ones' complement sum of the data that the UDP checksum covers. None if the
/// addresses differ in IP version or the packet is too long for IP.
pub(crate) fn frame(
    addresses: &FrameAddresses,
    dscp: u8,
    payload: &[u8],
) -> Option<(Vec<u8>, u16)> {
    let [from, to] = addresses.address;
    let builder = PacketBuilder::ethernet2(addresses.mac[0].0, addresses.mac[1].0)
        .ip(ip_header(from.ip(), to.ip(), dscp)?)
        .udp(from.port(), to.port());
    let mut bytes = vec![0; builder.size(payload.len())];
    builder.write_to_slice(&mut bytes, payload).ok()?;
    let checksum = bytes.len() - payload.len() - CHECKSUM_BEFORE_PAYLOAD;
    // A checksum is the complement of the sum (RFC 1071).
    let sum = !u16::from_be_bytes([bytes[checksum], bytes[checksum + 1]]);
    Some((bytes, sum))
}

impl Contents {
    /// A UDP payload whose changing fields are zero and add nothing to a checksum.
    fn blank(self) -> Vec<u8> {
        let mut bytes = vec![0; self.payload_bytes];
        let (rtp_header, payload) = bytes.split_at_mut(rtp_bytes(self.rtp));
        if let Some(encoding) = self.rtp {
            encoding.fill(self.stream, rtp_header);
        }
        Payload::fill(payload);
        payload[Payload::CHANGING].fill(0);
        bytes
    }
}

const fn rtp_bytes(encoding: Option<rtp::Encoding>) -> usize {
    if encoding.is_some() { rtp::HEADER_BYTES } else { 0 }
}

fn ip_header(from: IpAddr, to: IpAddr, dscp: u8) -> Option<IpHeaders> {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header =
                Ipv4Header::new(0, HOP_LIMIT, ip_number::UDP, from.octets(), to.octets()).ok()?;
            header.dscp = IpDscp::try_new(dscp).ok()?;
            Some(IpHeaders::Ipv4(header, Default::default()))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => Some(IpHeaders::Ipv6(
            Ipv6Header {
                traffic_class: dscp << 2,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: 0,
                next_header: ip_number::UDP,
                hop_limit: HOP_LIMIT,
                source: from.octets(),
                destination: to.octets(),
            },
            Default::default(),
        )),
        _ => None,
    }
}

/// The UDP checksum (RFC 768): the complement of `fixed_sum` plus the words of `changing`, whose parts have even offsets
/// and lengths (RFC 1071). A result of 0 is sent as 0xffff, because 0 means "no checksum".
fn checksum(fixed_sum: u16, changing: [&[u8]; 2]) -> u16 {
    let words = changing.into_iter().flat_map(|part| part.chunks_exact(2));
    let words = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = u32::from(fixed_sum) + words.sum::<u32>();
    // Fewer than 65536 words were added, so two folds leave no carry.
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    match u16::try_from(folded).map_or(0, |sum| !sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
    use proptest::prelude::*;
    use wirestamp_clock::Time;

    use super::*;

    fn address() -> impl Strategy<Value = [SocketAddr; 2]> {
        let ports = any::<[u16; 2]>();
        let v4 = any::<[[u8; 4]; 2]>().prop_map(|both| both.map(IpAddr::from));
        let v6 = any::<[[u8; 16]; 2]>().prop_map(|both| both.map(IpAddr::from));
        (prop_oneof![v4, v6], ports)
            .prop_map(|([from, to], [a, b])| [SocketAddr::new(from, a), SocketAddr::new(to, b)])
    }

    proptest! {
        #[test]
        fn frame_has_requested_fields_and_valid_checksums(
            address in address(), mac: [[u8; 6]; 2], dscp in 0_u8..64, length in 32_usize..1473,
            fields: [(u64, i64, i64); 3], stream: u16, is_rtp: bool, offset in 0_i64..,
        ) {
            let addresses = FrameAddresses { mac: mac.map(MacAddress), address };
            let rtp = is_rtp.then_some(rtp::Encoding::MP2T);
            let length = length + rtp_bytes(rtp);
            let contents = Contents { stream, payload_bytes: length, rtp };
            let mut datagram = Datagram::with_headers(&addresses, dscp, contents).unwrap();
            let offset = Span::from_nanos(offset);
            for (sequence, intended, actual) in fields {
                let (intended, actual) = (Time::from_nanos(intended), Time::from_nanos(actual));
                let payload = Payload { stream, sequence, intended, actual };
                let mut expected = vec![0; length];
                payload.encode(&mut expected[rtp_bytes(rtp)..]);
                if let Some(encoding) = rtp {
                    encoding.fill(stream, &mut expected);
                    encoding.write(sequence, offset, &mut expected);
                }
                let frame = datagram.write(&payload, offset).to_vec();
                prop_assert_eq!(datagram.write(&payload, offset), &frame[..]);
                let parsed = PacketHeaders::from_ethernet_slice(&frame).unwrap();
                prop_assert_eq!(parsed.payload.slice(), &expected[..]);
                let Some(TransportHeader::Udp(udp)) = parsed.transport else { panic!() };
                prop_assert_eq!([udp.source_port, udp.destination_port], address.map(|a| a.port()));
                let full = match parsed.net.unwrap() {
                    NetHeaders::Ipv4(ip, _) => {
                        prop_assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                        prop_assert!(ip.dont_fragment && ip.dscp.value() == dscp);
                        udp.calc_checksum_ipv4(&ip, &expected)
                    }
                    NetHeaders::Ipv6(ip, _) => {
                        prop_assert_eq!(ip.traffic_class, dscp << 2);
                        udp.calc_checksum_ipv6(&ip, &expected)
                    }
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(udp.checksum, full.unwrap());
            }
        }

        #[test]
        fn datagram_without_headers_is_the_payload(sequence: u64, length in 32_usize..1473) {
            let time = Time::from_nanos(7);
            let payload = Payload { stream: 1, sequence, intended: time, actual: time };
            let mut expected = vec![0; length];
            payload.encode(&mut expected);
            let contents = Contents { stream: 1, payload_bytes: length, rtp: None };
            let mut datagram = Datagram::without_headers(contents);
            prop_assert_eq!(datagram.write(&payload, Span::ZERO), &expected[..]);
        }
    }

    #[test]
    fn mixed_ip_versions_are_rejected() {
        let address = ["127.0.0.1:1", "[::1]:1"].map(|text| text.parse().unwrap());
        let addresses = FrameAddresses { mac: [MacAddress([0xff; 6]); 2], address };
        let contents = Contents { stream: 1, payload_bytes: 40, rtp: None };
        assert!(Datagram::with_headers(&addresses, 0, contents).is_none());
    }
}
