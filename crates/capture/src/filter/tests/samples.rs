//! Filters and frames for the tests of every form.

/// Filters that the kernel applies.
pub(crate) const FILTERS: &[&str] = &[
    // Hosts, nets and ports.
    "host 10.77.1.1",
    "src host 10.77.1.1 and dst host 10.77.2.2",
    "net 10.77.0.0/16",
    "dst net 10.77.2.0/24 or src net 192.168.0.0/16",
    "ether src 02:77:00:00:01:01",
    "ether host 02:77:00:00:01:01 and not ip",
    "port 53",
    "udp port 5000",
    "tcp dst port 80",
    "src port 5000 or dst port 443",
    "portrange 1000-6000",
    "udp src portrange 5000-5001",
    "sctp",
    // Protocols and their fields.
    "ip",
    "ip6",
    "arp",
    "arp[6:2] = 2",
    "icmp[icmptype] = icmp-echo",
    "icmp6",
    "icmp6[0] = 135",
    "tcp",
    "ip6 and ip6[6] = 6 and ip6[53] & tcp-syn != 0",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "tcp[13] = 18",
    "tcp and (((ip[2:2] - ((ip[0] & 0xf) << 2)) - ((tcp[12] & 0xf0) >> 2)) != 0)",
    "udp[4:2] > 20",
    "ip6 host fd77:1::1",
    "ip6 net fd77:2::/32 and udp",
    "ip proto 17 or ip6 proto 6",
    "ip[0] & 0xf != 5",
    "ip[6:2] & 0x1fff != 0",
    "ip[8] < 10",
    "ip6[7] = 64",
    // The frame.
    "broadcast",
    "multicast",
    "ip multicast or ip6 multicast",
    "ip broadcast",
    "less 60",
    "greater 100",
    "len = 64 or len = 68",
    "ether[0] & 1 = 0",
    "ether[12:2] > 1500",
    "ether[12:2] = 0x8100",
    "ether[12] = 0x88",
    "ether[13] = 0xa8 or ether[15] = 7",
    "ether[14] & 0xe0 != 0",
    "ether[16:2] = 0x0800",
    "ether[20:4] & 0xff = 17",
    "ether proto 0x88a8",
    "stp or iso",
    // Tags and labels.
    "vlan",
    "vlan 7",
    "vlan and udp port 5000",
    "vlan 7 and tcp[tcpflags] & tcp-ack != 0",
    "vlan and vlan",
    "vlan 100 and vlan 7 and ip6",
    "vlan and arp",
    "not vlan",
    "udp port 5000 or (vlan and udp port 5000)",
    "vlan 7 or vlan 8",
    "mpls",
    "mpls 16 and ip",
    "vlan and mpls 16",
    "pppoes",
    "pppoes and ip and udp port 5000",
    "vlan and pppoes 1",
    // Combinations and arithmetic.
    "not ip and not ip6 and not arp",
    "(tcp or udp) and not port 53 and not net 192.168.0.0/16",
    "ip[ip[8] & 0x1f] = 0x45",
    "udp port 53 or ip[ip[8] - 70] = 0",
    "udp[udp[8] + 1] = 7",
    "ip[2:2] % 7 = 0 or ip[2:2] / 3 > 20",
    "ip[2:2] % (ip[8] / 8) = 0",
    "ip[2:2] / ip[1] > 3",
    "ip[8] ^ 0x40 = 0 and -ip[8] & 0xff != 0",
    "udp[0:2] * 3 > len and (udp[2:2] | 1) << 2 > 4000",
];

/// Filters that the kernel cannot apply to a socket's packets, or to any packets.
pub(crate) const FOR_THE_CONSUMER: &[&str] = &[
    "ip6 protochain 17",
    "ip protochain 6 and host 10.77.1.1",
    "ether[12:4] = 0x81000007",
    "ether[ether[0]] = 0x81",
    "ip[6] << ip[8] = 0",
];

const UDP: u8 = 17;
const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const SCTP: u8 = 132;
const UNICAST: [u8; 6] = [2, 0x77, 0, 0, 9, 9];
const BROADCAST: [u8; 6] = [0xff; 6];

/// Frames of every kind that the filters distinguish, without tags and with one or two.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (to, kind, payload) in packets() {
        for tags in [&[][..], &[(0x8100, 7)], &[(0x8100, 0xe064)], &[(0x88a8, 100), (0x8100, 7)]] {
            frames.push(frame(to, tags, kind, &payload));
        }
    }
    // Tags that the kernel does not remove, that it removes although they are empty, and a frame of tags only.
    frames.push(frame(UNICAST, &[(0x9100, 7)], 0x0800, &ipv4(UDP, &[], 0, &udp(53, 5000, 9))));
    frames.push(frame(UNICAST, &[(0x8100, 0)], 0x0800, &ipv4(UDP, &[], 0, &udp(53, 5000, 9))));
    frames.push(frame(UNICAST, &[(0x8100, 7), (0x8100, 8), (0x8100, 9)], 0x86dd, &[0x60]));
    frames.push(frame(UNICAST, &[(0x8100, 7)], 0x0800, &[0x45, 0]));
    frames
}

