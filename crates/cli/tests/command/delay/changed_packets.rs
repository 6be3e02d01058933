//! The same call at two points, between which its packets are changed: tunnels, tags, address translation, fragments, other
//! link types, a short snap length. Loss, duplicates and delay equal the truth.

use std::fs;

use serde_json::Value;

use crate::common::{json, run, stderr};
use crate::delay::{A, B, Classic, delay, delayed, files, sent};
use crate::schema;

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

/// Packet `number` of another call, which reaches B as it is.
fn unchanged(number: u32) -> Vec<u8> {
    ethernet(&[8, 0], &ip(UDP, number + 1000, [A, B], &udp([7004, 7004], &rtp(number))))
}

/// The call and an unchanged one, as A observes them. The captures contain this many bytes of the first call's packets.
fn two_calls(captured: usize) -> Classic {
    let mut capture = Classic::of_link(ETHERNET);
    for n in 0..PACKETS {
        let frame = frame(n);
        capture.frame_cut(sent(n), &frame, captured.min(frame.len()));
        capture.frame(sent(n), &unchanged(n));
    }
    capture
}

/// Both calls at B: the frames of the first one, and the unchanged one without each tenth packet.
fn partly_changed(frames: fn(u32) -> Vec<Vec<u8>>) -> Classic {
    let mut capture = Classic::of_link(ETHERNET);
    for n in 0..PACKETS {
        let time = sent(n) + delay(n);
        frames(n).iter().for_each(|frame| capture.frame(time, frame));
        if n % 10 != 3 {
            capture.frame(time, &unchanged(n));
        }
    }
    capture
}

/// The frames that a packet becomes.
type Frames = fn(u32) -> Vec<Vec<u8>>;

/// Lost packets of the flow to this port; none if there is no such flow.
fn lost_of(found: &Value, port: u16) -> Option<&Value> {
    let mut flows = found["flows"].as_array().unwrap().iter();
    flows.find(|flow| flow["dport"] == port).map(|flow| &flow["lost"])
}

#[test]
fn loss_of_partly_changed_traffic_is_unknown() {
    let changes: [(&str, Frames, &str, &str); 3] = [
        ("a tunnel", |n| vec![between_ends(47, &[0, 0, 8, 0], &packet(n))], "GRE", "inner"),
        (
            "NAT",
            |n| {
                let hosts = [[192, 0, 2, 7], B];
                vec![ethernet(&[8, 0], &ip(UDP, n, hosts, &udp([40_000, 5004], &rtp(n))))]
            },
            "NAT",
            "payload",
        ),
        ("fragments", |n| fragments(&packet(n)), "fragments", "reassembled"),
    ];
    for (name, frames, reason, rule) in changes {
        let (_folder, files) = files(two_calls(usize::MAX), partly_changed(frames));
        let output = run(&["delay", &files[0], &files[1], "--json", "--match", "packet"]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", stderr(&output));
        let found = schema::document("delay", &output.stdout);
        let text = found["lost_reason"].as_str().unwrap();
        assert!(text.starts_with("loss of some flows") && text.contains(reason), "{name}: {text}");
        assert_eq!(found["lost"], Value::Null, "{name}: {found:#}");
        assert_eq!(lost_of(&found, 5004), Some(&Value::Null), "{name}: {found:#}");
        assert_eq!(lost_of(&found, 7004), Some(&6.into()), "{name}: {found:#}");
        let found = delayed(&[], &files);
        assert_eq!((&found["match_rule"], &found["lost"]), (&rule.into(), &6.into()), "{name}");
    }
}

#[test]
fn call_that_is_lost_beside_unrelated_packets_is_lost() {
    let others: [Frames; 2] = [
        |n| {
            let hosts = [[10, 1, 1, 1], [10, 2, 2, 2]];
            vec![ethernet(&[8, 0], &ip(UDP, n, hosts, &udp([9, 99], &rtp(n))))]
        },
        |_| Vec::new(),
    ];
    for frames in others {
        let (_folder, files) = files(two_calls(usize::MAX), partly_changed(frames));
        let found = delayed(&[], &files);
        assert_eq!(
            (&found["lost"], &found["lost_reason"]),
            (&66.into(), &Value::Null),
            "{found:#}"
        );
        assert_eq!(lost_of(&found, 5004), Some(&PACKETS.into()), "{found:#}");
    }
}

#[test]
fn loss_of_calls_that_were_cut_at_a_is_unknown() {
    let mut only_call = Classic::of_link(ETHERNET);
    (0..PACKETS).for_each(|n| only_call.frame_cut(sent(n), &frame(n), 96));
    for a in [only_call, two_calls(96)] {
        let (_folder, files) = files(a, partly_changed(|n| vec![frame(n)]));
        let output = run(&["delay", &files[0], &files[1], "--json", "--match", "packet"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let found = schema::document("delay", &output.stdout);
        assert_eq!((&found["lost"], lost_of(&found, 5004)), (&Value::Null, Some(&Value::Null)));
        let text = found["lost_reason"].as_str().unwrap();
        assert!(text.contains("snap length"), "{text}");
        let found = delayed(&[], &files);
        assert_eq!(found["match_rule"], "beginning", "{found:#}");
        assert_eq!(lost_of(&found, 5004), Some(&0.into()), "{found:#}");
    }
}

#[test]
fn rows_of_packets_with_unknown_loss_are_undetermined() {
    let changed = partly_changed(|n| vec![between_ends(47, &[0, 0, 8, 0], &packet(n))]);
    let (folder, files) = files(two_calls(usize::MAX), changed);
    let csv = folder.path().join("rows.csv");
    let csv = csv.to_str().unwrap();
    let output = run(&["delay", &files[0], &files[1], "--json", "--match", "packet", "--csv", csv]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = fs::read_to_string(csv).unwrap();
    let count = |outcome: &str, reason: &str, port: &str| {
        let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        rows.filter(|row| row[0] == outcome && row[14] == reason && row[4] == port).count()
    };
    assert!(text.starts_with("outcome,src,dst,sport,dport,") && text.contains(",reason,"));
    assert_eq!(count("undetermined", "loss_unknown", "5004"), 60, "{text}");
    assert_eq!([count("lost", "", "7004"), count("lost", "", "5004")], [6, 0], "{text}");
}
