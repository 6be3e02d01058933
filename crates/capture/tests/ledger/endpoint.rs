//! An endpoint that is captured with `xdp-pass`, `tc-pass` or `trace-pass` keeps its traffic.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use wirestamp_capture::{Capture, CapturedPacket, Config, Error, Method, Sink, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{Impairments, PathLab, SINK_V4, TAP_B};

/// The transfer: number of chunks, and words per chunk; 105 MB.
const CHUNKS: u64 = 1600;
const WORDS: u64 = 1 << 13;
const BYTES: u64 = CHUNKS * WORDS * 8;

/// A part of the transfer, in which each word is its own number.
fn chunk(number: u64) -> Vec<u8> {
    (number * WORDS..(number + 1) * WORDS).flat_map(u64::to_ne_bytes).collect()
}

/// Sums the captured bytes.
#[derive(Default)]
struct Adding {
    packets: u64,
    bytes: u64,
}

impl Sink for Adding {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.packets += 1;
        self.bytes += u64::from(packet.length);
        Ok(())
    }
}

#[test]
fn captured_transfer_arrives_complete() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let lab = PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap();
    let clock = ClockService::start(Counter::select()).unwrap();
    for method in [Method::XdpPass, Method::TcPass, Method::TracePass] {
        transfer(&lab, &clock, method);
    }
}

fn transfer(lab: &PathLab, clock: &ClockService, method: Method) {
    let stop = Stop::new().unwrap();
    let config = Config { snaplen: 96, ..Config::new(TAP_B, method, method.default_stamp()) };
    let capture = lab.sink().run(|| Capture::open(config, clock)).unwrap().unwrap();
    let listener = lab.sink().run(|| TcpListener::bind((SINK_V4, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let mut adding = Adding::default();
    let (ledger, outcome) = thread::scope(|scope| {
        let capturing = scope.spawn(|| capture.run(clock, &stop, &mut adding));
        scope.spawn(|| {
            let mut stream = lab.source().run(|| TcpStream::connect(address)).unwrap().unwrap();
            (0..CHUNKS).for_each(|number| stream.write_all(&chunk(number)).unwrap());
        });
        let (mut stream, _) = listener.accept().unwrap();
        let mut arrived = vec![0; chunk(0).len()];
        for number in 0..CHUNKS {
            stream.read_exact(&mut arrived).unwrap();
            assert!(arrived == chunk(number), "chunk {number}");
        }
        assert_eq!(stream.read(&mut arrived).unwrap(), 0);
        stop.request();
        capturing.join().unwrap()
    });
    outcome.unwrap();
    assert!(ledger.balances(), "{method}: {ledger:?}");
    assert_eq!((ledger.delivered, ledger.left_behind), (adding.packets, 0), "{ledger:?}");
    // The whole transfer was captured, in frames of up to 1500 bytes with their headers, or in unsegmented packets.
    let longest = if method == Method::XdpPass { 1500 } else { 1 << 16 };
    assert!(ledger.seen * longest > BYTES, "{method}: {ledger:?}");
    assert!(ledger.lost() > 0 || adding.bytes > BYTES, "{method}: {ledger:?}");
}
