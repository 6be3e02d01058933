//! Captures of one direction: packets that the machine receives, or those that it sends.

use std::net::UdpSocket;
use std::time::Duration;

use wirestamp_capture::{Capture, Config, Cores, Direction, Method};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::SINK_V4;

use crate::bed::{KeptPackets, PORT, capture, config, lab, shareable_pairs};

const REQUESTS: usize = 20;
/// Place of a datagram's payload in an Ethernet frame.
const PAYLOAD: usize = 42;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

fn socket(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind(("0.0.0.0", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

#[test]
fn each_direction_has_its_packets() {
    let Some(lab) = lab() else { return };
    let here = lab.sink().run(|| socket(PORT)).unwrap();
    let there = lab.source().run(|| socket(0)).unwrap();
    let exchange = || {
        for _ in 0..REQUESTS {
            there.send_to(&[REQUEST], (SINK_V4, PORT)).unwrap();
            let (_, from) = here.recv_from(&mut [0]).unwrap();
            here.send_to(&[REPLY], from).unwrap();
            there.recv(&mut [0]).unwrap();
        }
    };
    let expected = [
        (Direction::In, [REQUESTS, 0]),
        (Direction::Out, [0, REQUESTS]),
        (Direction::Inout, [REQUESTS, REQUESTS]),
    ];
    for pair in shareable_pairs() {
        for lanes in [1, 2] {
            for (direction, expected) in expected {
                let mut kept = KeptPackets::default();
                let lanes = vec![Cores::default(); lanes];
                let config = Config { direction, lanes, ..config(pair.method, pair.stamp, None) };
                let name =
                    format!("{} {} {direction:?} {}", pair.method, pair.stamp, config.lanes.len());
                let (ledger, outcome) = capture(&lab, config, &mut kept, |stop| {
                    exchange();
                    stop.request();
                });
                outcome.unwrap();
                let count =
                    |kind| kept.0.iter().filter(|(_, bytes, _)| bytes[PAYLOAD] == kind).count();
                assert_eq!([REQUEST, REPLY].map(count), expected, "{name}: {ledger:?}");
                assert!(ledger.balances() && ledger.lost() == 0, "{name}: {ledger:?}");
            }
        }
    }
}

#[test]
fn method_without_outgoing_packets_lists_those_with_them() {
    let clock = ClockService::start(Counter::select()).unwrap();
    for method in [Method::Xdp, Method::XdpPass, Method::TcPass, Method::TracePass] {
        let direction = Direction::Out;
        let config = Config { direction, ..Config::new("lo", method, method.default_stamp()) };
        let error = Capture::open(config, &clock).err().unwrap();
        assert!(error.is_usage());
        assert!(error.to_string().contains("ring, recvmsg, recvmmsg or libpcap"), "{error}");
    }
}
