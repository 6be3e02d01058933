//! Packets that an interface sends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::thread;

use wirestamp_capture::layers::{Direction, End, Journey, Point};
use wirestamp_lab::{Impairments, PathLab, SINK_V4, SOURCE_INTERFACE, SOURCE_V4, TAP_B};

use crate::bed::{
    Followed, PORT, bridge, departures, follow_at, iproute, lab, now, number, read, receiver, send,
    times,
};

const UDP: &str = "udp dst port 5000";
const BOTTLENECK: &str = "bottleneck";

/// Follows what the source sends.
fn follow_source(
    lab: &PathLab,
    filter: &str,
    packets: Option<u64>,
    traffic: impl FnOnce(),
) -> Followed {
    follow_at(lab.source(), SOURCE_INTERFACE, Direction::Out, filter, packets, traffic)
}

fn ends(followed: &Followed, end: End) -> impl Iterator<Item = &Journey> {
    followed.journeys.iter().filter(move |journey| journey.end == end)
}

#[test]
fn every_datagram_is_seen_from_socket_to_driver() {
    let Some(lab) = lab() else { return };
    let _socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    let followed = follow_source(&lab, UDP, Some(1000), || send(&lab, PORT, 0..1000));
    for journey in &followed.journeys {
        let times = times(journey);
        assert_eq!((journey.end, times.len()), (End::Sent, 4), "{journey:?}");
        assert!(times.is_sorted(), "{journey:?}");
        assert_eq!(journey.length, 14 + 20 + 8 + 4);
    }
    assert!(followed.journeys.iter().map(number).eq(0..1000));
    assert_eq!((followed.ledger.seen, followed.ledger.delivered), (1000, 1000));
}

#[test]
fn departures_have_only_the_queue_time() {
    let Some(lab) = lab() else { return };
    let _socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    let before = now();
    let mut after = 0;
    let followed = departures(&lab, UDP, || {
        send(&lab, PORT, 0..1000);
        after = now();
        send(&lab, 6000, [0]);
    });
    for journey in &followed.journeys {
        let queue = journey.time(Point::Queue);
        assert_eq!((journey.end, times(journey)), (End::Open, Vec::from_iter(queue)));
        assert!((before..after).contains(&queue.unwrap()), "{journey:?}");
        assert_eq!(journey.length, 14 + 20 + 8 + 4);
    }
    assert!(followed.journeys.iter().map(number).eq(0..1000));
    assert_eq!((followed.ledger.seen, followed.ledger.skipped), (1000, 0));
}

#[test]
fn other_packets_are_not_followed() {
    let Some(lab) = lab() else { return };
    let socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    let traffic = || {
        send(&lab, PORT, 0..10);
        read(&socket, 10);
    };
    let followed = follow_at(lab.sink(), TAP_B, Direction::Out, UDP, None, traffic);
    assert!(followed.journeys.is_empty(), "{:?}", followed.journeys);
    iproute("ip", lab.source(), "link set lo up");
    let followed = follow_at(lab.source(), "lo", Direction::Out, UDP, None, traffic);
    assert!(followed.journeys.is_empty(), "{:?}", followed.journeys);
}

#[test]
fn bridged_packets_are_sent_by_both_interfaces() {
    let Some(lab) = lab() else { return };
    bridge(&lab);
    // The router does not announce its hardware address.
    iproute("ip", lab.sink(), "neigh add 10.77.2.1 lladdr 02:77:00:00:02:01 dev bridge");
    let from = lab.sink().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    for interface in ["bridge", TAP_B] {
        let sink = lab.sink();
        let followed = follow_at(sink, interface, Direction::Out, UDP, Some(20), || {
            (0..20).for_each(|_| assert_eq!(from.send_to(&[7], (SOURCE_V4, PORT)).unwrap(), 1));
        });
        for journey in &followed.journeys {
            assert_eq!((journey.end, times(journey).len()), (End::Sent, 4), "{journey:?}");
        }
    }
}

