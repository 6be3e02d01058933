//! Pairs of frames of the same packet, and of different packets.

use proptest::prelude::*;

use crate::samples::Datagram;
use crate::{IdentityKey, LinkType, Packet, PacketId};

fn identity(frame: &[u8]) -> Option<PacketId> {
    Packet::parse(LinkType::Ethernet, frame).ok()?.identity(IdentityKey(1))
}

/// Twenty bytes above UDP; with the fifth they are also a TCP header of twenty bytes.
const PAYLOAD: &[u8] = &[1, 2, 3, 4, 0x50, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];

/// Hop-by-hop or destination options before UDP: one padding option, which routers may change.
const OPTIONS: [u8; 8] = [17, 0, 0x3e, 4, 0, 0, 0, 0];

fn sample() -> Datagram {
    Datagram::new(PAYLOAD)
}

fn v4(datagram: &Datagram) -> Vec<u8> {
    datagram.frame(&datagram.ipv4())
}

fn v6(datagram: &Datagram) -> Vec<u8> {
    datagram.frame(&datagram.ipv6(17, &[]))
}

/// The sample with extension headers.
fn extended(first_header: u8, headers: &[u8]) -> Vec<u8> {
    sample().frame(&sample().ipv6(first_header, headers))
}

/// The sample with a fragment header with these values.
fn fragment(identification: u8, offset_and_more: u8) -> Vec<u8> {
    extended(44, &[17, 0, 0, offset_and_more, 0, 0, 0, identification])
}

/// `frame` with the byte at `place` replaced.
fn with(mut frame: Vec<u8>, place: usize, byte: u8) -> Vec<u8> {
    frame[place] = byte;
    frame
}

/// `frame` with a tag of the kind `protocol` after its addresses.
fn tagged(frame: &[u8], protocol: u16, tag: u16) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(12);
    [addresses, &protocol.to_be_bytes(), &tag.to_be_bytes(), rest].concat()
}

/// The sample as an IPv4 packet of another protocol above IP.
fn carrying(protocol: u8) -> Vec<u8> {
    with(v4(&sample()), 23, protocol)
}

#[test]
fn same_packet_has_the_same_identity() {
    let tos = |dscp_ecn| Datagram { dscp_ecn, ..sample() };
    let ttl = |ttl| Datagram { ttl, ..sample() };
    let whole = |flags| v4(&Datagram { flags, ..sample() });
    let checksum = |transport_checksum| Datagram { transport_checksum, ..sample() };
    let route = |options: &[u8]| v4(&Datagram { options: options.to_vec(), ..sample() });
    let trunk = tagged(&tagged(&v4(&sample()), 0x8100, 7), 0x88a8, 42);
    let pairs = [
        ("a VLAN tag", v4(&sample()), tagged(&v4(&sample()), 0x8100, 0xe007)),
        ("a customer's tag in a provider's", v4(&sample()), trunk),
        ("addresses of the link", v4(&sample()), v4(&Datagram { mac: 9, ..sample() })),
        ("padding", v4(&sample()), v4(&Datagram { padding: 6, ..sample() })),
        ("time to live", v4(&ttl(64)), v4(&ttl(1))),
        ("hop limit", v6(&ttl(64)), v6(&ttl(1))),
        ("DSCP and ECN of IPv4", v4(&tos(0)), v4(&tos(0xbb))),
        ("DSCP and ECN of IPv6", v6(&tos(0)), v6(&tos(0xbb))),
        ("flow label", v6(&sample()), v6(&Datagram { flow_label: 5, ..sample() })),
        ("header checksum", v4(&sample()), v4(&Datagram { header_checksum: 5, ..sample() })),
        ("UDP's checksum over IPv4", v4(&checksum(0)), v4(&checksum(0xbeef))),
        ("UDP's checksum over IPv6", v6(&checksum(0)), v6(&checksum(0xbeef))),
        ("TCP's checksum", carrying(6), with(carrying(6), 34 + 17, 99)),
        ("SCTP's checksum", carrying(132), with(carrying(132), 34 + 11, 99)),
        ("ICMP's checksum", carrying(1), with(carrying(1), 34 + 3, 99)),
        ("a route recorded", route(&[7, 7, 4, 0, 0, 0, 0, 0]), route(&[7, 7, 8, 10, 0, 0, 1, 0])),
        ("IPv4 options taken out", route(&[1, 1, 1, 0]), v4(&sample())),
        ("don't fragment", whole(0b010), whole(0b000)),
        ("a hop-by-hop option", extended(0, &OPTIONS), with(extended(0, &OPTIONS), 60, 1)),
        ("hop-by-hop options put in", v6(&sample()), extended(0, &OPTIONS)),
        ("destination options", v6(&sample()), extended(60, &OPTIONS)),
    ];
    for (name, one, other) in pairs {
        assert_ne!(one, other, "{name}: the frames are equal");
        assert!(identity(&one).is_some(), "{name}: no identity");
        assert_eq!(identity(&one), identity(&other), "{name}");
    }
}

