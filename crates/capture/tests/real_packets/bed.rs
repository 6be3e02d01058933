//! Shared by the tests with real packets: a path of network namespaces, captures on it, and frames.

use std::net::UdpSocket;
use std::thread;
use std::time::UNIX_EPOCH;

use wirestamp_capture::capabilities::works_without_card;
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Ledger, Limit, Method, PAIRS, Pair, Sink, StampSource,
    Stop,
};
use wirestamp_clock::{ClockService, Counter, Domain, Stamp};
use wirestamp_lab::{Impairments, Netns, PathLab, SINK_V4, TAP_B};

pub(crate) const PORT: u16 = 5000;

/// The tag of VLAN 7.
pub(crate) const TAG: [u8; 4] = [0x81, 0, 0, 7];

pub(crate) fn lab() -> Option<PathLab> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap())
}

/// Runs `ip` in a namespace.
pub(crate) fn ip(namespace: &Netns, arguments: &str) {
    let status = namespace.command("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// Pairs that need neither a network card nor a missing kernel function.
pub(crate) fn pairs() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().filter(|pair| works_without_card(pair))
}

/// The pairs of these whose packets can be distributed over several threads.
pub(crate) fn shareable_pairs() -> impl Iterator<Item = &'static Pair> {
    let alone = [Method::Xdp, Method::XdpPass, Method::TcPass, Method::TracePass];
    pairs().filter(move |pair| !alone.contains(&pair.method))
}

/// Sends `count` packets with their number as payload, from the lab's source to its sink.
pub(crate) fn send(lab: &PathLab, count: u32) {
    let socket = lab.source().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    for number in 0..count {
        let payload = [&number.to_be_bytes()[..], &[0; 200]].concat();
        socket.send_to(&payload, (SINK_V4, PORT)).unwrap();
    }
}

/// A UDP datagram in a frame of that many bytes, from the lab's source to its router.
pub(crate) fn frame(bytes: usize, tag: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0x77, 0, 0, 1, 2, 2, 0x77, 0, 0, 1, 1];
    frame.extend(tag);
    frame.extend([0x08, 0]);
    let ip_bytes = u16::try_from(bytes - frame.len()).unwrap();
    frame.extend([0x45, 0]);
    frame.extend(ip_bytes.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 1, 1, 10, 77, 1, 2, 0x13, 0x88, 0x13, 0x88]);
    frame.extend((ip_bytes - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((frame.len()..bytes).map(|at| u8::try_from(at % 251).unwrap()));
    frame
}

/// Keeps all packets.
#[derive(Default)]
pub(crate) struct KeptPackets(pub(crate) Vec<(Stamp, Vec<u8>, u32)>);

impl Sink for KeptPackets {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.0.push((packet.stamp, packet.bytes.to_vec(), packet.length));
        Ok(())
    }
}

pub(crate) fn config(method: Method, stamp: StampSource, packets: Option<u64>) -> Config {
    Config {
        filter: Some(format!("udp port {PORT}")),
        limit: Limit { packets, duration: None },
        ..Config::new(TAP_B, method, stamp)
    }
}

/// Captures at tap B while `traffic` runs.
pub(crate) fn capture(
    lab: &PathLab,
    config: Config,
    sink: &mut (dyn Sink + Send),
    traffic: impl FnOnce(&Stop),
) -> (Ledger, Result<(), Error>) {
    let clock = ClockService::start(Counter::select()).unwrap();
    let stop = Stop::new().unwrap();
    let capture = lab.sink().run(|| Capture::open(config, &clock)).unwrap().unwrap();
    thread::scope(|scope| {
        let capturing = scope.spawn(|| capture.run(&clock, &stop, sink));
        traffic(&stop);
        capturing.join().unwrap()
    })
}

/// Domain of the raw values of captured packets: the counter's, if the kernel's stamps can be converted to it.
pub(crate) fn raw_domain(stamp: StampSource) -> Domain {
    ClockService::start(Counter::select()).unwrap().raw_domain(stamp.domain())
}

/// Nanoseconds since 1970 by the system clock.
pub(crate) fn now() -> i64 {
    let now = UNIX_EPOCH.elapsed().unwrap();
    now.as_nanos().try_into().unwrap()
}