/// Destination, type and payload of frames.
fn packets() -> Vec<([u8; 6], u16, Vec<u8>)> {
    let label = |last: u8, rest: &[u8]| [&[0, 1, last, 64], rest].concat();
    let stream = tcp(0x12, b"GET");
    let fragment = [&[UDP, 0, 0, 8, 0, 0, 0, 1][..], &udp(5000, 5001, 20)].concat();
    let plain = ipv4(UDP, &[], 0, &udp(5000, 5001, 20));
    let pppoe = [&[0x11, 0, 0, 1, 0, 52, 0, 0x21][..], &plain].concat();
    let group = sent_to([224, 0, 0, 1], ipv4(ICMP, &[1; 40], 0, &[0; 8]));
    let ping = sent_to([255; 4], ipv4(ICMP, &[], 0, &[8, 0, 0, 0, 1, 2, 3, 4]));
    let multicast6 = [0x33, 0x33, 0, 0, 0, 1];
    vec![
        (UNICAST, 0x0800, plain.clone()),
        (UNICAST, 0x0800, ipv4(UDP, &[], 0, &udp(40_000, 53, 60))),
        (UNICAST, 0x0800, ipv4(UDP, &[1; 8], 0, &udp(5000, 443, 3))),
        (UNICAST, 0x0800, ipv4(UDP, &[], 0x2000, &udp(5000, 5001, 20))),
        (UNICAST, 0x0800, ipv4(UDP, &[], 0x0010, &udp(5000, 5001, 20))),
        (BROADCAST, 0x0800, ping),
        ([1, 0, 0x5e, 0, 0, 1], 0x0800, group),
        (UNICAST, 0x0800, ipv4(TCP, &[], 0, &tcp(0x02, b""))),
        (UNICAST, 0x0800, ipv4(TCP, &[1; 4], 0, &stream)),
        (UNICAST, 0x0800, ipv4(SCTP, &[], 0, &[0x13, 0x88, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0])),
        (UNICAST, 0x86dd, ipv6(UDP, &udp(5000, 53, 30))),
        (UNICAST, 0x86dd, ipv6(TCP, &stream)),
        (UNICAST, 0x86dd, ipv6(44, &fragment)),
        (multicast6, 0x86dd, ipv6(ICMP6, &[135, 0, 0, 0, 0, 0, 0, 0])),
        (BROADCAST, 0x0806, [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[7; 20]].concat()),
        (UNICAST, 0x0806, [&[0, 1, 8, 0, 6, 4, 0, 2][..], &[7; 20]].concat()),
        (UNICAST, 0x8847, label(1, &plain)),
        (UNICAST, 0x8847, label(0, &label(1, &ipv6(UDP, &udp(5000, 53, 30))))),
        (UNICAST, 0x8864, pppoe),
        ([1, 0x80, 0xc2, 0, 0, 0], 38, [&[0x42, 0x42, 3][..], &[0; 35]].concat()),
        (UNICAST, 100, [&[0xfe, 0xfe, 3, 0x83][..], &[0; 96]].concat()),
        (UNICAST, 0x0800, vec![0x45, 0, 0]),
        (UNICAST, 0x0800, plain[..22].to_vec()),
        (UNICAST, 0x0800, ipv4(UDP, &[], 0, &udp(5000, 5001, 1400))),
        (UNICAST, 0x88b5, vec![0xff; 50]),
        (UNICAST, 0x0800, [&[0x40; 8][..], &[5; 42]].concat()),
    ]
}

fn frame(to: [u8; 6], tags: &[(u16, u16)], kind: u16, payload: &[u8]) -> Vec<u8> {
    let sender = if to == BROADCAST { 2 } else { 1 };
    let mut frame = [&to[..], &[2, 0x77, 0, 0, 1, sender]].concat();
    for (tag_type, tag) in tags {
        frame.extend(tag_type.to_be_bytes());
        frame.extend(tag.to_be_bytes());
    }
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

fn ipv4(protocol: u8, options: &[u8], fragment: u16, payload: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let length = u16::try_from(header + payload.len()).unwrap();
    let mut packet = vec![0x40 | u8::try_from(header / 4).unwrap(), 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 1]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 77, 1, 1, 10, 77, 2, 2]);
    [&packet[..], options, payload].concat()
}

/// An IPv4 packet with another destination.
fn sent_to(address: [u8; 4], mut packet: Vec<u8>) -> Vec<u8> {
    packet[16..20].copy_from_slice(&address);
    packet
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let [source, sink] = [1, 2].map(|net| [0xfd, 0x77, 0, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    [&[0x60, 0, 0, 0][..], &length, &[next, 64], &source, &sink, payload].concat()
}

fn udp(source: u16, sink: u16, bytes: usize) -> Vec<u8> {
    let length = u16::try_from(8 + bytes).unwrap().to_be_bytes();
    let ports = [source.to_be_bytes(), sink.to_be_bytes()].concat();
    [&ports[..], &length, &[0, 0], &vec![7; bytes]].concat()
}

fn tcp(flags: u8, payload: &[u8]) -> Vec<u8> {
    let header = [0x13, 0x88, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 1, 0, 0xbd, 0xad, 0, 0];
    [&header[..], payload].concat()
}
