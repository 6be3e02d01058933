//! Packets of many segments, which a sender's kernel leaves to the other end of a veth to cut
//! apart.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use wirestamp_capture::{Capture, Config, Method, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::TAP_A;

use crate::bed::{Kept, lab};

/// The router, as the source sees it.
const ROUTER: &str = "10.77.1.2:5000";
const BYTES: usize = 1 << 20;
/// An Ethernet frame without a tag.
const LONGEST_FRAME: u32 = 14 + 1500;

#[test]
fn what_the_network_stack_has_as_one_packet_is_one_of_its_true_length() {
    let Some(lab) = lab() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    let open = |method: Method| {
        let config = Config {
            filter: Some("tcp dst port 5000".to_owned()),
            snaplen: 96,
            outgoing: false,
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
        let (mut kept, stop) = (Kept::default(), Stop::new().unwrap());
        stop.request();
        let (ledger, outcome) = capture.run(&clock, &stop, &mut kept);
        outcome.unwrap();
        assert!(ledger.balances() && ledger.lost() == 0, "{ledger:?}");
        // Two that the kernel handles on two cores have no other order than that of their bytes.
        kept.0.into_iter().map(|(_, bytes, length)| (bytes, length)).collect::<BTreeSet<_>>()
    });
    assert!(by_program.iter().any(|&(_, length)| length > LONGEST_FRAME), "all were cut apart");
    assert!(by_program == by_socket, "{} and {}", by_program.len(), by_socket.len());
}
