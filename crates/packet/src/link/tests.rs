use proptest::prelude::*;

use super::*;
use crate::samples::Datagram;
use crate::{IpHeader, Packet};

/// Numbers of all supported link types.
const NUMBERS: [u32; 20] =
    [0, 1, 8, 9, 12, 50, 51, 101, 104, 105, 107, 108, 113, 123, 127, 129, 166, 239, 258, 276];

/// The flow of a packet behind `header`.
fn flow(link: LinkType, header: &[u8], packet: &[u8]) -> String {
    let frame = [header, packet].concat();
    Packet::parse(link, &frame).expect("an IP packet").flow().to_string()
}

/// Zeros, with some bytes set.
fn header(length: usize, bytes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut header = vec![0; length];
    for (place, bytes) in bytes {
        header[*place..place + bytes.len()].copy_from_slice(bytes);
    }
    header
}

#[test]
fn ip_packets_of_every_link_type_are_found() {
    let snap = |ether_type: [u8; 2]| [&[0xaa, 0xaa, 3, 0, 0, 0][..], &ether_type].concat();
    let (v4, v6) = ([0x08, 0x00], [0x86, 0xdd]);
    let headers_v4 = [
        (LinkType::Ip, vec![]),
        (LinkType::Ethernet, [header(12, &[]), vec![0x01, 0x00], snap(v4)].concat()),
        (LinkType::LinuxCooked, header(16, &[(14, &v4)])),
        (LinkType::LinuxCooked2, header(20, &[(0, &v4)])),
        (LinkType::Loopback, vec![2, 0, 0, 0]),
        (LinkType::Loopback, vec![0, 0, 0, 2]),
        (LinkType::Ppp, vec![0x00, 0x21]),
        (LinkType::Ppp, vec![0x21]),
        (LinkType::Ppp, vec![0xff, 0x03, 0x00, 0x21]),
        (LinkType::PppWithDirection, vec![1, 0xff, 0x03, 0x00, 0x21]),
        (LinkType::Pppoe, vec![0x11, 0, 0, 1, 0, 9, 0x00, 0x21]),
        (LinkType::Hdlc, vec![0x0f, 0, 0x08, 0x00]),
        (LinkType::Hdlc, vec![0xff, 0x03, 0x00, 0x21]),
        (LinkType::FrameRelay, vec![0x18, 0x41, 0x03, 0xcc]),
        (LinkType::FrameRelay, vec![0x18, 0x41, 0x03, 0x00, 0x80, 0, 0, 0, 0x08, 0x00]),
        (LinkType::FrameRelay, vec![0x18, 0x41, 0x08, 0x00]),
        (LinkType::Slip, header(16, &[])),
        (LinkType::Atm, [vec![0x02, 0, 0, 5], snap(v4)].concat()),
        (LinkType::Arcnet, vec![1, 2, 0, 0, 212, 0, 0, 1]),
        (LinkType::Nflog, vec![2, 0, 0, 0, 6, 0, 1, 0, 9, 9, 0, 0, 0xff, 0xff, 9, 0]),
        (LinkType::SwitchTag, header(18, &[(12, &[0xc0, 0, 0, 5]), (16, &v4)])),
        (LinkType::LongSwitchTag, header(22, &[(12, &[0xda, 0xda]), (20, &v4)])),
        (LinkType::SwitchTagFirst, header(18, &[(16, &v4)])),
        (LinkType::Ipnet, header(24, &[])),
        (LinkType::Infiniband, header(44, &[(40, &v4)])),
        (LinkType::Pktap, header(16, &[(0, &[16]), (4, &[1]), (8, &[12])])),
        // From the access point; and with QoS, four addresses, and padding behind radiotap's flags.
        (LinkType::Wifi, [header(24, &[(0, &[0x08, 0x02])]), snap(v4)].concat()),
        (
            LinkType::WifiRadiotap,
            [
                header(17, &[(2, &[17]), (4, &[3]), (16, &[0x20])]),
                header(32, &[(0, &[0x88, 0x03])]),
                snap(v4),
            ]
            .concat(),
        ),
        (LinkType::Ethernet, header(22, &[(12, &[0x88, 0x64, 0x11]), (20, &[0x00, 0x21])])),
        (LinkType::Ethernet, header(22, &[(12, &[0x88, 0x47, 0, 0, 0x10, 64, 0, 0, 0x21, 64])])),
    ];
    let datagram = Datagram::new(b"hello");
    for (link, header) in headers_v4 {
        let flow = flow(link, &header, &datagram.ipv4());
        assert_eq!(flow, "10.77.1.1:5000 > 10.77.2.2:5001 udp", "{link:?}");
    }
    let headers_v6 = [
        (LinkType::LinuxCooked2, header(20, &[(0, &v6)])),
        (LinkType::Loopback, vec![30, 0, 0, 0]),
        (LinkType::Ppp, vec![0x57]),
        (LinkType::FrameRelay, vec![0x18, 0x41, 0x03, 0x8e]),
        (LinkType::Nflog, vec![10, 0, 0, 0, 0xff, 0xff, 9, 0]),
        (LinkType::Ethernet, header(18, &[(12, &[0x88, 0x47, 0, 1, 0x11, 64])])),
    ];
    for (link, header) in headers_v6 {
        let flow = flow(link, &header, &datagram.ipv6(17, &[]));
        assert_eq!(flow, "[fd00::1]:5000 > [fd00::2]:5001 udp", "{link:?}");
    }
}

