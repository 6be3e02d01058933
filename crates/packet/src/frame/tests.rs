use etherparse::err::Layer;
use proptest::prelude::*;

use super::*;
use crate::samples::Datagram;
use crate::{IdentityKey, PacketId};

fn flow_of(link: LinkType, bytes: &[u8]) -> String {
    Packet::parse(link, bytes).expect("an IP packet").flow().to_string()
}

#[test]
fn datagram_after_vlan_tag_is_found() {
    let mut datagram = Datagram::new(b"hello");
    datagram.padding = 13;
    for vlan in [None, Some(42)] {
        datagram.vlan = vlan;
        let frame = datagram.frame(&datagram.ipv4());
        let packet = Packet::parse(LinkType::Ethernet, &frame).expect("an IP packet");
        assert_eq!(packet.payload(), b"hello");
        assert_eq!(packet.flow().to_string(), "10.77.1.1:5000 > 10.77.2.2:5001 udp");
    }
}

#[test]
fn raw_packets_of_both_ip_versions_are_found() {
    let datagram = Datagram::new(b"hello");
    let expected = "10.77.1.1:5000 > 10.77.2.2:5001 udp";
    assert_eq!(flow_of(LinkType::Ip, &datagram.ipv4()), expected);
    let expected = "[fd00::1]:5000 > [fd00::2]:5001 udp";
    assert_eq!(flow_of(LinkType::Ip, &datagram.ipv6(17, &[])), expected);
}

#[test]
fn later_fragments_have_no_ports() {
    let mut datagram = Datagram::new(b"hello");
    datagram.fragment_offset = 185;
    assert_eq!(flow_of(LinkType::Ip, &datagram.ipv4()), "10.77.1.1 > 10.77.2.2 udp");
    // Fragment header: next header UDP, offset 185, more fragments, identification 9.
    let header = [17, 0, 0x05, 0xc9, 0, 0, 0, 9];
    let packet = datagram.ipv6(44, &header);
    let packet = Packet::parse(LinkType::Ip, &packet).expect("an IP packet");
    assert_eq!(packet.flow().to_string(), "fd00::1 > fd00::2 udp");
    assert_eq!(packet.fragment(), Fragment { identification: 9, offset: 185, more: true });
}

#[test]
fn truncated_datagram_keeps_flow_and_wire_length() {
    let datagram = Datagram::new(&[1; 400]);
    for packet in [datagram.ipv4(), datagram.ipv6(17, &[])] {
        let header = packet.len() - 408;
        let parsed = Packet::parse(LinkType::Ip, &packet[..header + 4]).expect("an IP packet");
        assert_eq!(parsed.flow().source.port(), 5000);
        assert_eq!(parsed.payload(), b"");
        assert_eq!(parsed.body_length(), Some(408));
    }
}

#[test]
fn payload_keeps_its_wire_length() {
    let length = |packet: &[u8]| {
        let packet = Packet::parse(LinkType::Ip, packet).expect("an IP packet");
        (packet.payload().len(), packet.payload_length())
    };
    let datagram = Datagram::new(&[0x50; 400]);
    let (v4, v6) = (datagram.ipv4(), datagram.ipv6(17, &[]));
    assert_eq!(length(&v4), (400, Some(400)));
    assert_eq!(length(&v4[..96]), (68, Some(400)));
    assert_eq!(length(&v6[..96]), (48, Some(400)));
    let with = |place, byte| {
        let mut packet = v4.clone();
        packet[place] = byte;
        packet
    };
    assert_eq!(length(&with(9, 6)[..96]), (56, Some(388)), "a TCP header of 20 bytes");
    assert_eq!(length(&with(9, 132)), (0, None), "SCTP");
    assert_eq!(length(&with(25, 0x18)), (272, Some(272)), "UDP ends before IP does");
    assert_eq!(length(&with(24, 0xff)), (400, Some(400)), "UDP ends after IP does");
    let mut unset = v4.clone();
    unset[24..26].fill(0);
    assert_eq!(length(&unset), (400, Some(400)), "UDP states no length");
}

#[test]
fn incomplete_extension_headers_leave_no_body() {
    // Hop-by-hop options, then a routing header that was not captured.
    let datagram = Datagram::new(b"hello");
    let packet = datagram.ipv6(0, &[43, 0, 1, 4, 0, 0, 0, 0]);
    let packet = Packet::parse(LinkType::Ip, &packet[..48]).expect("an IP packet");
    assert_eq!(packet.body_length(), None);
    assert_eq!(packet.identity(IdentityKey::default()), None);
    assert_eq!(packet.flow().source.port(), 0);
}

#[test]
fn zero_length_field_means_unknown_length() {
    let mut packet = Datagram::new(b"hello").ipv4();
    packet[2..4].fill(0);
    let packet = Packet::parse(LinkType::Ip, &packet).expect("an IP packet");
    assert_eq!(packet.body_length(), None);
    assert_eq!(packet.payload(), b"hello");
}

