//! TCP whose segments are not divided yet at the sender (TSO), and merged at the receiver (GRO): loss and delay are those
//! of the packets on the network. UDP of the same kind (GSO): its loss is unknown.

use crate::common::{run, stderr};
use crate::delay::{A, B, BEGIN, Classic, delayed, files};
use crate::schema;

const MILLI: i64 = 1_000_000;
const TCP: u8 = 6;
const SYN: u8 = 2;
const ACK: u8 = 16;
const PSH: u8 = 8;

/// What the network carries in a packet, and the first sequence number.
const SIZE: usize = 1200;
const FIRST: u32 = 1;

/// A packet on the network.
#[derive(Clone)]
struct Packet {
    /// When it leaves A.
    time: i64,
    identification: u16,
    place: usize,
    bytes: usize,
    is_last: bool,
    lost: bool,
}

fn content(place: usize) -> u8 {
    u8::try_from(place * 7 % 251).unwrap()
}

fn segment(
    capture: &mut Classic,
    time: i64,
    identification: u16,
    flags: u8,
    place: usize,
    bytes: usize,
) {
    let sequence = FIRST.wrapping_add(u32::try_from(place).unwrap());
    let numbers = [sequence, 500].map(u32::to_be_bytes);
    let rest = [0x50, flags, 1, 0, 0, 0, 0, 0];
    let payload: Vec<u8> = (place..place + bytes).map(content).collect();
    let body = [&[15, 160, 0, 80][..], numbers.as_flattened(), &rest, &payload].concat();
    capture.ip_with(time, identification, TCP, [A, B], &body);
}

/// The beginning of the connection in both directions, with this maximum segment size.
fn handshake(capture: &mut Classic, time: i64) {
    let size = u16::try_from(SIZE).unwrap().to_be_bytes();
    let numbers = [0_u32, 0].map(u32::to_be_bytes);
    for (hosts, ports, flags) in [([A, B], [4000_u16, 80], SYN), ([B, A], [80, 4000], SYN | ACK)] {
        let rest = [0x60, flags, 1, 0, 0, 0, 0, 0, 2, 4, size[0], size[1]];
        let ports = ports.map(u16::to_be_bytes);
        let body = [ports.as_flattened(), numbers.as_flattened(), &rest].concat();
        capture.ip(time, TCP, hosts, &body);
    }
}

/// Sends segments of up to 40 packets, of which every eleventh packet is lost once and sent again 100 ms later. Returns
/// what A and B capture, and the packets.
fn transfer() -> (Classic, Classic, Vec<Packet>) {
    let (mut a, mut b) = (Classic::of_link(1), Classic::of_link(1));
    handshake(&mut a, BEGIN);
    handshake(&mut b, BEGIN + MILLI);
    let mut packets: Vec<Packet> = Vec::new();
    let (mut place, mut identification) = (0, 65_000_u16);
    for number in 0..20_usize {
        let time = BEGIN + (1 + i64::try_from(number).unwrap()) * 200 * MILLI;
        let bytes = (number * 7 % 40 + 1) * SIZE - number * 31 % SIZE;
        segment(&mut a, time, identification, ACK | PSH, place, bytes);
        let mut again = Vec::new();
        for offset in (0..bytes).step_by(SIZE) {
            let length = SIZE.min(bytes - offset);
            let is_last = offset + length == bytes;
            let lost = packets.len() % 11 == 3;
            let packet = Packet {
                time,
                identification,
                place: place + offset,
                bytes: length,
                is_last,
                lost,
            };
            again.extend(lost.then(|| packet.clone()));
            packets.push(packet);
            identification = identification.wrapping_add(1);
        }
        for packet in again {
            let time = time + 100 * MILLI;
            segment(&mut a, time, identification, ACK, packet.place, packet.bytes);
            packets.push(Packet { time, identification, is_last: false, lost: false, ..packet });
            identification = identification.wrapping_add(1);
        }
        place += bytes;
    }
    receive(&mut b, &packets);
    (a, b, packets)
}

