//! Packets of many segments, which a sender's kernel leaves unsegmented on a veth.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use wirestamp_capture::{Capture, Config, Direction, Method, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::TAP_A;

use crate::bed::{KeptPackets, lab};

/// The router's address on the source's side.
const ROUTER: &str = "10.77.1.2:5000";
const BYTES: usize = 1 << 20;
/// An Ethernet frame without a tag.
const LONGEST_FRAME: u32 = 14 + 1500;

#[test]
fn unsegmented_packet_has_its_true_length() {
    let Some(lab) = lab() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    let open = |method: Method| {
        let config = Config {
            filter: Some("tcp dst port 5000".to_owned()),
            snaplen: 96,
            direction: Direction::In,
            ..Config::new(TAP_A, method, method.default_stamp())
        };
        lab.router().run(|| Capture::open(config, &clock)).unwrap().unwrap()
    };
    let captures = [Method::Ring, Method::TcPass].map(open);
    let listener = lab.router().run(|| TcpListener::bind(ROUTER)).unwrap().unwrap();
    let send = || TcpStream::connect(ROUTER)?.write_all(&[7; BYTES]);
    thread::scope(|scope| {
        let sending = scope.spawn(|| lab.source().run(send).unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        assert_eq!(io::copy(&mut stream, &mut io::sink()).unwrap(), BYTES as u64);
        sending.join().unwrap().unwrap();
    });
    let [by_socket, by_program] = captures.map(|capture| {
        let (mut kept, stop) = (KeptPackets::default(), Stop::new().unwrap());
        stop.request();
        let (ledger, outcome) = capture.run(&clock, &stop, &mut kept);
        outcome.unwrap();
        assert!(ledger.balances() && ledger.lost() == 0, "{ledger:?}");
        // Packets that the kernel handles on two cores have only the order of their bytes.
        kept.0.into_iter().map(|(_, bytes, length)| (bytes, length)).collect::<BTreeSet<_>>()
    });
    assert!(by_program.iter().any(|&(_, length)| length > LONGEST_FRAME), "all were segmented");
    assert!(by_program == by_socket, "{} and {}", by_program.len(), by_socket.len());
}