#[test]
fn different_packets_have_different_identities() {
    let number = |identification| v4(&Datagram { identification, ..sample() });
    let offset = |fragment_offset| v4(&Datagram { fragment_offset, ..sample() });
    let flags = |flags| v4(&Datagram { flags, ..sample() });
    let zeros = |count| v4(&Datagram::new(&vec![0; count]));
    // The length field of UDP made equal.
    let longer = with(with(zeros(401), 38, zeros(400)[38]), 39, zeros(400)[39]);
    let pairs = [
        ("identification of IPv4", number(7), number(8)),
        ("fragment offset of IPv4", offset(25), offset(50)),
        ("more fragments of IPv4", flags(0b000), flags(0b001)),
        ("identification of IPv6", fragment(7, 0), fragment(8, 0)),
        ("fragment offset of IPv6", fragment(7, 8), fragment(7, 16)),
        ("more fragments of IPv6", fragment(7, 0), fragment(7, 1)),
        ("a checksum's place in a later fragment", offset(25), with(offset(25), 34 + 6, 99)),
        ("protocol", carrying(17), carrying(136)),
        ("source", v4(&sample()), with(v4(&sample()), 29, 9)),
        ("destination", v4(&sample()), with(v4(&sample()), 33, 9)),
        ("source port", v6(&sample()), with(v6(&sample()), 55, 9)),
        ("sequence number of TCP", carrying(6), with(carrying(6), 34 + 7, 99)),
        ("version of IP", v4(&sample()), v6(&sample())),
        ("first byte of the payload", v4(&sample()), with(v4(&sample()), 42, 99)),
        ("length above IP", zeros(400), longer),
    ];
    for (name, one, other) in pairs {
        for frame in [&one, &other] {
            assert!(identity(frame).is_some(), "{name}: no identity");
        }
        assert_ne!(identity(&one), identity(&other), "{name}");
    }
}

/// Start of the IP header in the frames of the property test: after Ethernet and a tag.
const LINK: usize = 18;

/// True if a router, a switch or a network card may change this bit of a frame with UDP after `header` bytes of IP
/// header, eight of which are options.
fn is_mutable(v6: bool, header: usize, byte: usize, bit: u32) -> bool {
    let Some(place) = byte.checked_sub(LINK) else { return true };
    let options = if v6 { header - 6..header } else { header - 8..header };
    let field = match (v6, place) {
        // Reserved, and don't fragment.
        (false, 6) => bit >= 6,
        (false, place) => matches!(place, 1 | 8 | 10 | 11),
        (true, 0) => bit < 4,
        (true, place) => matches!(place, 1..=3 | 7),
    };
    field || options.contains(&place) || (header + 6..header + 8).contains(&place)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn exactly_the_immutable_bits_are_hashed(
        v6 in any::<bool>(),
        payload in prop::collection::vec(any::<u8>(), 0..88),
    ) {
        let mut datagram = Datagram { vlan: Some(42), ..Datagram::new(&payload) };
        datagram.options = OPTIONS.to_vec();
        let (header, packet) =
            if v6 { (48, datagram.ipv6(0, &OPTIONS)) } else { (28, datagram.ipv4()) };
        let mut frame = datagram.frame(&packet);
        let whole = identity(&frame);
        prop_assert!(whole.is_some());
        for (byte, bit) in (0..frame.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
            frame[byte] ^= 1u8 << bit;
            let changed = identity(&frame);
            frame[byte] ^= 1u8 << bit;
            // Bytes that no longer are an IP packet have no identity at all.
            let is_link_type = (12..14).contains(&byte) || (16..LINK).contains(&byte);
            if !(is_link_type && changed.is_none()) {
                let mutable = is_mutable(v6, header, byte, bit);
                prop_assert_eq!(changed == whole, mutable, "bit {} of byte {}", bit, byte);
            }
        }
    }
}
