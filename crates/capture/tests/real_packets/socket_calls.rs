//! System calls that receive one packet or several: their stamps, and packets that wait in the queue.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Method, Pair, Sink, StampSource, Stop,
};
use wirestamp_clock::{ClockService, Counter};

use super::bed::{PORT, capture, config, ip, lab, pairs};

/// Blocks at the first packet until all were sent.
struct SlowSink(mpsc::Receiver<()>, bool);
impl Sink for SlowSink {
    fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
        if !self.1 {
            self.0.recv().unwrap();
            self.1 = true;
        }
        Ok(())
    }
}

#[test]
fn packets_of_one_call_share_their_raw_stamp() {
    /// Keeps both stamps. Packets that arrived before the kernel enabled stamping have no kernel stamp.
    struct BothStamps(Vec<(u64, Option<i64>)>);
    impl Sink for BothStamps {
        fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
            self.0.push((packet.stamp.raw.value, packet.kernel.map(|time| time.as_nanos())));
            Ok(())
        }
    }
    let Some(lab) = lab() else { return };
    ip(lab.sink(), "link set lo up");
    let clock = ClockService::start(Counter::select()).unwrap();
    let bind = |port| lab.sink().run(|| UdpSocket::bind(("127.0.0.1", port)).unwrap()).unwrap();
    let (sender, receiver) = (bind(0), bind(PORT));
    let open = |method, count| {
        let config = config(method, StampSource::Raw, Some(count));
        let config = Config { interface: "lo".to_owned(), ..config };
        lab.sink().run(|| Capture::open(config, &clock)).unwrap().unwrap()
    };
    let captured = |method, count| {
        let capture = open(method, count);
        for _ in 0..count {
            sender.send_to(b"before the capture looks", (Ipv4Addr::LOCALHOST, PORT)).unwrap();
            receiver.recv(&mut [0; 64]).unwrap();
        }
        let mut both = BothStamps(Vec::new());
        capture.run(&clock, &Stop::new().unwrap(), &mut both).1.unwrap();
        both.0.into_iter().unzip::<_, _, Vec<_>, Vec<_>>()
    };
    // Makes the kernel keep its stamping enabled.
    let _stamping = open(Method::Ring, 1);
    while captured(Method::Recvmsg, 1).1 == [None] {}
    for (method, expected) in [(Method::Recvmsg, 40), (Method::Recvmmsg, 1)] {
        let (mut raw, kernel) = captured(method, 40);
        raw.dedup();
        assert_eq!(raw.len(), expected, "{method}");
        let kernel: Vec<i64> = kernel.into_iter().flatten().collect();
        assert_eq!(kernel.len(), 40, "{method}");
        assert!(kernel.is_sorted_by(|a, b| a < b), "{method}: {kernel:?}");
    }
}

#[test]
fn packets_without_buffer_wait_in_the_queue() {
    let Some(lab) = lab() else { return };
    ip(lab.sink(), "link set lo up");
    let sender = lab.sink().run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
    let sockets = |pair: &&Pair| matches!(pair.method, Method::Recvmsg | Method::Recvmmsg);
    for pair in pairs().filter(sockets) {
        let (all_sent, wait) = mpsc::channel();
        // One buffer, because the interface's packets may have 64 KiB.
        let config = Config {
            interface: "lo".to_owned(),
            ring_bytes: 128 << 10,
            ..config(pair.method, pair.stamp, Some(20))
        };
        let begun = Instant::now();
        let (ledger, outcome) = capture(&lab, config, &mut SlowSink(wait, false), |_| {
            for _ in 0..20 {
                sender.send_to(b"one at a time", (Ipv4Addr::LOCALHOST, PORT)).unwrap();
            }
            all_sent.send(()).unwrap();
        });
        outcome.unwrap();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        assert!(ledger.balances(), "{name}");
        assert_eq!((ledger.delivered, ledger.lost()), (20, 0), "{name}");
        // A thread that missed waiting packets would sleep one second for each.
        assert!(begun.elapsed() < Duration::from_secs(10), "{name}");
    }
}
