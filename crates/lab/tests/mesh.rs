//! The test bed of a mesh with real packets.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use wirestamp_lab::{
    CONTROLLER_V4, Impairments, MeshLab, SINK_V4, SINK_V6, SOURCE_V4, SOURCE_V6, check_privilege,
};

/// Max wait for a packet.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout of a connection that must fail.
const FAILING_CONNECT_TIMEOUT: Duration = Duration::from_millis(100);
const PORT: u16 = 5000;

fn lab() -> Option<MeshLab> {
    if check_privilege().is_err() {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(MeshLab::new(&Impairments::bottleneck(100_000_000, 100_000)).unwrap())
}

fn bind(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    socket
}

#[test]
fn packets_pass_two_routers_in_both_directions() {
    let Some(lab) = lab() else { return };
    let both: [(IpAddr, IpAddr); 2] =
        [(SOURCE_V4.into(), SINK_V4.into()), (SOURCE_V6.into(), SINK_V6.into())];
    for (source, sink) in both {
        let (source, sink) = (SocketAddr::from((source, PORT)), SocketAddr::from((sink, PORT)));
        let sender = lab.source().run(|| bind(source)).unwrap();
        let receiver = lab.sink().run(|| bind(sink)).unwrap();
        for (from, to, address) in [(&sender, &receiver, sink), (&receiver, &sender, source)] {
            from.send_to(b"x", address).unwrap();
            assert_eq!(to.recv(&mut [0; 10]).unwrap(), 1);
        }
    }
    let counters = lab.bottleneck().unwrap();
    assert_eq!((counters.sent_packets, counters.dropped_packets), (2, 0));
}

#[test]
fn management_network_can_be_disconnected_and_reconnected() {
    let Some(lab) = lab() else { return };
    let controller = SocketAddr::from((CONTROLLER_V4, PORT));
    let listener = lab.controller.run(|| TcpListener::bind(controller).unwrap()).unwrap();
    for host in [lab.source(), lab.router(), lab.sink()] {
        let connect = || TcpStream::connect_timeout(&controller, TEST_TIMEOUT).unwrap();
        let mut managed = host.run(connect).unwrap();
        let (mut manager, _) = listener.accept().unwrap();
        manager.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut receive = || {
            let mut byte = [0];
            manager.read_exact(&mut byte).map(|()| byte[0])
        };
        managed.write_all(&[1]).unwrap();
        assert_eq!(receive().unwrap(), 1);
        lab.cut_off().unwrap();
        // It arrives after the links are up again.
        managed.write_all(&[2]).unwrap();
        let unreachable =
            host.run(|| TcpStream::connect_timeout(&controller, FAILING_CONNECT_TIMEOUT));
        assert!(unreachable.unwrap().is_err());
        lab.join_again().unwrap();
        assert_eq!(receive().unwrap(), 2);
    }
    assert_eq!(lab.bottleneck().unwrap().sent_packets, 0);
}