#[test]
fn other_protocols_and_truncation_have_different_errors() {
    let parse = |link, bytes: &[u8]| Packet::parse(link, bytes).map(|_| ()).unwrap_err();
    let mut arp = vec![0xff; 12];
    arp.extend([0x08, 0x06]);
    arp.extend([0; 46]);
    assert_eq!(parse(LinkType::Ethernet, &arp), ParseError::NotIp);
    assert_eq!(parse(LinkType::Ethernet, &arp[..13]), ParseError::CutShort);
    let datagram = Datagram::new(b"hello");
    let frame = datagram.frame(&datagram.ipv4());
    assert_eq!(parse(LinkType::Ethernet, &frame[..30]), ParseError::CutShort);
    assert_eq!(parse(LinkType::Ip, &[]), ParseError::CutShort);
    assert_eq!(parse(LinkType::Ip, &[0x15; 40]), ParseError::Malformed);
}

/// Calls every function that reads the bytes.
fn read_all(bytes: &[u8]) -> Vec<(usize, Option<PacketId>)> {
    for link in [LinkType::Ethernet, LinkType::Ip] {
        assert_as_by_etherparse(link, bytes);
    }
    [LinkType::Ethernet, LinkType::Ip]
        .into_iter()
        .filter_map(|link| Packet::parse(link, bytes).ok())
        .map(|packet| {
            let length = packet.payload().len();
            assert!(packet.payload_length().is_none_or(|on_wire| length <= on_wire));
            (length, packet.identity(IdentityKey::default()))
        })
        .collect()
}

/// Payload or error according to etherparse's own parser of whole frames.
fn by_etherparse(link: LinkType, bytes: &[u8]) -> Result<&[u8], ParseError> {
    use etherparse::err::packet::SliceError;
    use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

    let sliced = match link {
        LinkType::Ethernet => {
            LaxSlicedPacket::from_ethernet(bytes).map_err(|_| ParseError::CutShort)?
        }
        _ => LaxSlicedPacket::from_ip(bytes).map_err(|error| ip_error(&error))?,
    };
    match (sliced.net, sliced.transport, sliced.stop_err) {
        (Some(LaxNetSlice::Arp(_)), ..) | (None, _, None | Some((_, Layer::Arp))) => {
            Err(ParseError::NotIp)
        }
        (None, _, Some((SliceError::Len(_), _))) => Err(ParseError::CutShort),
        (None, _, Some(_)) => Err(ParseError::Malformed),
        (Some(_), Some(TransportSlice::Udp(udp)), _) => Ok(udp.payload()),
        (Some(_), Some(TransportSlice::Tcp(tcp)), _) => Ok(tcp.payload()),
        (Some(_), ..) => Ok(&[]),
    }
}

fn assert_as_by_etherparse(link: LinkType, bytes: &[u8]) {
    // etherparse does not look behind a length in place of the type.
    let is_length = matches!(bytes.get(12..14), Some([high, _]) if *high < 6);
    if link == LinkType::Ethernet && is_length {
        return;
    }
    let found = Packet::parse(link, bytes).map(|packet| packet.payload());
    assert_eq!(found, by_etherparse(link, bytes));
}

proptest! {
    #[test]
    fn tags_are_parsed_as_by_etherparse(
        // VLAN (three kinds), MACsec, and no tag.
        tags in prop::collection::vec(
            (prop::sample::select(vec![0x8100u16, 0x88a8, 0x9100, 0x88e5, 0x0806]), any::<[u8; 2]>()), 0..6,
        ),
        macsec in any::<[u8; 4]>(), v6 in any::<bool>(), kept in any::<prop::sample::Index>(),
    ) {
        let datagram = Datagram::new(&[3; 30]);
        let packet = if v6 { datagram.ipv6(17, &[]) } else { datagram.ipv4() };
        let mut frame = datagram.frame(&packet);
        let inside = frame.split_off(12);
        for (ether_type, control) in tags {
            frame.extend(ether_type.to_be_bytes());
            // For MACsec: no secure channel, not encrypted.
            frame.extend(if ether_type == 0x88e5 { [0, 0] } else { control });
            frame.extend_from_slice(if ether_type == 0x88e5 { &macsec } else { &[] });
        }
        frame.extend(inside);
        assert_as_by_etherparse(LinkType::Ethernet, &frame);
        assert_as_by_etherparse(LinkType::Ethernet, &frame[..kept.index(frame.len() + 1)]);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
    }

    #[test]
    fn mutated_and_truncated_frames_do_not_panic(
        v6 in any::<bool>(),
        // Hop-by-hop, routing, fragment, destination options, authentication, UDP.
        first_header in prop::sample::select(vec![0u8, 43, 44, 60, 51, 17]),
        extensions in prop::collection::vec(any::<u8>(), 0..32),
        vlan in any::<Option<u16>>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        kept in any::<prop::sample::Index>(),
    ) {
        let mut datagram = Datagram::new(&[3; 120]);
        datagram.vlan = vlan;
        let packet =
            if v6 { datagram.ipv6(first_header, &extensions) } else { datagram.ipv4() };
        let mut frame = datagram.frame(&packet);
        for (place, value) in changes {
            let place = place.index(frame.len());
            frame[place] = value;
        }
        let kept = kept.index(frame.len() + 1);
        read_all(&frame[..kept]);
        read_all(frame.get(14..kept).unwrap_or_default());
    }
}
