//! The same call at two points, between which its packets are changed: tunnels, tags, address translation, fragments, other
//! link types, a short snap length. Loss, duplicates and delay equal the truth.

use crate::common::json;
use crate::delay::{A, B, Classic, delay, delayed, files, sent};

const PACKETS: u32 = 60;
const ETHERNET: u32 = 1;
const UDP: u8 = 17;
/// The ends of tunnels.
const ENDS: [[u8; 4]; 2] = [[198, 51, 100, 1], [198, 51, 100, 2]];

/// Packet `number` of a call: RTP with G.711, and content that differs.
fn rtp(number: u32) -> Vec<u8> {
    let [.., high, low] = number.to_be_bytes();
    let time = (number * 160).to_be_bytes();
    let content = (0..160).map(|place| u8::try_from((number * 31 + place) % 251).unwrap());
    [&[0x80, 0, high, low][..], &time, &[1, 2, 3, 4]].concat().into_iter().chain(content).collect()
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
    [ports.map(u16::to_be_bytes).as_flattened(), &length, &[0, 0], payload].concat()
}

fn ip(protocol: u8, identification: u32, hosts: [[u8; 4]; 2], body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + body.len()).unwrap().to_be_bytes();
    let [.., high, low] = identification.to_be_bytes();
    let header = [&[0x45, 0][..], &length, &[high, low, 0, 0, 64, protocol, 0, 0]].concat();
    [&header, hosts.as_flattened(), body].concat()
}

/// A packet of the call as A observes it.
fn packet(number: u32) -> Vec<u8> {
    ip(UDP, number, [A, B], &udp([5004, 5004], &rtp(number)))
}

/// An Ethernet frame with these bytes between the addresses and the packet.
fn ethernet(types: &[u8], packet: &[u8]) -> Vec<u8> {
    [&[0; 12], types, packet].concat()
}

fn frame(number: u32) -> Vec<u8> {
    ethernet(&[8, 0], &packet(number))
}

/// An Ethernet frame with a packet of this protocol between the ends of a tunnel.
fn between_ends(protocol: u8, header: &[u8], inner: &[u8]) -> Vec<u8> {
    ethernet(&[8, 0], &ip(protocol, 9, ENDS, &[header, inner].concat()))
}

/// The same with UDP to this port.
fn in_udp(port: u16, header: &[u8], inner: &[u8]) -> Vec<u8> {
    let datagram = udp([33_000, port], &[header, inner].concat());
    ethernet(&[8, 0], &ip(UDP, 9, ENDS, &datagram))
}

/// Fragments of an IPv4 packet with 64 bytes above IP each, as Ethernet frames.
fn fragments(packet: &[u8]) -> Vec<Vec<u8>> {
    let (header, body) = packet.split_at(20);
    let pieces: Vec<_> = body.chunks(64).collect();
    let fragment = |(index, piece): (usize, &&[u8])| {
        let mut fragment = [header, piece].concat();
        let length = u16::try_from(fragment.len()).unwrap();
        let place = u16::try_from(index * 8).unwrap();
        let more = u16::from(index + 1 < pieces.len()) << 13;
        fragment[2..4].copy_from_slice(&length.to_be_bytes());
        fragment[6..8].copy_from_slice(&(place | more).to_be_bytes());
        ethernet(&[8, 0], &fragment)
    };
    pieces.iter().enumerate().map(fragment).collect()
}

/// A packet after address translation: other addresses, ports and identification.
fn translated(number: u32, identification: u32, payload: &[u8]) -> Vec<u8> {
    let hosts = [[192, 0, 2, 7], [203, 0, 113, 9]];
    ethernet(&[8, 0], &ip(UDP, identification, hosts, &udp([40_000, 6000], payload)))
        .into_iter()
        .chain(std::iter::repeat_n(0, usize::try_from(number % 3).unwrap()))
        .collect()
}