#[test]
fn frames_without_ip_and_short_ones_have_different_errors() {
    let parse = |link: LinkType, bytes: &[u8]| Packet::parse(link, bytes).map(|_| ()).unwrap_err();
    assert_eq!(parse(LinkType::Wifi, &[0x80, 0, 0, 0]), ParseError::NotIp, "a beacon");
    assert_eq!(parse(LinkType::Wifi, &[0x08, 0x40]), ParseError::NotIp, "encrypted");
    assert_eq!(parse(LinkType::Wifi, &[0x08, 0x00]), ParseError::CutShort);
    assert_eq!(parse(LinkType::Ppp, &[0xc0, 0x21, 1]), ParseError::NotIp, "LCP");
    assert_eq!(parse(LinkType::Pppoe, &[0x11, 0x09, 0, 0]), ParseError::NotIp, "discovery");
    let netlink = header(16, &[(2, &824_u16.to_be_bytes()), (14, &[0x08, 0x00])]);
    assert_eq!(parse(LinkType::LinuxCooked, &netlink), ParseError::NotIp);
    assert_eq!(parse(LinkType::Pktap, &header(12, &[(0, &[12]), (8, &[189])])), ParseError::NotIp);
}

#[test]
fn link_types_are_known_by_their_numbers() {
    assert!(NUMBERS.iter().all(|number| LinkType::of_number(*number).is_some()));
    // With a frame check sequence of 6 units.
    assert_eq!(LinkType::of_number(0x3000_0001), Some(LinkType::Ethernet));
    assert_eq!(LinkType::of_number(189), None, "USB");
}

#[test]
fn frames_get_an_ethernet_header_for_filters() {
    let cooked = [&header(20, &[(0, &[0x08, 0x00])])[..], &[1, 2, 3]].concat();
    let ethernet = LinkType::LinuxCooked2.as_ethernet(&cooked).unwrap();
    assert_eq!(ethernet.as_ref(), [&[0; 12][..], &[0x08, 0x00, 1, 2, 3]].concat());
    assert_eq!(LinkType::Ethernet.as_ethernet(&[1]).as_deref(), Some(&[1][..]));
    assert_eq!(LinkType::LinuxCooked2.as_ethernet(&[1]), None);
}

#[test]
fn content_begins_after_header_and_tags() {
    let header = [&[0; 12][..], &[0x81, 0x00, 0, 7, 0x08, 0x06]].concat();
    let frame = [&header[..], b"request"].concat();
    assert_eq!(LinkType::Ethernet.content(&frame), b"request");
    assert_eq!(LinkType::Ip.content(&frame), frame);
    assert_eq!(LinkType::Ethernet.content(&frame[..13]), &frame[..13], "no complete header");
    assert_eq!(LinkType::Ethernet.content(&frame[..16]), &frame[14..16], "no complete tag");
}

proptest! {
    #[test]
    fn arbitrary_bytes_of_every_link_type_do_not_panic(
        number in prop::sample::select(NUMBERS.to_vec()),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let link = LinkType::of_number(number).unwrap();
        let _ = Packet::parse(link, &bytes);
        let _ = link.as_ethernet(&bytes);
        let _ = (link.content(&bytes), IpHeader::of(link, &bytes));
    }
}
