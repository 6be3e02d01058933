//! Live frames on the real interfaces of a lab.

mod arrivals;
mod overload;
mod rejected;
mod run_end;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirestamp_lab::{
    Impairments, Netns, PathLab, SINK_V4, SINK_V6, SOURCE_V4, SOURCE_V6, check_privilege,
};
use wirestamp_traffic::MacAddress;
use wirestamp_traffic::live::{Endpoint, Limit, Template};

const PORT: u16 = 5000;
const FLOWS: u16 = 8;
/// Max wait for a packet.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
static RUNNING: AtomicBool = AtomicBool::new(false);

fn lab() -> Option<PathLab> {
    if check_privilege().is_err() {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap())
}

/// Runs a command in a namespace; it must succeed.
fn tool(namespace: &Netns, command: &str) {
    let mut words = command.split(' ');
    let program = words.next().unwrap();
    assert!(namespace.command(program).args(words).status().unwrap().success(), "{command}");
}

/// The lab's Ethernet addresses end in the numbers of link and end: 1.1 is the source, 1.2 tap A, 2.2
/// the sink.
fn end(link: u8, end: u8, address: impl Into<IpAddr>, port: u16) -> Endpoint {
    let address = SocketAddr::new(address.into(), port);
    Endpoint { mac: MacAddress([2, 0x77, 0, 0, link, end]), address }
}

/// Frames from the source to tap A, with the sink's IP address.
fn outgoing(frame_bytes: u16) -> Template {
    let (source, destination) = (end(1, 1, SOURCE_V4, 7000), end(1, 2, SINK_V4, PORT));
    Template { source, destination, frame_bytes, flows: FLOWS, stream: 3 }
}

/// Frames from the router to the sink.
fn incoming(ipv6: bool, frame_bytes: u16) -> Template {
    let (from, to): (IpAddr, IpAddr) =
        if ipv6 { (SOURCE_V6.into(), SINK_V6.into()) } else { (SOURCE_V4.into(), SINK_V4.into()) };
    let (source, destination) = (end(2, 1, from, 7000), end(2, 2, to, PORT));
    Template { source, destination, frame_bytes, flows: FLOWS, stream: 3 }
}

const fn frames(frames: u64) -> Limit {
    Limit { frames: Some(frames), duration: None }
}

/// A socket of the sink.
fn receiver(lab: &PathLab) -> UdpSocket {
    let socket = lab.sink().run(|| UdpSocket::bind((SINK_V4, PORT)).unwrap()).unwrap();
    socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    socket
}