/// How a path changes packets: name, link type at B, the frames at B of a packet, and the rule that recognises them.
type Change = (&'static str, u32, fn(u32) -> Vec<Vec<u8>>, &'static str);

const CHANGES: [Change; 30] = [
    ("nothing", ETHERNET, |n| vec![frame(n)], "packet"),
    ("VLAN", ETHERNET, |n| vec![ethernet(&[0x81, 0, 0, 5, 8, 0], &packet(n))], "packet"),
    (
        "QinQ",
        ETHERNET,
        |n| vec![ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], &packet(n))],
        "packet",
    ),
    ("MPLS", ETHERNET, |n| vec![ethernet(&[0x88, 0x47, 0, 1, 1, 64], &packet(n))], "packet"),
    (
        "MPLS, three labels",
        ETHERNET,
        |n| vec![ethernet(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 0, 64, 0, 3, 1, 64], &packet(n))],
        "packet",
    ),
    (
        "PPPoE",
        ETHERNET,
        |n| vec![ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 202, 0, 0x21], &packet(n))],
        "packet",
    ),
    (
        "PPPoE in a VLAN",
        ETHERNET,
        |n| {
            let types = [0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 1, 0, 202, 0, 0x21];
            vec![ethernet(&types, &packet(n))]
        },
        "packet",
    ),
    ("tcpdump -i any", 113, |n| vec![[&[0; 14], &[8, 0][..], &packet(n)].concat()], "packet"),
    (
        "tcpdump -i any, second version",
        276,
        |n| vec![[&[8, 0], &[0; 18][..], &packet(n)].concat()],
        "packet",
    ),
    ("a tun interface", 101, |n| vec![packet(n)], "packet"),
    (
        "a loopback interface of BSD",
        0,
        |n| vec![[&[2, 0, 0, 0], &packet(n)[..]].concat()],
        "packet",
    ),
    ("PPP", 9, |n| vec![[&[0xff, 3, 0, 0x21], &packet(n)[..]].concat()], "packet"),
    ("Cisco's HDLC", 104, |n| vec![[&[0x0f, 0, 8, 0], &packet(n)[..]].concat()], "packet"),
    ("Frame Relay", 107, |n| vec![[&[0x18, 0x41, 3, 0xcc], &packet(n)[..]].concat()], "packet"),
    (
        "Wi-Fi",
        127,
        |n| {
            let headers = [&[0, 0, 8, 0, 0, 0, 0, 0][..], &[8, 2], &[0; 22]].concat();
            vec![[&headers[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet(n)].concat()]
        },
        "packet",
    ),
    ("IPIP", ETHERNET, |n| vec![between_ends(4, &[], &packet(n))], "inner"),
    ("GRE", ETHERNET, |n| vec![between_ends(47, &[0, 0, 8, 0], &packet(n))], "inner"),
    (
        "GRE with a key",
        ETHERNET,
        |n| vec![between_ends(47, &[0x20, 0, 8, 0, 0, 0, 0, 9], &packet(n))],
        "inner",
    ),
    (
        "Ethernet in GRE",
        ETHERNET,
        |n| vec![between_ends(47, &[0, 0, 0x65, 0x58], &frame(n))],
        "inner",
    ),
    ("VXLAN", ETHERNET, |n| vec![in_udp(4789, &[8, 0, 0, 0, 0, 0, 1, 0], &frame(n))], "inner"),
    (
        "VXLAN in IPIP",
        ETHERNET,
        |n| {
            let vxlan = in_udp(4789, &[8, 0, 0, 0, 0, 0, 1, 0], &frame(n));
            vec![between_ends(4, &[], &vxlan[14..])]
        },
        "inner",
    ),
    (
        "Geneve",
        ETHERNET,
        |n| vec![in_udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 1, 0], &frame(n))],
        "inner",
    ),
    (
        "GTP-U",
        ETHERNET,
        |n| vec![in_udp(2152, &[0x30, 255, 0, 0, 0, 0, 0, 1], &packet(n))],
        "inner",
    ),
    (
        "GTP-U of 5G",
        ETHERNET,
        |n| {
            let header = [0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0];
            vec![in_udp(2152, &header, &packet(n))]
        },
        "inner",
    ),
    ("NAT", ETHERNET, |n| vec![translated(n, n, &rtp(n))], "payload"),
    // Also other identifications, and another payload: transcoded content behind the same header.
    (
        "a relay of media",
        ETHERNET,
        |n| vec![translated(n, n + 500, &[&rtp(n)[..12], &[7; 160]].concat())],
        "rtp",
    ),
    ("fragments", ETHERNET, |n| fragments(&packet(n)), "reassembled"),
    (
        "fragments in reverse order",
        ETHERNET,
        |n| fragments(&packet(n)).into_iter().rev().collect(),
        "reassembled",
    ),
    ("snap length 96", ETHERNET, |n| vec![frame(n)], "beginning"),
    (
        "a frame check sequence",
        0x3000_0001,
        |n| vec![[frame(n), vec![1, 2, 3, 4]].concat()],
        "packet",
    ),
];

