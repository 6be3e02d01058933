//! The bytes of a test packet, of which little changes from one to the next.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    IpDscp, IpHeaders, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder, ip_number,
};

use crate::{MacAddress, Payload};

/// How many routers may pass a packet on: the value that RFC 1700 gives, and Linux takes.
const HOP_LIMIT: u8 = 64;
/// Where in a UDP header the checksum is (RFC 768), seen from the payload behind it.
const CHECKSUM_BEFORE_PAYLOAD: usize = 2;

/// Where a frame comes from and goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) mac: [MacAddress; 2],
    /// Both of one IP version.
    pub(crate) address: [SocketAddr; 2],
}

/// A test packet: its payload alone, or a whole frame around it.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    bytes: Vec<u8>,
    payload_at: usize,
    /// For a frame, the one's complement sum of what the UDP checksum covers and stays the same.
    constant: Option<u16>,
}

impl Datagram {
    /// A payload of so many bytes, for a socket that makes the headers.
    pub(crate) fn bare(payload_bytes: usize) -> Self {
        Self { bytes: blank(payload_bytes), payload_at: 0, constant: None }
    }

    /// A frame around a payload of so many bytes: Ethernet, IP that must not be fragmented, UDP.
    /// None if the ends are of two IP versions, or it is too long for IP.
    pub(crate) fn framed(ends: &Ends, dscp: u8, payload_bytes: usize) -> Option<Self> {
        let payload = blank(payload_bytes);
        let [from, to] = ends.address;
        let builder = PacketBuilder::ethernet2(ends.mac[0].0, ends.mac[1].0)
            .ip(ip_header(from.ip(), to.ip(), dscp)?)
            .udp(from.port(), to.port());
        let mut bytes = vec![0; builder.size(payload.len())];
        let payload_at = bytes.len() - payload.len();
        builder.write_to_slice(&mut bytes, &payload).ok()?;
        let checksum = payload_at - CHECKSUM_BEFORE_PAYLOAD;
        let constant = !u16::from_be_bytes([bytes[checksum], bytes[checksum + 1]]);
        Some(Self { bytes, payload_at, constant: Some(constant) })
    }

    /// The packet with these fields.
    pub(crate) fn write(&mut self, payload: &Payload) -> &[u8] {
        let (headers, body) = self.bytes.split_at_mut(self.payload_at);
        payload.write(body);
        if let Some(constant) = self.constant {
            let checksum = checksum(constant, &body[Payload::CHANGING]);
            headers[self.payload_at - CHECKSUM_BEFORE_PAYLOAD..]
                .copy_from_slice(&checksum.to_be_bytes());
        }
        &self.bytes
    }
}

/// A payload whose fields are zero, so that they add nothing to a checksum.
fn blank(payload_bytes: usize) -> Vec<u8> {
    let mut payload = vec![0; payload_bytes];
    Payload::fill(&mut payload);
    payload[Payload::CHANGING].fill(0);
    payload
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

/// The UDP checksum (RFC 768): the complement of the sum of all words, of which `changing` are
/// added to what the others came to (RFC 1071). 0 would mean that there is none, and is sent as
/// its other form.
fn checksum(constant: u16, changing: &[u8]) -> u16 {
    let words =
        changing.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = u32::from(constant) + words.sum::<u32>();
    // Far fewer than 65536 words were added, so that two folds leave no carry.
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
        fn a_frame_is_what_was_asked_for_and_its_checksums_hold(
            address in address(), mac: [[u8; 6]; 2], dscp in 0_u8..64, length in 32_usize..1473,
            fields: [(u16, u64, i64, i64); 3],
        ) {
            let ends = Ends { mac: mac.map(MacAddress), address };
            let mut datagram = Datagram::framed(&ends, dscp, length).unwrap();
            for (stream, sequence, intended, actual) in fields {
                let (intended, actual) = (Time::from_nanos(intended), Time::from_nanos(actual));
                let payload = Payload { stream, sequence, intended, actual };
                let mut expected = vec![0; length];
                payload.encode(&mut expected).unwrap();
                let frame = datagram.write(&payload).to_vec();
                prop_assert_eq!(datagram.write(&payload), &frame[..]);
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
        fn a_bare_datagram_is_an_encoded_payload(sequence: u64, length in 32_usize..1473) {
            let time = Time::from_nanos(7);
            let payload = Payload { stream: 1, sequence, intended: time, actual: time };
            let mut expected = vec![0; length];
            payload.encode(&mut expected).unwrap();
            let mut datagram = Datagram::bare(length);
            prop_assert_eq!(datagram.write(&payload), &expected[..]);
        }
    }

    #[test]
    fn ends_of_two_ip_versions_make_no_frame() {
        let address = ["127.0.0.1:1", "[::1]:1"].map(|text| text.parse().unwrap());
        let ends = Ends { mac: [MacAddress::BROADCAST; 2], address };
        assert!(Datagram::framed(&ends, 0, 40).is_none());
    }
}
