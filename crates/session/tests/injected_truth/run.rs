//! The measurement: a sender, the stage, the reference capture, and two captures with one correlator.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_capture::{Capture, Cores, Direction, Method, StampSource, Stop};
use wirestamp_clock::{ClockService, Counter, Domain, Span};
use wirestamp_lab::wire::Wire;
use wirestamp_lab::{Netns, SOURCE_INTERFACE, TAP_A, TAP_B};
use wirestamp_metrics::{Config, Point};
use wirestamp_packet::{LinkType, Packet};
use wirestamp_session::{PairSession, Recording, TapReport};
use wirestamp_stage::{ImpairmentPlan, ReferenceCapture, ReferenceReport, Stage, StageReport};
use wirestamp_traffic::{
    Pattern, Payload, SendMethod, SendOptions, SendReport, Sender, ServiceClock, Stream, StreamPlan,
};

use crate::found::Found;

pub(crate) const PACKETS: u64 = 1_000_000;
const PORT: u16 = 5000;
/// Bursts of 50 packets each millisecond: the sender sleeps in between, so that the stage, the reference capture and
/// the captures can use the two cores of a small machine.
const BURST: u32 = 50;
const INTERVAL: Span = Span::from_millis(1);
const FRAME_BYTES: u16 = 100;
/// Max packets in transit to the stage. On a busy machine the sender waits for the stage: its socket is not overrun,
/// and the delays are the planned ones, not those of the machine.
const AHEAD: u64 = 1_000;
/// Correlation timeout. On a busy machine the stage may send late.
const TIMEOUT: Span = Span::from_secs(10);
/// Max time without progress before the test counts as failed.
const FAILED_AFTER: Duration = Duration::from_secs(30);

/// Records of all participants.
pub(crate) struct Run {
    sent: SendReport,
    pub(crate) stage: StageReport,
    pub(crate) reference: ReferenceReport,
    taps: [TapReport; 2],
    pub(crate) found: Found,
}

/// Runs a function at the end of a block, also after a panic: threads that are not stopped
/// would make the test hang rather than fail.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// Sends a million packets to `destination` through a stage with that plan, and measures.
pub(crate) fn run(destination: IpAddr, plan: ImpairmentPlan) -> Run {
    let clock = ClockService::start(Counter::select()).unwrap();
    let wire = Wire::new().unwrap();
    let (stage, reference_capture) =
        (Stage::open(&wire, plan).unwrap(), ReferenceCapture::open(&wire).unwrap());
    let mut cores = Cores::choose(2).into_iter();
    let mut open = |netns, tap| capture(&clock, netns, tap, cores.next());
    let (a, b) = (open(&wire.wire, TAP_A), open(&wire.sink, TAP_B));
    let sender = sender(&wire, destination);

    let mut found = Found::default();
    let config = Config { timeout: TIMEOUT, ..Config::default() };
    let session = PairSession::new(config, |outcome| found.record(&outcome));
    let stop = Stop::new().unwrap();
    let capture_point = |point, capture| {
        let recording = Recording::new(&clock, Domain::Realtime, None);
        session.capture(point, capture, recording, &stop).unwrap()
    };
    let ((sent, stage, reference), taps) = thread::scope(|scope| {
        let taps = [
            scope.spawn(|| capture_point(Point::A, a)),
            scope.spawn(|| capture_point(Point::B, b)),
        ];
        let traffic = {
            let _end = AtEnd(|| stop.request());
            traffic(&clock, sender, stage, reference_capture)
        };
        (traffic, taps.map(|tap| tap.join().unwrap()))
    });
    session.finish();
    Run { sent, stage, reference, taps, found }
}