/// Whether a packet is lost, and how often it arrives otherwise.
const fn copies(number: u32) -> u32 {
    match number % 10 {
        3 => 0,
        7 => 2,
        _ => 1,
    }
}

#[test]
fn changed_packets_are_measured_as_if_they_were_not() {
    let mut at_a = Classic::of_link(ETHERNET);
    (0..PACKETS).for_each(|n| at_a.frame(sent(n), &frame(n)));
    for (name, link, frames, rule) in CHANGES {
        let mut at_b = Classic::of_link(link);
        for n in 0..PACKETS {
            // Copies arrive a little later; the last part of a packet is the one that arrives at its time.
            for copy in 0..i64::from(copies(n)) {
                let time = sent(n) + delay(n) + copy * 1_000_000;
                let frames = frames(n);
                let parts = i64::try_from(frames.len()).unwrap();
                for (part, frame) in (1..).zip(&frames) {
                    let captured = if name == "snap length 96" { 96 } else { frame.len() };
                    at_b.frame_cut(time - (parts - part) * 10_000, frame, captured);
                }
            }
        }
        let (_folder, files) = files(Classic(at_a.0.clone()), at_b);
        let found = delayed(&[], &files);
        let arrived: Vec<_> = (0..PACKETS).filter(|n| copies(*n) > 0).collect();
        let delays = arrived.iter().map(|n| delay(*n));
        let twice = arrived.iter().filter(|n| copies(**n) == 2).count();
        assert_eq!(found["match_rule"], rule, "{name}: {found:#}");
        assert_eq!(found["sent"], PACKETS, "{name}");
        assert_eq!(found["lost"], PACKETS - u32::try_from(arrived.len()).unwrap(), "{name}");
        assert_eq!(found["duplicated"], twice, "{name}");
        let owd = &found["owd_ns"];
        assert_eq!(owd["min"], delays.clone().min().unwrap(), "{name}: {found:#}");
        assert_eq!(owd["max"], delays.clone().max().unwrap(), "{name}");
        // The flow is that of A, or of the inner packet.
        let flow = &found["flows"][0];
        assert_eq!(
            (&flow["dport"], &flow["rtp_streams"][0]["ssrc"]),
            (&5004.into(), &0x0102_0304.into()),
            "{name}"
        );
    }
}

#[test]
fn rule_that_does_not_fit_is_not_replaced() {
    let mut at_a = Classic::of_link(ETHERNET);
    (0..PACKETS).for_each(|n| at_a.frame(sent(n), &frame(n)));
    let (_folder, files) = files(Classic(at_a.0.clone()), at_a);
    let found = json(&["delay", &files[0], &files[1], "--json", "--match", "rtp"]);
    assert_eq!((&found["match_rule"], &found["matched"]), (&"rtp".into(), &PACKETS.into()));
}
