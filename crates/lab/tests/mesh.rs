//! Real packets through the bed of a mesh.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use wirestamp_lab::{
    CONTROLLER_V4, Impairments, MeshLab, SINK_V4, SINK_V6, SOURCE_V4, SOURCE_V6, check_privilege,
};

/// How long a packet may take before the test counts as failed.
const FAILED_AFTER: Duration = Duration::from_secs(20);
/// How long a try takes that is to fail.
const BRIEFLY: Duration = Duration::from_millis(100);
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
    socket.set_read_timeout(Some(FAILED_AFTER)).unwrap();
    socket
}

#[test]
fn packets_pass_two_routers_both_ways_in_both_ip_versions() {
    let Some(lab) = lab() else { return };
    let both: [(IpAddr, IpAddr); 2] =
        [(SOURCE_V4.into(), SINK_V4.into()), (SOURCE_V6.into(), SINK_V6.into())];
    for (source, sink) in both {
        let (source, sink) = (SocketAddr::from((source, PORT)), SocketAddr::from((sink, PORT)));
        let sender = lab.source().run(|| bind(source)).unwrap();
        let receiver = lab.cellar().run(|| bind(sink)).unwrap();
        for (from, to, address) in [(&sender, &receiver, sink), (&receiver, &sender, source)] {
            from.send_to(b"x", address).unwrap();
            assert_eq!(to.recv(&mut [0; 10]).unwrap(), 1);
        }
    }
    let counters = lab.bottleneck().unwrap();
    assert_eq!((counters.sent_packets, counters.dropped_packets), (2, 0));
}

#[test]
fn managed_hosts_reach_the_controller_beside_the_path_and_can_be_cut_off() {
    let Some(lab) = lab() else { return };
    let controller = SocketAddr::from((CONTROLLER_V4, PORT));
    let listener = lab.controller().run(|| TcpListener::bind(controller).unwrap()).unwrap();
    for host in [lab.source(), lab.roof(), lab.cellar()] {
        let connect = || TcpStream::connect_timeout(&controller, FAILED_AFTER).unwrap();
        let mut managed = host.run(connect).unwrap();
        let (mut manager, _) = listener.accept().unwrap();
        manager.set_read_timeout(Some(FAILED_AFTER)).unwrap();
        let mut heard = || {
            let mut word = [0];
            manager.read_exact(&mut word).map(|()| word[0])
        };
        managed.write_all(&[1]).unwrap();
        assert_eq!(heard().unwrap(), 1);
        lab.cut_off().unwrap();
        // It arrives when the links are there again.
        managed.write_all(&[2]).unwrap();
        let unreachable = host.run(|| TcpStream::connect_timeout(&controller, BRIEFLY));
        assert!(unreachable.unwrap().is_err());
        lab.join_again().unwrap();
        assert_eq!(heard().unwrap(), 2);
    }
    assert_eq!(lab.bottleneck().unwrap().sent_packets, 0);
}
