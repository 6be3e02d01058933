//! Method `libpcap` compared with tcpdump, and cases where libpcap alone would miscount.

use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use wirestamp_capture::file::Reader;
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Ledger, Limit, Method, PAIRS, Sink, StampSource, Stop,
};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{Impairments, PathLab, SINK_V4, TAP_B};

const PORT: u16 = 5000;
const NOISE: u16 = 6000;

fn lab() -> Option<PathLab> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap())
}

/// A socket of the lab's source that sends to its sink.
fn sender(lab: &PathLab, port: u16) -> UdpSocket {
    let socket = lab.source().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    socket.connect((SINK_V4, port)).unwrap();
    socket
}

fn config(stamp: StampSource) -> Config {
    Config {
        filter: Some(format!("udp port {PORT}")),
        ..Config::new(TAP_B, Method::LibPcap, stamp)
    }
}

fn open(lab: &PathLab, config: Config, clock: &ClockService) -> Capture {
    lab.sink().run(|| Capture::open(config, clock)).unwrap().unwrap()
}

/// The stamp and the bytes of each packet.
#[derive(Default)]
struct KeptPackets(Vec<(i64, Vec<u8>)>);

impl Sink for KeptPackets {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.0.push((packet.stamp.utc.as_nanos(), packet.bytes.to_vec()));
        Ok(())
    }
}

/// Captures everything that has arrived at `capture`, and ends it.
fn drain(capture: Capture, clock: &ClockService) -> (Ledger, KeptPackets) {
    let stop = Stop::new().unwrap();
    stop.request();
    let mut kept = KeptPackets::default();
    let (ledger, outcome) = capture.run(clock, &stop, &mut kept);
    outcome.unwrap();
    assert!(ledger.balances(), "{ledger:?}");
    (ledger, kept)
}

fn stamps() -> impl Iterator<Item = StampSource> {
    PAIRS.iter().filter(|pair| pair.method == Method::LibPcap).map(|pair| pair.stamp)
}

#[test]
fn no_unfiltered_packet_arrives_during_setup() {
    let Some(lab) = lab() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    for stamp in stamps() {
        let (noise, wanted) = (sender(&lab, NOISE), sender(&lab, PORT));
        let (done, (begun, begin)) = (AtomicBool::new(false), mpsc::channel());
        let capture = thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _ = noise.send(b"of no interest"); // refused if the port is closed
                    let _ = begun.send(());
                }
            });
            begin.recv().unwrap();
            let capture = open(&lab, config(stamp), &clock);
            done.store(true, Ordering::Relaxed);
            capture
        });
        wanted.send(b"wanted").unwrap();
        let (ledger, kept) = drain(capture, &clock);
        assert_eq!((ledger.seen, ledger.delivered), (1, 1), "{stamp}: {ledger:?}");
        assert!(kept.0[0].1.ends_with(b"wanted"), "{stamp}");
    }
}

#[test]
fn filter_sees_bytes_beyond_the_snap_length() {
    let Some(lab) = lab() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    for stamp in stamps() {
        for snaplen in [1, 14, 20, 33] {
            let capture = open(&lab, Config { snaplen, ..config(stamp) }, &clock);
            let wanted = sender(&lab, PORT);
            wanted.send(&[7; 100]).unwrap();
            let (ledger, kept) = drain(capture, &clock);
            assert_eq!((ledger.delivered, ledger.lost()), (1, 0), "{stamp} {snaplen}: {ledger:?}");
            assert_eq!(kept.0[0].1.len(), snaplen as usize, "{stamp}");
        }
    }
}

#[test]
fn packets_and_stamps_match_tcpdump() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tcpdump.pcap");
    let mut tcpdump = lab.sink().command("tcpdump");
    tcpdump.args(["-i", TAP_B, "-Z", "root", "--time-stamp-precision=nano", "-c", "30", "-w"]);
    tcpdump.arg(&path).args(["udp", "port", &PORT.to_string()]).stderr(Stdio::piped());
    let mut tcpdump = tcpdump.spawn().unwrap();
    let mut said = std::io::BufReader::new(tcpdump.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut said, &mut line).unwrap(), 0, "no tcpdump");
    }

    let clock = ClockService::start(Counter::select()).unwrap();
    let limit = Limit { packets: Some(30), duration: None };
    let capture = open(&lab, Config { limit, ..config(StampSource::Kernel) }, &clock);
    let socket = lab.source().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    for number in 0..30_u8 {
        socket.send_to(&vec![number; 20 * usize::from(number)], (SINK_V4, PORT)).unwrap();
    }
    let mut kept = KeptPackets::default();
    let (ledger, outcome) = capture.run(&clock, &Stop::new().unwrap(), &mut kept);
    outcome.unwrap();
    assert_eq!((ledger.delivered, ledger.lost()), (30, 0), "{ledger:?}");
    assert!(tcpdump.wait().unwrap().success());

    let mut reader = Reader::open(&path).unwrap();
    for (number, (stamp, bytes)) in kept.0.iter().enumerate() {
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.time.as_nanos(), &packet.bytes[..]), (*stamp, &bytes[..]), "{number}");
    }
}