/// Sends all packets. Returns when the last one has arrived behind the stage.
fn traffic(
    clock: &ClockService,
    sender: Sender,
    stage: Stage,
    reference_capture: ReferenceCapture,
) -> (SendReport, StageReport, ReferenceReport) {
    let (ended, all_out) = (AtomicBool::new(false), AtomicBool::new(false));
    let (arrived, seen) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let watching = scope.spawn(|| reference_capture.run(&number_of, &all_out, &seen).unwrap());
        let all_out = AtEnd(|| all_out.store(true, Ordering::Release));
        let passing = scope.spawn(|| stage.run(&number_of, &ended, &arrived).unwrap());
        let sent = {
            let _end = AtEnd(|| ended.store(true, Ordering::Release));
            let sent = scope.spawn(|| send(clock, sender, &arrived)).join().unwrap();
            await_count(&arrived, sent.sent());
            sent
        };
        let stage = passing.join().unwrap();
        let went_on = stage.packets.iter().flat_map(|packet| packet.sent).flatten();
        await_count(&seen, went_on.count() as u64);
        drop(all_out);
        (sent, stage, watching.join().unwrap())
    })
}

/// A capture with the kernel's stamps, as in `wirestamp delay`.
fn capture(clock: &ClockService, netns: &Netns, tap: &str, cores: Option<Cores>) -> Capture {
    let config = wirestamp_capture::Config {
        filter: Some(format!("udp port {PORT}")),
        direction: Direction::In,
        lanes: vec![cores.unwrap_or_default()],
        ..wirestamp_capture::Config::new(tap, Method::Ring, StampSource::Kernel)
    };
    netns.run(|| Capture::open(config, clock).unwrap()).unwrap()
}

fn sender(wire: &Wire, destination: IpAddr) -> Sender {
    let pattern = Pattern::new("bursts", FRAME_BYTES, INTERVAL).unwrap();
    let pattern = pattern.with_burst(BURST, Span::ZERO).unwrap();
    let plan = StreamPlan { pattern, start: Span::ZERO, packets: PACKETS };
    let stream = Stream {
        interface: Some(SOURCE_INTERFACE.into()),
        ..Stream::new(1, plan, (destination, PORT).into())
    };
    let transmission = SendOptions { method: SendMethod::Packet, ..SendOptions::default() };
    wire.source.run(|| Sender::open_with(vec![stream], &transmission).unwrap()).unwrap()
}

fn number_of(frame: &[u8]) -> Option<u64> {
    let packet = Packet::parse(LinkType::Ethernet, frame).ok()?;
    Payload::decode(packet.payload()).map(|payload| payload.sequence)
}

/// Sends all packets, at most [`AHEAD`] packets ahead of the stage.
fn send(clock: &ClockService, sender: Sender, arrived: &AtomicU64) -> SendReport {
    sender.run(&mut ServiceClock::new(clock), &AtomicBool::new(false), |sent| {
        await_count(arrived, sent.sequence.saturating_sub(AHEAD));
    })
}

/// Waits until `counter` reaches `count`, or does not change for too long. Each component's own counts
/// then report the missing packets.
fn await_count(counter: &AtomicU64, count: u64) {
    let (mut before, mut since) = (0, Instant::now());
    loop {
        let now = counter.load(Ordering::Acquire);
        if now >= count || (now == before && since.elapsed() > FAILED_AFTER) {
            return;
        }
        if now != before {
            (before, since) = (now, Instant::now());
        }
        thread::park_timeout(Duration::from_millis(1));
    }
}

impl Run {
    /// Asserts that no component was overrun. Such losses are faults of this machine, not of the correlator, and must
    /// not count as truth.
    pub(crate) fn assert_no_capture_missed_packets(&self) {
        assert_eq!(self.sent.sent(), PACKETS, "{:?}", self.sent);
        let StageReport { missed, unstamped, .. } = self.stage;
        assert_eq!((missed, unstamped), (0, 0), "the stage was overrun");
        let ReferenceReport { missed, unstamped, .. } = self.reference;
        assert_eq!((missed, unstamped), (0, 0), "the reference capture lost packets");
        for tap in &self.taps {
            let ledger = &tap.ledger;
            assert!(tap.balanced, "{ledger:?}");
            let missed = (ledger.lost(), ledger.interface_dropped, ledger.stamped_late);
            assert_eq!(
                missed,
                (0, 0, 0),
                "capture at {} was overrun: {ledger:?}",
                tap.facts.interface
            );
            assert_eq!((tap.unidentified, tap.figures.clock_steps), (0, 0));
        }
    }
}
