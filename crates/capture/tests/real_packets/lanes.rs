//! Captures whose packets the kernel distributes over several receivers.

use std::collections::BTreeSet;
use std::net::UdpSocket;

use wirestamp_capture::{Capture, Config, Cores, Method};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{PathLab, SINK_V4};

use crate::bed::{KeptPackets, PORT, capture, config, lab, shareable_pairs};

const FLOWS: u32 = 64;
const ROUNDS: u32 = 20;
const LANES: usize = 3;

/// Sends packets of many flows in turn, each with its index.
fn send_flows(lab: &PathLab) {
    let bind = || UdpSocket::bind("0.0.0.0:0").unwrap();
    let sockets: Vec<_> = (0..FLOWS).map(|_| lab.source().run(bind).unwrap()).collect();
    for round in 0..ROUNDS {
        for (socket, flow) in sockets.iter().zip(0..) {
            let number = round * FLOWS + flow;
            socket.send_to(&number.to_be_bytes(), (SINK_V4, PORT)).unwrap();
        }
    }
}

#[test]
fn packets_of_all_lanes_arrive_in_stamp_order() {
    let Some(lab) = lab() else { return };
    for pair in shareable_pairs() {
        let mut kept = KeptPackets::default();
        let count = FLOWS * ROUNDS;
        let lanes = vec![Cores::default(); LANES];
        let config = Config { lanes, ..config(pair.method, pair.stamp, Some(count.into())) };
        let (ledger, outcome) = capture(&lab, config, &mut kept, |_| send_flows(&lab));
        outcome.unwrap();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        assert!(ledger.balances(), "{name}");
        assert_eq!((ledger.delivered, ledger.lost()), (count.into(), 0), "{name}");
        let numbers: BTreeSet<_> = kept.0.iter().map(|(_, bytes, _)| &bytes[42..46]).collect();
        assert_eq!(numbers.len(), count as usize, "{name}");
        let stamps: Vec<_> = kept.0.iter().map(|(stamp, ..)| stamp.utc).collect();
        assert!(stamps.is_sorted() || ledger.out_of_order > 0, "{name}");
    }
}

#[test]
fn method_without_lanes_lists_those_with_lanes() {
    let clock = ClockService::start(Counter::select()).unwrap();
    let lanes = vec![Cores::default(); 2];
    for method in [Method::Xdp, Method::XdpPass, Method::TcPass, Method::TracePass] {
        let lanes = lanes.clone();
        let config = Config { lanes, ..Config::new("lo", method, method.default_stamp()) };
        let error = Capture::open(config, &clock).err().unwrap();
        assert!(error.is_usage());
        assert!(error.to_string().contains("ring, recvmsg, recvmmsg or libpcap"), "{error}");
    }
}