/// Captures what arrives after 1 ms. Neighbours that arrive together are merged, up to five.
fn receive(b: &mut Classic, packets: &[Packet]) {
    let arrived: Vec<_> = packets.iter().filter(|packet| !packet.lost).collect();
    let mut rest = &arrived[..];
    while let [first, ..] = rest {
        let follows = |pair: &[&Packet]| {
            pair[0].time == pair[1].time
                && pair[0].place + pair[0].bytes == pair[1].place
                && pair[0].bytes == SIZE
        };
        let merged = 1 + rest.windows(2).take(4).take_while(|pair| follows(pair)).count();
        let bytes = rest[..merged].iter().map(|packet| packet.bytes).sum();
        let flags = ACK | if rest[merged - 1].is_last { PSH } else { 0 };
        segment(b, first.time + MILLI, first.identification, flags, first.place, bytes);
        rest = &rest[merged..];
    }
}

#[test]
fn packets_of_the_network_are_counted() {
    let (a, b, packets) = transfer();
    let (_folder, files) = files(a, b);
    let found = delayed(&[], &files);
    let lost = packets.iter().filter(|packet| packet.lost).count();
    // The handshake adds a segment in each direction.
    let counts = [packets.len() + 2, packets.len() + 2 - lost, lost, 0, 0];
    for (key, expected) in
        ["sent", "matched", "lost", "unexpected", "duplicated"].into_iter().zip(counts)
    {
        assert_eq!(found[key], expected, "{key} {found:#}");
    }
    assert!(lost > 30, "{lost}");
    for key in ["min", "max"] {
        assert_eq!(found["owd_ns"][key], MILLI);
    }
    let [at_a, at_b] = [0, 1].map(|point| found["segments_divided_into"][point].as_u64().unwrap());
    assert!(at_a > 300 && at_b > 100, "{at_a} {at_b}");
}

#[test]
fn text_says_that_segments_were_divided() {
    let (a, b, _) = transfer();
    let (_folder, files) = files(a, b);
    let output = run(&["delay", &files[0], &files[1]]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(text.contains("longer than the network carries (TSO, GRO)"), "{text}");
}

#[test]
fn flows_count_retransmitted_segments_not_losses() {
    let (a, _, packets) = transfer();
    let (_folder, files) = files(a, Classic::of_link(1));
    let lost = packets.iter().filter(|packet| packet.lost).count();
    let text = run(&["flows", &files[0]]).stdout;
    let text = String::from_utf8_lossy(&text);
    assert_eq!((lost, packets.len() + 1), (34, 425));
    assert!(text.contains("34 (8.00 %) retransmitted"), "{text}");
    let found = run(&["flows", &files[0], "--json"]).stdout;
    let found = schema::document("flows", &found);
    let flow = &found["flows"][0];
    // The handshake adds a segment.
    assert_eq!(
        (&flow["retransmitted"], &flow["segments"]),
        (&lost.into(), &(packets.len() + 1).into())
    );
}

/// A sender passes ten datagrams of 1200 bytes at once to the kernel, or a single one; nothing is lost.
#[test]
fn loss_of_merged_datagrams_is_unknown() {
    let (mut a, mut b) = (Classic::of_link(1), Classic::of_link(1));
    let payload: Vec<u8> = (0..12_000).map(content).collect();
    for number in 0..40_i64 {
        let time = BEGIN + number * 10 * MILLI;
        let length = if number % 4 == 0 { 12_000 } else { 1200 };
        let mut payload = payload[..length].to_vec();
        payload[..8].copy_from_slice(&number.to_be_bytes());
        a.udp(time, 4000, 443, &payload);
        payload.chunks(1200).for_each(|part| b.udp(time + MILLI, 4000, 443, part));
        // Another flow, which really loses packets.
        a.udp(time, 5000, 53, &number.to_be_bytes());
        if number % 5 != 0 {
            b.udp(time + MILLI, 5000, 53, &number.to_be_bytes());
        }
    }
    let (_folder, files) = files(a, b);
    let output = run(&["delay", &files[0], &files[1], "--json"]);
    let found = schema::document("delay", &output.stdout);
    assert_eq!(found["lost"], serde_json::Value::Null, "{found:#}");
    assert!(found["lost_reason"].to_string().contains("UDP GSO"), "{found:#}");
    let losses: Vec<_> =
        found["flows"].as_array().unwrap().iter().map(|flow| flow["lost"].clone()).collect();
    assert_eq!(losses, [serde_json::Value::Null, 8.into()], "{found:#}");
}
