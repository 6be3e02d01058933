//! Every pair of method and stamp on real packets, across a path of network namespaces.

use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread;

use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{
    Capture, Captured, Config, Error, Ledger, Limit, Method, PAIRS, Sink, StampSource, Stop,
};
use wirestamp_clock::{ClockService, Counter, Stamp};
use wirestamp_lab::{Impairments, PathLab, SINK_V4, TAP_B};

const PORT: u16 = 5000;

fn lab() -> Option<PathLab> {
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap())
}

/// Sends `count` packets whose payload is their number, from the lab's source to its sink.
fn send(lab: &PathLab, count: u32) {
    let socket = lab.source().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    for number in 0..count {
        let payload = [&number.to_be_bytes()[..], &[0; 200]].concat();
        socket.send_to(&payload, (SINK_V4, PORT)).unwrap();
    }
}

/// Keeps what it is given.
#[derive(Default)]
struct Kept(Vec<(Stamp, Vec<u8>, u32)>);

impl Sink for Kept {
    fn packet(&mut self, packet: &Captured<'_>) -> Result<(), Error> {
        self.0.push((packet.stamp, packet.bytes.to_vec(), packet.length));
        Ok(())
    }
}

fn config(method: Method, stamp: StampSource, packets: Option<u64>) -> Config {
    Config {
        filter: Some(format!("udp port {PORT}")),
        limit: Limit { packets, duration: None },
        ..Config::new(TAP_B, method, stamp)
    }
}

/// Captures at tap B while `traffic` runs.
fn capture(
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

#[test]
fn every_pair_captures_and_stamps_what_was_sent() {
    let Some(lab) = lab() else { return };
    let count: u32 = 500;
    for pair in PAIRS {
        let mut kept = Kept::default();
        let before = now();
        let config = config(pair.method, pair.stamp, Some(count.into()));
        let (ledger, outcome) = capture(&lab, config, &mut kept, |_| send(&lab, count));
        let after = now();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        outcome.unwrap();
        assert!(ledger.balances(), "{name}");
        assert_eq!((ledger.delivered, ledger.lost()), (count.into(), 0), "{name}");
        for ((stamp, bytes, length), number) in kept.0.iter().zip(0_u32..) {
            assert_eq!(*length, 14 + 20 + 8 + 204, "{name}");
            assert_eq!(bytes[42..46], number.to_be_bytes(), "{name}");
            assert_eq!(stamp.raw.domain, pair.stamp.domain());
            let utc = stamp.utc.as_nanos();
            let error = stamp.error.as_nanos();
            assert!(before <= utc + error && utc - error <= after, "{name}: {stamp:?}");
        }
        let raw: Vec<_> = kept.0.iter().map(|(stamp, ..)| stamp.raw.value).collect();
        assert!(raw.is_sorted(), "{name}");
    }
}

fn now() -> i64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    now.as_nanos().try_into().unwrap()
}

#[test]
fn what_does_not_fit_into_the_ring_is_counted() {
    /// Holds every packet until it is told that all have been sent.
    struct Slow(mpsc::Receiver<()>, bool);
    impl Sink for Slow {
        fn packet(&mut self, _: &Captured<'_>) -> Result<(), Error> {
            if !self.1 {
                self.0.recv().unwrap();
                self.1 = true;
            }
            Ok(())
        }
    }
    let Some(lab) = lab() else { return };
    let count: u32 = 3000;
    for pair in PAIRS {
        let (all_sent, wait) = mpsc::channel();
        let config = Config { ring_bytes: 64 << 10, ..config(pair.method, pair.stamp, None) };
        let (ledger, outcome) = capture(&lab, config, &mut Slow(wait, false), |stop| {
            send(&lab, count);
            all_sent.send(()).unwrap();
            stop.request();
        });
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        outcome.unwrap();
        assert!(ledger.balances(), "{name}");
        assert_eq!(ledger.seen - ledger.filtered, u64::from(count), "{name}");
        assert!(ledger.kernel_dropped > 0, "{name}");
    }
}

#[test]
fn a_file_gives_back_what_was_captured() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.pcapng");
    let clock = ClockService::start(Counter::select()).unwrap();
    let stop = Stop::new().unwrap();
    let config = config(Method::Ring, StampSource::Raw, Some(50));
    let capture = lab.sink().run(|| Capture::open(config, &clock)).unwrap().unwrap();
    let mut writer =
        Writer::create(&path, capture.facts(), Provenance::of(capture.facts(), 0)).unwrap();
    let (ledger, outcome) = thread::scope(|scope| {
        let capturing = scope.spawn(|| capture.run(&clock, &stop, &mut writer));
        send(&lab, 50);
        capturing.join().unwrap()
    });
    outcome.unwrap();
    writer.finish(&ledger).unwrap();

    let mut reader = Reader::open(&path).unwrap();
    let mut number = 0_u32;
    while let Some(packet) = reader.next_packet().unwrap() {
        assert_eq!(packet.bytes[42..46], number.to_be_bytes());
        number += 1;
    }
    assert_eq!(number, 50);
    let provenance = reader.provenance().unwrap();
    assert_eq!((&*provenance.method, &*provenance.stamp), ("ring", "raw"));
    assert!(provenance.error_ns > 0);
}
