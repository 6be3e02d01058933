//! Every filter with every pair of method and stamp, on real frames: captured frames match libpcap's result for the
//! frames on the wire.

#[path = "../src/filter/tests/samples.rs"]
mod samples;

use std::time::Duration;

use wirestamp_capture::capabilities::works_without_card;
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Direction, Error, Filter, Ledger, Limit, Method, PAIRS, Pair,
    Sink, Stop,
};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{Impairments, PathLab, TAP_A};

use samples::{FILTERS, FOR_THE_CONSUMER, frames};

/// The last frame. Every filter is extended to pass it.
const LAST: &[u8] = &[2, 0x77, 0, 0, 9, 9, 2, 0x77, 0, 0, 0, 0x99, 0x88, 0xb6, 1, 2, 3, 4];
const SENT_LAST: &str = "ether src 02:77:00:00:00:99";

/// Keeps frames until the last one.
struct UntilLast<'a> {
    frames: Vec<Vec<u8>>,
    stop: &'a Stop,
}

impl Sink for UntilLast<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        if packet.bytes == LAST {
            self.stop.request();
        } else {
            self.frames.push(packet.bytes.to_vec());
        }
        Ok(())
    }
}

/// A wire, and the clock for captures at its other end.
struct Bed {
    lab: PathLab,
    wire: pcap::Capture<pcap::Active>,
    clock: ClockService,
}

/// Result of a capture.
struct Outcome {
    frames: Vec<Vec<u8>>,
    ledger: Ledger,
    notes: String,
}

impl Bed {
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return None;
        }
        let lab = PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap();
        let wire = || pcap::Capture::from_device("out").unwrap().open().unwrap();
        let wire = lab.source().run(wire).unwrap();
        Some(Self { lab, wire, clock: ClockService::start(Counter::select()).unwrap() })
    }

    /// Captures the frames that pass `expression` with `pair`.
    fn capture(&mut self, pair: &Pair, expression: &str, frames: &[Vec<u8>]) -> Outcome {
        let config = Config {
            filter: Some(format!("{SENT_LAST} or ({expression})")),
            limit: Limit { packets: None, duration: Some(Duration::from_secs(20)) },
            direction: Direction::In,
            ring_bytes: 4 << 20,
            ..Config::new(TAP_A, pair.method, pair.stamp)
        };
        let open = || Capture::open(config, &self.clock);
        let capture = self.lab.router().run(open).unwrap().unwrap();
        let notes = capture.facts().notes.join("; ");
        for frame in frames.iter().map(Vec::as_slice).chain([LAST]) {
            self.wire.sendpacket(frame).unwrap();
        }
        let stop = Stop::new().unwrap();
        let mut sink = UntilLast { frames: Vec::new(), stop: &stop };
        let (ledger, outcome) = capture.run(&self.clock, &stop, &mut sink);
        outcome.unwrap();
        Outcome { frames: sink.frames, ledger, notes }
    }
}

/// The frames that should be captured, according to libpcap.
fn expected(expression: &str, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let filter = Filter::compile(expression).unwrap();
    let passes = |frame: &&Vec<u8>| filter.passes(frame, frame.len().try_into().unwrap());
    frames.iter().filter(passes).cloned().collect()
}

/// Pairs that need neither a network card nor a missing kernel function.
fn pairs() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().filter(|pair| works_without_card(pair))
}

#[test]
fn kernel_filters_equally_for_every_pair() {
    let Some(mut bed) = Bed::new() else { return };
    let frames = frames();
    for expression in FILTERS {
        let expected = expected(expression, &frames);
        for pair in pairs() {
            let Outcome { frames, ledger, notes } = bed.capture(pair, expression, &frames);
            let name = format!("{} {} '{expression}': {ledger:?}", pair.method, pair.stamp);
            assert!(ledger.balances() && ledger.lost() == 0, "{name}");
            assert!(frames == expected, "{name}: {} instead of {}", frames.len(), expected.len());
            assert_eq!((ledger.filtered, notes.contains("filter")), (0, false), "{name} {notes}");
        }
    }
}

#[test]
fn unsupported_filters_run_in_the_consumer() {
    let Some(mut bed) = Bed::new() else { return };
    let frames = frames();
    for expression in FOR_THE_CONSUMER {
        let expected = expected(expression, &frames);
        for pair in pairs() {
            let Outcome { frames, ledger, notes } = bed.capture(pair, expression, &frames);
            let name = format!("{} {} '{expression}': {ledger:?}", pair.method, pair.stamp);
            assert!(ledger.balances() && ledger.lost() == 0, "{name}");
            assert!(frames == expected, "{name}: {} instead of {}", frames.len(), expected.len());
            assert_eq!(
                ledger.filtered > 0,
                notes.contains("runs in this process"),
                "{name} {notes}"
            );
        }
    }
}

#[test]
fn filter_without_kernel_memory_runs_in_the_consumer() {
    let Some(mut bed) = Bed::new() else { return };
    // Max memory of a socket's filter and options (socket(7)): enough for a short filter.
    let limit = || std::fs::write("/proc/sys/net/core/optmem_max", "500");
    bed.lab.router().run(limit).unwrap().unwrap();
    let expression = "vlan and tcp portrange 1000-6000 and not net 192.168.0.0/16";
    let pair = PAIRS.iter().find(|pair| pair.method == Method::Ring).unwrap();
    let Outcome { frames: captured, notes, .. } = bed.capture(pair, expression, &frames());
    assert_eq!(captured, expected(expression, &frames()));
    assert!(notes.ends_with("Cannot allocate memory (os error 12)"), "{notes}");
}
