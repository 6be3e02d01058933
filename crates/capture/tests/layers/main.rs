//! Real packets, followed through this machine's kernel.

mod bed;
mod leaving;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::thread;

use bed::{PORT, bridge, follow, follow_at, lab, now, number, queue, read, receiver, send, times};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use wirestamp_capture::layers::{Direction, End, Journey, Point};
use wirestamp_lab::{Netns, SINK_V4, SINK_V6, SOURCE_INTERFACE, TAP_A, TAP_B};

const UDP: &str = "udp port 5000";

#[test]
fn every_datagram_passes_every_point_in_order() {
    let Some(lab) = lab() else { return };
    let socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    let followed = follow(&lab, UDP, Some(2000), || {
        thread::scope(|scope| {
            scope.spawn(|| read(&socket, 2000));
            // No more at a time than fit into the queue.
            for block in 0..20 {
                send(&lab, PORT, block * 100..(block + 1) * 100);
                while queue(&lab, PORT).0 > 0 {}
            }
        });
    });
    for journey in &followed.journeys {
        let times = times(journey);
        assert_eq!((journey.end, times.len()), (End::Read, 4), "{journey:?}");
        assert!(times.is_sorted(), "{journey:?}");
        assert_eq!(journey.length, 14 + 20 + 8 + 4);
    }
    let numbers: Vec<_> = followed.journeys.iter().map(number).collect();
    assert!(numbers.into_iter().eq(0..2000));
    assert_eq!((followed.ledger.seen, followed.ledger.delivered), (2000, 2000));
}

#[test]
fn waiting_for_reader_is_between_socket_and_application() {
    let Some(lab) = lab() else { return };
    let socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    let mut reading = 0;
    let followed = follow(&lab, UDP, Some(50), || {
        send(&lab, PORT, [0]);
        let one = loop {
            match queue(&lab, PORT).0 {
                0 => {}
                bytes => break bytes,
            }
        };
        send(&lab, PORT, 1..50);
        while queue(&lab, PORT).0 < 50 * one {}
        reading = now();
        read(&socket, 50);
    });
    for journey in followed.journeys {
        assert!(journey.time(Point::Socket).unwrap() < reading, "{journey:?}");
        assert!(journey.time(Point::Application).unwrap() > reading, "{journey:?}");
    }
}

#[test]
fn full_socket_drops_end_at_the_socket() {
    let Some(lab) = lab() else { return };
    let socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    set_socket_recv_buffer_size(&socket, 8192).unwrap();
    let followed = follow(&lab, UDP, Some(200), || {
        send(&lab, PORT, 0..200);
        socket.set_nonblocking(true).unwrap();
        // Until all have arrived: reading some makes room for more.
        let (mut buffer, mut read) = ([0; 64], 0);
        while read + queue(&lab, PORT).1 < 200 {
            read += u64::from(socket.recv(&mut buffer).is_ok());
        }
    });
    let (_, lost) = queue(&lab, PORT);
    assert!(lost > 0);
    let dropped: Vec<_> = followed.journeys.iter().filter(|j| j.end == End::Dropped).collect();
    assert_eq!(dropped.len() as u64, lost);
    for journey in dropped {
        assert_eq!(journey.last(), Some(Point::Socket), "{journey:?}");
        assert_eq!(followed.reasons.name(journey.reason), "SOCKET_RCVBUFF");
    }
    let read = followed.journeys.iter().filter(|j| j.end == End::Read).count();
    assert_eq!(read as u64, 200 - lost);
}

#[test]
fn queued_packets_are_open_at_the_end() {
    let Some(lab) = lab() else { return };
    let _socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    let followed = follow(&lab, "udp", None, || {
        send(&lab, 6000, 0..3);
        send(&lab, PORT, [0]);
        while queue(&lab, PORT).0 == 0 {}
    });
    let ends = |end| followed.journeys.iter().filter(move |journey| journey.end == end);
    assert!(ends(End::Open).map(Journey::last).eq([Some(Point::Socket)]));
    assert!(ends(End::Dropped).map(Journey::last).eq([Some(Point::Stack); 3]));
    assert!(ends(End::Dropped).all(|j| followed.reasons.name(j.reason) == "NO_SOCKET"));
}

#[test]
fn only_filtered_packets_are_followed() {
    let Some(lab) = lab() else { return };
    let both = receiver(&lab, Ipv6Addr::UNSPECIFIED, PORT);
    let other = receiver(&lab, Ipv4Addr::UNSPECIFIED, 6000);
    let source = lab.source().run(|| UdpSocket::bind("[::]:0")).unwrap().unwrap();
    for (filter, expected) in [
        ("udp port 5000", 9),
        ("ip and udp dst port 5000", 5),
        ("ip6", 4),
        ("udp[11] = 2", 2),
        ("udp and less 50", 10),
        ("udp and greater 60", 4),
        ("udp port 5000 and not ip6", 5),
        ("udp and ip[2:2] & 1 = 1", 0),
    ] {
        let followed = follow(&lab, filter, None, || {
            send(&lab, PORT, 0..5);
            send(&lab, 6000, 0..5);
            for number in 0_u32..4 {
                source.send_to(&number.to_be_bytes(), (SINK_V6, PORT)).unwrap();
            }
            read(&both, 9);
            read(&other, 5);
        });
        let followed = followed.journeys.iter().filter(|j| !j.head.ends_with(&[0; 40]));
        let udp = followed.filter(|j| j.time(Point::Application).is_some()).count();
        assert_eq!(udp, expected, "{filter}");
    }
}