#[test]
fn queueing_delay_is_between_queue_and_driver() {
    let Some(lab) = lab() else { return };
    let _socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    let tc = |arguments: &str| iproute("tc", lab.source(), arguments);
    // One packet every 46 ms, after a burst of 34.
    tc("qdisc add dev out root tbf rate 8kbit burst 1600 limit 100000");
    let mut released = 0;
    let followed = follow_source(&lab, UDP, Some(201), || {
        send(&lab, PORT, 0..200);
        released = now();
        tc("qdisc change dev out root tbf rate 1gbit burst 16000 limit 100000");
        // The queueing discipline applies the new rate at the next packet, or at its next timer event.
        send(&lab, PORT, [200]);
    });
    for journey in &followed.journeys[100..200] {
        assert_eq!(journey.end, End::Sent, "{journey:?}");
        assert!(journey.time(Point::Queue).unwrap() < released, "{journey:?}");
        assert!(journey.time(Point::Driver).unwrap() > released, "{journey:?}");
    }
}

#[test]
fn full_qdisc_drops_end_at_the_queue() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let attempt = |_| {
        let lab = PathLab::new(&Impairments::bottleneck(1_000_000, 2_000)).unwrap();
        let _socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
        let followed = follow_at(lab.router(), BOTTLENECK, Direction::Out, UDP, Some(200), || {
            send(&lab, PORT, 0..200);
        });
        (followed, lab.bottleneck().unwrap().dropped_packets)
    };
    // The timer of the bottleneck may interrupt process 1, for which this kernel runs no tracing programs.
    // A packet may then be missing, or its end.
    let is_complete = |(followed, _): &(Followed, u64)| {
        let ended = [End::Dropped, End::Sent].map(|end| ends(followed, end).count());
        (followed.journeys.len(), ended.iter().sum()) == (200, 200)
    };
    let complete = (0..5).map(attempt).find(is_complete);
    let (followed, lost) =
        complete.expect("five attempts, each with packets that were not followed to their end");
    assert!(lost > 0 && lost < 200, "{lost}");
    assert_eq!(ends(&followed, End::Dropped).count() as u64, lost);
    assert_eq!(ends(&followed, End::Sent).count() as u64, 200 - lost);
    for journey in ends(&followed, End::Dropped) {
        assert_eq!(journey.last(), Some(Point::Queue), "{journey:?}");
        let reason = followed.reasons.name(journey.reason);
        assert!(reason.starts_with("QDISC_"), "{reason}");
    }
    // They are not from a socket of this host.
    assert!(ends(&followed, End::Sent).all(|journey| times(journey).len() == 3));
}

#[test]
fn large_tcp_segments_are_split_before_the_driver() {
    let Some(lab) = lab() else { return };
    let ethtool = lab
        .source()
        .command("ethtool")
        .args(["-K", SOURCE_INTERFACE, "tso", "off", "gso", "on"])
        .status();
    assert!(ethtool.unwrap().success());
    let listener = lab.sink().run(|| TcpListener::bind("0.0.0.0:5000")).unwrap().unwrap();
    let followed = follow_source(&lab, "tcp dst port 5000", None, || {
        let mut from = lab.source().run(|| TcpStream::connect((SINK_V4, PORT))).unwrap().unwrap();
        let (mut to, _) = listener.accept().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || from.write_all(&[0; 1 << 20]).unwrap());
            assert_eq!(to.read_to_end(&mut Vec::new()).unwrap(), 1 << 20);
        });
    });
    let cut: Vec<_> = ends(&followed, End::Split).collect();
    assert!(cut.len() > 10, "{}", cut.len());
    assert!(cut.iter().all(|journey| journey.last() == Some(Point::Queue)));
    assert!(ends(&followed, End::Sent).all(|journey| journey.length <= 1514));
    let bytes: u32 = ends(&followed, End::Sent).map(|journey| journey.length - 14 - 20 - 32).sum();
    assert!(bytes >= 1 << 20, "{bytes}");
}
