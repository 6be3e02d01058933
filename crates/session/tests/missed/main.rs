//! The count of network losses is exact, even if our own captures drop packets.

mod bed;

use std::path::Path;
use std::thread;

use bed::{Bed, Gate, STREAMS, number};
use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{Method, StampSource, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_metrics::flow::{FlowConfig, FlowReport, RtpReport};
use wirestamp_metrics::{Config, Counts, Outcome, Point, Quality};
use wirestamp_session::flows::{self, Flows};
use wirestamp_session::{PairSession, Recording, TapReport, Terms, compare};

const SMALL: usize = 64 << 10;
const LARGE: usize = 64 << 20;
/// With this memory, a capture reads enough of each burst to recognise RTP.
const MEDIUM: usize = 512 << 10;

/// Number of bursts, and packets in each: more than the smallest ring or queue of any method holds.
const BURSTS: (usize, usize) = (3, 8000);

/// Results, live and from the files.
struct Measured {
    live: Counts,
    files: Counts,
    taps: [TapReport; 2],
    undated: [u64; 2],
    /// Packets that the kernel dropped at each point before the capture. They count as network loss.
    strays: [u64; 2],
    /// Which of the numbered packets were captured at each point.
    seen: [Vec<bool>; 2],
    /// Which of them the network lost.
    lost: Vec<bool>,
    /// The RTP streams at B: as in the file of its capture, and as they are without capture drops. The followers of
    /// the bursts are the first stream.
    streams: [Vec<FlowReport>; 2],
}

impl Measured {
    /// Number of packets for which `such(captured at A, captured at B, lost by the network)` is true.
    fn count(&self, such: impl Fn(bool, bool, bool) -> bool) -> u64 {
        let [a, b] = &self.seen;
        let packets = a.iter().zip(b).zip(&self.lost);
        packets.filter(|((a, b), lost)| such(**a, **b, **lost)).count() as u64
    }
}

/// Measures between two captures, one or both of which have too little memory. The network loses one
/// packet in `losses` of the bursts and of the packets after them.
fn measure(
    pair: (Method, StampSource),
    memory: [usize; 2],
    losses: [usize; 2],
) -> Option<Measured> {
    let mut bed = Bed::new()?;
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let (stop, gate) = (Stop::new().unwrap(), Gate::default());
    let mut quality = Quality::default();
    let session = PairSession::new(Config::default(), |outcome: Outcome| {
        gate.pass(&outcome);
        quality.record(&outcome);
    });
    let points = [(Point::A, memory[0]), (Point::B, memory[1])];
    let clock = ClockService::start(Counter::select()).unwrap();
    let captures = points.map(|(point, bytes)| bed.open(point, pair, bytes, &clock));
    let taps = thread::scope(|scope| {
        let (session, stop, clock) = (&session, &stop, &clock);
        let mut ends = [Point::A, Point::B].into_iter().zip(&paths);
        let taps = captures.map(|capture| {
            let (point, path) = ends.next().unwrap();
            scope.spawn(move || {
                let provenance = Provenance::of(capture.facts(), 0);
                let writer = Writer::create(path, capture.facts(), provenance).unwrap();
                let recording = Recording::new(clock, pair.1.domain(), Some(writer));
                session.capture(point, capture, recording, stop).unwrap()
            })
        });
        bed.overload(&gate, BURSTS, losses);
        stop.request();
        taps.map(|tap| tap.join().unwrap())
    });
    session.finish();
    let [a, b] = &paths;
    let (files, undated) = by_files(a, b);
    let seen = [a, b].map(|path| captured(path, bed.lost.len()));
    let at_b = flows::of_file(Reader::open(b).unwrap(), FlowConfig::default(), &Default::default());
    let without_drops = &mut without_drops(a, &bed.lost);
    let streams = [streams(&mut at_b.unwrap().flows), streams(without_drops)];
    let strays = bed.dropped_by_kernel();
    let (live, lost) = (*quality.counts(), bed.lost);
    Some(Measured { live, files, taps, undated, strays, seen, lost, streams })
}

/// Packets captured at A and not lost by the network.
fn without_drops(a: &Path, lost: &[bool]) -> Flows {
    let mut flows = Flows::new(FlowConfig::default());
    let mut reader = Reader::open(a).unwrap();
    while let Some(packet) = reader.next_packet().unwrap() {
        if number(&packet.bytes).is_none_or(|number| !lost[number]) {
            flows.observe(packet.link, &packet.bytes, packet.length, packet.time);
        }
    }
    flows
}

fn streams(flows: &mut Flows) -> Vec<FlowReport> {
    let mut streams: Vec<_> = flows.monitor.flows().filter(|flow| flow.rtp.is_some()).collect();
    streams.sort_by_key(|stream| stream.dport);
    streams
}

fn by_files(a: &Path, b: &Path) -> (Counts, [u64; 2]) {
    let mut quality = Quality::default();
    let [a, b] = [a, b].map(|path| Reader::open(path).unwrap());
    let record = &mut |outcome, _| quality.record(&outcome);
    let found = compare(a, b, &Terms::default(), record).unwrap();
    (*quality.counts(), found.undated)
}

fn captured(path: &Path, packets: usize) -> Vec<bool> {
    let mut captured = vec![false; packets];
    let mut reader = Reader::open(path).unwrap();
    while let Some(packet) = reader.next_packet().unwrap() {
        if let Some(number) = number(&packet.bytes) {
            captured[number] = true;
        }
    }
    captured
}

/// Every capture method, with separate threads and with one thread for all stages.
const PAIRS: [(Method, StampSource); 9] = [
    (Method::Ring, StampSource::Kernel),
    (Method::Ring, StampSource::Raw),
    (Method::Recvmsg, StampSource::Kernel),
    (Method::Recvmmsg, StampSource::Kernel),
    (Method::LibPcap, StampSource::Kernel),
    (Method::Xdp, StampSource::Xdp),
    (Method::XdpPass, StampSource::Xdp),
    (Method::TcPass, StampSource::Tc),
    (Method::TracePass, StampSource::Trace),
];

fn check(memory: [usize; 2], loss: usize) {
    for pair in PAIRS {
        let Some(measured) = measure(pair, memory, [loss, 0]) else { return };
        let dropped = measured.taps.each_ref().map(|tap| tap.ledger.lost());
        let strays = measured.strays;
        let name = format!(
            "{} {}, memory {memory:?}, dropped {dropped:?}, by the kernel {strays:?}",
            pair.0, pair.1
        );
        for (memory, dropped) in memory.into_iter().zip(dropped) {
            assert_eq!(memory == SMALL, dropped > 0, "{name}");
        }
        assert_eq!(measured.undated, [0, 0], "{name}");
        let lost = measured.count(|a, _, lost| a && lost);
        let only_a = measured.count(|a, b, lost| a && !b && !lost);
        let only_b = measured.count(|a, b, _| !a && b);
        assert!(loss == 0 || lost > 0, "{name}");
        for counts in [measured.live, measured.files] {
            assert_eq!((counts.lost, counts.unexpected), (lost, 0), "{name}: {counts:?}");
            // The packets that follow a burst may be missed too.
            assert!(counts.undetermined_sent >= only_a, "{name}: {counts:?}");
            assert!(counts.undetermined_received >= only_b, "{name}: {counts:?}");
            assert_eq!((counts.duplicated, counts.identical), (0, 0), "{name}: {counts:?}");
        }
        assert_eq!(measured.live, measured.files, "{name}");
    }
}

#[test]
fn drops_at_b_are_no_losses() {
    check([LARGE, SMALL], 0);
}

#[test]
fn drops_at_b_leave_the_networks_losses_exact() {
    check([LARGE, SMALL], 50);
}

/// Packets of all streams that the network lost, and that the capture lost.
fn losses(streams: &[FlowReport]) -> (u64, u64) {
    let by_network = streams.iter().map(|stream| stream.lost.unwrap());
    let by_capture = streams.iter().map(|stream| stream.rtp.as_ref().unwrap().capture_lost);
    (by_network.sum(), by_capture.sum())
}

fn rtp(stream: &FlowReport) -> &RtpReport {
    stream.rtp.as_ref().unwrap()
}

/// Asserts that the total network loss equals the loss without drops, and that the true values of each stream are
/// within its stated bounds. Returns the number of streams whose MOS bounds are less than 0.05 apart.
fn check_streams(measured: &Measured, name: &str) -> usize {
    let [found, truth] = &measured.streams;
    assert_eq!((found.len(), truth.len()), (1 + STREAMS as usize, 1 + STREAMS as usize), "{name}");
    let lost_by_network = losses(truth).0;
    let missed = measured.taps[1].ledger.lost();
    assert_eq!(losses(found), (lost_by_network, missed), "{name}");
    let mut known = 0;
    for (found, truth) in found.iter().zip(truth) {
        let off = found.lost.unwrap().abs_diff(truth.lost.unwrap());
        let undecided = rtp(found).lost_uncertainty;
        assert!(off <= undecided, "{name}: {off}, and {undecided} undecided");
        let truth = rtp(truth).mos.unwrap();
        let [lowest, mos, highest] =
            [rtp(found).mos_lowest, rtp(found).mos, rtp(found).mos_highest].map(Option::unwrap);
        let about = format!("{name}: {truth} for {mos} in {lowest} to {highest}");
        assert!(lowest - 1e-9 <= truth && truth <= highest + 1e-9, "{about}");
        if highest - lowest < 0.05 {
            assert!((mos - truth).abs() < 0.05, "{about}");
            known += 1;
        }
    }
    known
}

#[test]
fn drops_are_no_losses_of_rtp_and_do_not_move_its_rating() {
    for pair in PAIRS {
        let Some(measured) = measure(pair, [LARGE, MEDIUM], [0, 0]) else { return };
        let name = format!("{} {}", pair.0, pair.1);
        assert!(measured.count(|_, b, _| !b) > 0, "{name}");
        check_streams(&measured, &name);
        let opinions = measured
            .streams
            .each_ref()
            .map(|streams| -> Vec<_> { streams.iter().map(|stream| rtp(stream).mos).collect() });
        assert_eq!(opinions[0], opinions[1], "{name}");
    }
}

#[test]
fn network_loss_outside_capture_loss_is_reported_by_stream() {
    for pair in PAIRS {
        let Some(measured) = measure(pair, [LARGE, MEDIUM], [0, 10]) else { return };
        let name = format!("{} {}", pair.0, pair.1);
        assert!(losses(&measured.streams[1]).0 > 0 && losses(&measured.streams[0]).1 > 0, "{name}");
        let known = check_streams(&measured, &name);
        assert!(2 * known > measured.streams[0].len(), "{name}: {known}");
    }
}

#[test]
fn network_loss_during_capture_loss_is_reported_with_bounds() {
    for pair in PAIRS {
        let Some(measured) = measure(pair, [LARGE, MEDIUM], [50, 0]) else { return };
        let name = format!("{} {}", pair.0, pair.1);
        check_streams(&measured, &name);
    }
}

#[test]
fn drops_at_a_leave_the_networks_losses_exact() {
    check([SMALL, LARGE], 50);
}