#[test]
fn application_reads_segments_and_kernel_acks() {
    let Some(lab) = lab() else { return };
    let listener = lab.sink().run(|| TcpListener::bind("0.0.0.0:5000")).unwrap().unwrap();
    let followed = follow(&lab, "tcp port 5000", None, || {
        let mut from = lab.source().run(|| TcpStream::connect((SINK_V4, PORT))).unwrap().unwrap();
        from.set_nodelay(true).unwrap();
        let (mut to, _) = listener.accept().unwrap();
        for _ in 0..100 {
            from.write_all(b"over to you").unwrap();
            to.read_exact(&mut [0; 11]).unwrap();
            to.write_all(b"and back").unwrap();
            from.read_exact(&mut [0; 8]).unwrap();
        }
    });
    let read: Vec<_> = followed.journeys.iter().filter(|j| j.end == End::Read).collect();
    assert_eq!(read.len(), 100);
    assert!(read.iter().all(|journey| times(journey).len() == 4 && times(journey).is_sorted()));
    let consumed = followed.journeys.iter().filter(|j| j.end == End::Consumed);
    assert!(consumed.clone().count() > 0);
    assert!(consumed.clone().all(|journey| journey.length < 80));
}

#[test]
fn segments_merged_by_gro_end_at_the_driver() {
    let Some(lab) = lab() else { return };
    let ethtool = |netns: &Netns, arguments: &[&str]| {
        let status = netns.command("ethtool").arg("-K").args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    // Segments as on a wire; veth passes to GRO only packets from an end without TSO.
    ethtool(lab.source(), &[SOURCE_INTERFACE, "tso", "off", "gso", "off"]);
    ethtool(lab.router(), &["bottleneck", "tso", "off"]);
    ethtool(lab.sink(), &[TAP_B, "gro", "on"]);
    let listener = lab.sink().run(|| TcpListener::bind("0.0.0.0:5000")).unwrap().unwrap();
    let followed = follow(&lab, "tcp dst port 5000", None, || {
        let mut from = lab.source().run(|| TcpStream::connect((SINK_V4, PORT))).unwrap().unwrap();
        let (mut to, _) = listener.accept().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || from.write_all(&[0; 1 << 21]).unwrap());
            assert_eq!(to.read_to_end(&mut Vec::new()).unwrap(), 1 << 21);
        });
    });
    let joined: Vec<_> = followed.journeys.iter().filter(|j| j.end == End::Joined).collect();
    assert!(joined.len() > 100, "{}", joined.len());
    assert!(joined.iter().all(|journey| journey.last() == Some(Point::Driver)));
    let bytes: u32 = followed.journeys.iter().map(|journey| journey.length - 14 - 20 - 32).sum();
    assert!(bytes >= 1 << 21, "{bytes}");
}

#[test]
fn router_forwards_packets() {
    let Some(lab) = lab() else { return };
    let socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    let followed = follow_at(lab.router(), TAP_A, Direction::In, UDP, Some(100), || {
        send(&lab, PORT, 0..100);
        read(&socket, 100);
    });
    for journey in &followed.journeys {
        assert_eq!((journey.end, journey.last()), (End::Forwarded, Some(Point::Stack)));
    }
}

#[test]
fn tagged_packet_passes_only_its_tag_filter() {
    let Some(lab) = lab() else { return };
    let mut frame = vec![2, 0x77, 0, 0, 1, 2, 2, 0x77, 0, 0, 1, 1, 0x81, 0, 0, 7, 0x08, 0];
    frame.extend([0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 1, 1, 10, 77, 1, 2]);
    frame.extend([0x13, 0x88, 0x13, 0x88, 0, 12, 0, 0, 1, 2, 3, 4]);
    let open = || pcap::Capture::from_device(SOURCE_INTERFACE).unwrap().open().unwrap();
    let mut wire = lab.source().run(open).unwrap();
    for (filter, expected) in [("vlan 7 and udp port 5000", 3), ("vlan 8", 0), (UDP, 0)] {
        let followed = follow_at(lab.router(), TAP_A, Direction::In, filter, None, || {
            (0..3).for_each(|_| wire.sendpacket(&frame[..]).unwrap());
        });
        let dropped = followed.journeys.iter().filter(|j| j.end == End::Dropped);
        assert_eq!(dropped.filter(|j| j.head == frame).count(), expected, "{filter}");
    }
}

#[test]
fn bridged_packet_stays_the_same() {
    let Some(lab) = lab() else { return };
    bridge(&lab);
    let socket = receiver(&lab, Ipv4Addr::UNSPECIFIED, PORT);
    let followed = follow(&lab, UDP, Some(20), || {
        send(&lab, PORT, 0..20);
        read(&socket, 20);
    });
    for journey in &followed.journeys {
        assert_eq!((journey.end, times(journey).len()), (End::Read, 4), "{journey:?}");
    }
}
