use super::*;

const SYN: u8 = 2;
const ACK: u8 = 16;

/// A segment in either direction.
fn segment(back: bool, flags: u8, sequence: u32, acknowledgment: u32, payload: usize) -> Vec<u8> {
    let (source, source_port, destination, destination_port) = ENDS;
    let ends = if back { (destination, destination_port, source, source_port) } else { ENDS };
    let mut rest = [sequence, acknowledgment].map(u32::to_be_bytes).as_flattened().to_vec();
    rest.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
    rest.resize(rest.len() + payload, 7);
    ip(6, ends, &rest)
}

/// The point is 10 ms from the receiver and 3 ms from the sender, each way.
#[test]
fn each_direction_has_its_part_of_the_round_trip() {
    let mut monitor = monitor();
    for (packet, millis) in [
        (segment(false, SYN, 99, 0, 0), 0),
        (segment(true, SYN | ACK, 499, 100, 0), 20),
        (segment(false, ACK, 100, 500, 0), 26),
        (segment(false, ACK, 100, 500, 1000), 30),
        (segment(true, ACK, 500, 1100, 0), 50),
        (segment(true, ACK, 500, 1100, 200), 51),
        (segment(false, ACK, 1100, 700, 0), 57),
        (segment(false, ACK, 1100, 700, 1000), 60),
        (segment(false, ACK, 1100, 700, 1000), 260),
    ] {
        observe(&mut monitor, &packet, at(millis));
    }
    let found = reports(&mut monitor);
    let of = |port| {
        let report = found.iter().find(|it| it.sport == port).expect("a direction");
        let tcp = report.tcp.expect("TCP");
        let trips = tcp.rtt_ns.map(|it| (it.count, it.min / 1_000_000, it.max / 1_000_000));
        (report.lost, tcp.handshake_ns, trips)
    };
    assert_eq!(of(4000), (Some(1), Some(20_000_000), Some((2, 20, 20))));
    assert_eq!(of(5004), (Some(0), Some(6_000_000), Some((2, 6, 6))));
}

/// A mirror port captures each packet twice; the second segment is retransmitted.
#[test]
fn packets_captured_twice_are_not_retransmitted() {
    let mut monitor = monitor();
    let sent = [
        (segment(false, ACK, 0, 1, 1000), 0),
        (segment(false, ACK, 1000, 1, 1000), 1),
        (segment(true, ACK, 1, 1000, 0), 20),
        (segment(false, ACK, 1000, 1, 1000), 200),
        (segment(false, ACK, 2000, 1, 1000), 300),
        (segment(true, ACK, 1, 3000, 0), 320),
    ];
    for (identification, (mut packet, millis)) in (1u16..).zip(sent) {
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        observe(&mut monitor, &packet, at(millis));
        observe(&mut monitor, &packet, at(millis) + Span::from_micros(5));
    }
    let found = reports(&mut monitor);
    let report = found.iter().find(|it| it.sport == 4000).expect("a direction");
    let tcp = report.tcp.expect("TCP");
    assert_eq!((report.packets, report.duplicated), (8, Some(4)));
    assert_eq!((tcp.segments, tcp.retransmitted, report.reordered), (4, 1, Some(0)));
    assert_eq!(tcp.rtt_ns.map(|it| (it.count, it.min, it.max)), Some((2, 20_000_000, 20_000_000)));
}

#[test]
fn one_direction_alone_has_no_round_trip() {
    let mut monitor = monitor();
    for number in 0..100 {
        observe(&mut monitor, &segment(false, ACK, number * 1000, 1, 1000), at(number.into()));
    }
    let [report] = &reports(&mut monitor)[..] else { panic!("one flow") };
    assert_eq!((report.lost, report.tcp.expect("TCP").rtt_ns), (Some(0), None));
}
