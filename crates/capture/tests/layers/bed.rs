//! Shared by the tests of layers: a path of network namespaces, and packets followed at its end.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wirestamp_capture::layers::{Config, Direction, Journey, Layers, LayersLedger, Point, Reasons};
use wirestamp_capture::{Limit, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{Impairments, Netns, PathLab, SINK_V4, SOURCE_INTERFACE, TAP_B};

pub(crate) const PORT: u16 = 5000;

/// Max time to follow. Packets may be missing: this kernel runs no program at tracepoints while the softIRQ interrupts
/// process 1.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn lab() -> Option<PathLab> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap())
}

/// Result of following.
pub(crate) struct Followed {
    pub(crate) journeys: Vec<Journey>,
    pub(crate) ledger: LayersLedger,
    pub(crate) reasons: Reasons,
}

/// Follows packets that arrive at the sink while `traffic` runs, until `packets` have ended if that is given, or the
/// timeout passes.
pub(crate) fn follow(
    lab: &PathLab,
    filter: &str,
    packets: Option<u64>,
    traffic: impl FnOnce(),
) -> Followed {
    follow_at(lab.sink(), TAP_B, Direction::In, filter, packets, traffic)
}

pub(crate) fn follow_at(
    netns: &Netns,
    interface: &str,
    direction: Direction,
    filter: &str,
    packets: Option<u64>,
    traffic: impl FnOnce(),
) -> Followed {
    let clock = ClockService::start(Counter::select()).unwrap();
    let config = Config {
        interface: interface.to_owned(),
        direction,
        filter: (!filter.is_empty()).then(|| filter.to_owned()),
        limit: Limit { packets, duration: Some(TIMEOUT) },
    };
    let layers = netns.run(|| Layers::open(config, &clock)).unwrap().unwrap();
    run(layers, packets, traffic)
}

/// Times at which the source's packets reach the queue.
pub(crate) fn departures(lab: &PathLab, filter: &str, traffic: impl FnOnce()) -> Followed {
    let clock = ClockService::start(Counter::select()).unwrap();
    let open = || Layers::departures(SOURCE_INTERFACE, Some(filter), &clock);
    run(lab.source().run(open).unwrap().unwrap(), None, traffic)
}

fn run(layers: Layers, packets: Option<u64>, traffic: impl FnOnce()) -> Followed {
    let stop = Stop::new().unwrap();
    assert_eq!(layers.facts().notes, [""; 0]);
    let reasons = layers.reasons().clone();
    let mut journeys = Vec::new();
    let mut keep = |journey| {
        journeys.push(journey);
        Ok(())
    };
    let (ledger, outcome) = thread::scope(|scope| {
        let running = {
            let stop = &stop;
            let keep = &mut keep;
            scope.spawn(move || layers.run(stop, keep))
        };
        traffic();
        if packets.is_none() {
            stop.request();
        }
        running.join().unwrap()
    });
    outcome.unwrap();
    assert!(ledger.balances(), "{ledger:?}");
    assert_eq!(ledger.lost(), 0, "{ledger:?}");
    Followed { journeys, ledger, reasons }
}

/// A socket of the sink without a reader yet.
pub(crate) fn receiver(lab: &PathLab, address: impl Into<IpAddr> + Send, port: u16) -> UdpSocket {
    let address = address.into();
    lab.sink().run(|| UdpSocket::bind((address, port))).unwrap().unwrap()
}

/// Sends datagrams with their numbers as payload, from the source to the sink.
pub(crate) fn send(lab: &PathLab, port: u16, numbers: impl IntoIterator<Item = u32>) {
    let socket = lab.source().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    for number in numbers {
        socket.send_to(&number.to_be_bytes(), (SINK_V4, port)).unwrap();
    }
}

/// Reads that many datagrams.
pub(crate) fn read(socket: &UdpSocket, count: usize) {
    let mut buffer = [0; 2048];
    for _ in 0..count {
        socket.recv(&mut buffer).unwrap();
    }
}

/// The number in a datagram over IPv4.
pub(crate) fn number(journey: &Journey) -> u32 {
    let payload = 14 + 20 + 8;
    u32::from_be_bytes(journey.head[payload..payload + 4].try_into().unwrap())
}

/// Nanoseconds of the clock that the points read.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

/// Bytes in the queue of the sink's socket at `port`, and datagrams it had no room for (proc_net_udp of
/// the kernel's Documentation/networking/proc_net_tcp.rst: `rx_queue` and `drops`).
pub(crate) fn queue(lab: &PathLab, port: u16) -> (u64, u64) {
    let table =
        lab.sink().run(|| fs::read_to_string("/proc/thread-self/net/udp")).unwrap().unwrap();
    let line = table.lines().find(|line| line.contains(&format!(":{port:04X} "))).unwrap();
    let fields: Vec<_> = line.split_whitespace().collect();
    let (_, queued) = fields[4].split_once(':').unwrap();
    (u64::from_str_radix(queued, 16).unwrap(), fields[12].parse().unwrap())
}

/// Times of a packet at the points where it was observed, in order.
pub(crate) fn times(journey: &Journey) -> Vec<u64> {
    let points: [Point; 4] = journey.direction.points();
    points.into_iter().filter_map(|point| journey.time(point)).collect()
}

/// Runs iproute2's `ip` or `tc` in a namespace.
pub(crate) fn iproute(program: &str, netns: &Netns, arguments: &str) {
    let status = netns.command(program).args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "{program} {arguments}");
}

/// Puts a bridge over the sink's interface.
pub(crate) fn bridge(lab: &PathLab) {
    // With the hardware address of the interface, which is in the router's table already.
    iproute("ip", lab.sink(), "link add bridge type bridge");
    iproute("ip", lab.sink(), "link set bridge address 02:77:00:00:02:02");
    iproute("ip", lab.sink(), "link set tap-b master bridge");
    iproute("ip", lab.sink(), "address flush dev tap-b");
    iproute("ip", lab.sink(), "address add 10.77.2.2/24 dev bridge");
    iproute("ip", lab.sink(), "link set bridge up");
    iproute("ip", lab.sink(), "route add default via 10.77.2.1");
}
