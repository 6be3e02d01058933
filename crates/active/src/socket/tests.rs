use std::net::{Ipv4Addr, Ipv6Addr};

use rustix::event::{PollFd, PollFlags, poll};

use super::*;

/// A socket at a port of an address of this host.
fn bound(address: IpAddr, port: u16) -> (StampedSocket, SocketAddr) {
    let socket = StampedSocket::bind(SocketAddr::new(address, port)).unwrap();
    let at = socket.local_addr().unwrap();
    (socket, at)
}

/// Waits for the next packet.
fn next(socket: &mut StampedSocket) -> Received<'_> {
    poll(&mut [PollFd::new(&*socket, PollFlags::IN)], None).unwrap();
    socket.receive().unwrap().unwrap()
}

#[test]
fn answers_have_the_requested_source_and_class() {
    let (v6, at) = bound(Ipv6Addr::UNSPECIFIED.into(), 0);
    let (v4, _) = bound(Ipv4Addr::UNSPECIFIED.into(), at.port());
    // An address of this host that is not its default source address.
    let to_v4: IpAddr = Ipv4Addr::new(127, 0, 0, 7).into();
    for (mut reflector, to) in [(v4, to_v4), (v6, Ipv6Addr::LOCALHOST.into())] {
        let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
        let (mut sender, _) = bound(any, 0);
        let parameters = SendParameters { from: None, class: Some(46 << 2) };
        sender.send(b"asked", SocketAddr::new(to, at.port()), parameters).unwrap();
        let Received { from, to: asked, ttl, class, .. } = next(&mut reflector);
        assert_eq!((ttl, class, asked.unwrap().0), (64, 46 << 2, to));
        reflector
            .send(b"answered", from, SendParameters { from: asked, class: Some(10 << 2) })
            .unwrap();
        let answer = next(&mut sender);
        assert_eq!((answer.from.ip(), answer.class), (to, 10 << 2));
    }
}

#[test]
fn dropped_datagrams_are_counted() {
    let (socket, at) = bound(Ipv4Addr::LOCALHOST.into(), 0);
    option::set_socket_recv_buffer_size(&socket.socket, 1).unwrap();
    let (mut sender, _) = bound(Ipv4Addr::LOCALHOST.into(), 0);
    let mut socket = socket;
    for _ in 0..100 {
        sender.send(&[0; 1000], at, SendParameters::default()).unwrap();
    }
    let received = std::iter::from_fn(|| socket.receive().unwrap().map(drop)).count();
    assert!(received < 100);
    assert_eq!(usize::try_from(socket.dropped().unwrap()).unwrap(), 100 - received);
}
