//! The test bed of the demo with real packets.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use wirestamp_lab::{
    Impairments, PathLab, SINK_V4, SINK_V6, SOURCE_V4, SOURCE_V6, Selector, check_privilege,
};

/// Max wait for a packet.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
const PORT: u16 = 5000;
/// In the test's payload, the sequence number is the first byte.
const SEVENTH_OF_16: Selector = Selector { port: PORT, offset: 0, mask: 0x0f, value: 7 };

fn is_root() -> bool {
    let permitted = check_privilege().is_ok();
    if !permitted {
        eprintln!("skipped: needs root");
    }
    permitted
}

fn sockets(lab: &PathLab, source: IpAddr, sink: IpAddr) -> (UdpSocket, UdpSocket) {
    let bind = |address: SocketAddr| move || UdpSocket::bind(address).unwrap();
    let sender = lab.source().run(bind((source, PORT).into())).unwrap();
    let receiver = lab.sink().run(bind((sink, PORT).into())).unwrap();
    sender.connect((sink, PORT)).unwrap();
    receiver.connect((source, PORT)).unwrap();
    for socket in [&sender, &receiver] {
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    }
    (sender, receiver)
}

fn both_versions() -> [(IpAddr, IpAddr); 2] {
    [(SOURCE_V4.into(), SINK_V4.into()), (SOURCE_V6.into(), SINK_V6.into())]
}

fn send(socket: &UdpSocket, sequence: u8, length: usize) {
    let mut payload = vec![0; length];
    payload[0] = sequence;
    socket.send(&payload).unwrap();
}

fn receive(socket: &UdpSocket) -> u8 {
    let mut payload = [0; 2048];
    socket.recv(&mut payload).unwrap();
    payload[0]
}

/// Receives until every one of `offered` packets has either arrived or been dropped.
fn receive_all(lab: &PathLab, socket: &UdpSocket, offered: u64) -> Vec<u8> {
    let mut arrived = Vec::new();
    let begun = Instant::now();
    loop {
        let counters = lab.bottleneck().unwrap();
        while u64::try_from(arrived.len()).unwrap() < counters.sent_packets {
            arrived.push(receive(socket));
        }
        if counters.sent_packets + counters.dropped_packets == offered {
            return arrived;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "of {offered} packets: {counters:?}");
    }
}

#[test]
fn only_test_packets_pass_in_both_directions() {
    if !is_root() {
        return;
    }
    let lab = PathLab::new(&Impairments::bottleneck(100_000_000, 100_000)).unwrap();
    for (source, sink) in both_versions() {
        let (sender, receiver) = sockets(&lab, source, sink);
        send(&sender, 1, 100);
        assert_eq!(receive(&receiver), 1);
        send(&receiver, 2, 100);
        assert_eq!(receive(&sender), 2);
    }
    let counters = lab.bottleneck().unwrap();
    assert_eq!((counters.sent_packets, counters.dropped_packets), (2, 0));
    assert_eq!(lab.duplicated().unwrap(), 0);
}

#[test]
fn full_queue_drops_exactly_the_missing_packets() {
    if !is_root() {
        return;
    }
    for (source, sink) in both_versions() {
        let lab = PathLab::new(&Impairments::bottleneck(20_000_000, 30_000)).unwrap();
        let (sender, receiver) = sockets(&lab, source, sink);
        for sequence in 0..200 {
            send(&sender, sequence, 1000);
        }
        let arrived = receive_all(&lab, &receiver, 200);
        let counters = lab.bottleneck().unwrap();
        assert!(counters.dropped_packets > 0, "{counters:?}");
        assert_eq!(arrived.len(), usize::try_from(counters.sent_packets).unwrap());
        assert!(arrived.is_sorted(), "the plain bottleneck keeps the order");
    }
}

#[test]
fn selected_packets_arrive_twice() {
    if !is_root() {
        return;
    }
    for (source, sink) in both_versions() {
        let lab = PathLab::new(&Impairments {
            duplicate: Some(SEVENTH_OF_16),
            ..Impairments::bottleneck(100_000_000, 100_000)
        })
        .unwrap();
        let (sender, receiver) = sockets(&lab, source, sink);
        for sequence in 0..32 {
            send(&sender, sequence, 100);
        }
        let mut arrived = receive_all(&lab, &receiver, 34);
        arrived.sort_unstable();
        let mut expected: Vec<u8> = (0..32).chain([7, 23]).collect();
        expected.sort_unstable();
        assert_eq!(arrived, expected);
        assert_eq!(lab.duplicated().unwrap(), 2);
    }
}

#[test]
fn expedited_packets_overtake_a_standing_queue() {
    if !is_root() {
        return;
    }
    for (source, sink) in both_versions() {
        let lab = PathLab::new(&Impairments {
            expedite: Some(SEVENTH_OF_16),
            ..Impairments::bottleneck(5_000_000, 100_000)
        })
        .unwrap();
        let (sender, receiver) = sockets(&lab, source, sink);
        for sequence in 0..64 {
            send(&sender, sequence, 1000);
        }
        let arrived = receive_all(&lab, &receiver, 64);
        assert_eq!(arrived.len(), 64, "nothing is lost");
        let position = |sequence: u8| arrived.iter().position(|&s| s == sequence).unwrap();
        for expedited in [39, 55] {
            assert!(position(expedited) < position(expedited - 1), "{arrived:?}");
        }
        let others: Vec<_> = arrived.iter().filter(|&s| s & 0x0f != 7).collect();
        assert!(others.is_sorted(), "the others keep their order: {arrived:?}");
    }
}

#[test]
fn rate_out_of_range_is_rejected() {
    let error = PathLab::new(&Impairments::bottleneck(1, 10_000)).unwrap_err();
    assert!(error.to_string().contains("1 bit/s is out of range"), "{error}");
}
