//! Overloaded interfaces: the capture's ledger counts the interface's drops.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_capture::capabilities::works_without_card;
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Ledger, Method, PAIRS, Pair, Sink, Stop,
};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{Netns, PathLab, SOURCE_INTERFACE, TAP_A};
use wirestamp_traffic::live::{Direction, Endpoint, LiveFrames, Pace, Template};
use wirestamp_traffic::{MacAddress, Payload, ServiceClock};

use crate::{PORT, RUNNING, TEST_TIMEOUT, frames, lab, outgoing, tool};

/// Frames of one run: a few milliseconds.
const RUN: u64 = 20_000;

/// Max wait for a frame, which may be lost.
const LOST_AFTER: Duration = Duration::from_millis(100);

/// Sends the sequence number of each frame to a channel.
struct SequenceSink(Sender<u64>);

impl Sink for SequenceSink {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        let _ = self.0.send(Payload::decode(&packet.bytes[42..]).unwrap().sequence);
        Ok(())
    }
}

/// Sends to tap A, with an unused destination address, so that no frame is forwarded.
struct Flood<'a> {
    live: LiveFrames,
    clock: &'a ClockService,
    sent: u64,
    dropped: u64,
}

impl<'a> Flood<'a> {
    fn new(clock: &'a ClockService, interface: &str, direction: Direction) -> Self {
        let template = outgoing(60);
        let destination =
            Endpoint { mac: MacAddress([2, 0, 0, 0, 0, 0x99]), ..template.destination };
        let template = Template { destination, ..template };
        let live = LiveFrames::open(interface, template, direction).unwrap();
        Self { live, clock, sent: 0, dropped: 0 }
    }

    fn send(&mut self, count: u64) {
        let (clock, pace) = (ServiceClock::new(self.clock), Pace::full_speed());
        let report = self.live.run(&clock, pace, frames(count), &RUNNING).unwrap();
        self.sent += report.sent;
        self.dropped += report.dropped;
    }

    /// Sends until frames are dropped: a veth's queue holds 256 frames (`VETH_RING_SIZE`), a core's
    /// 16,384. Then sends single frames until one has arrived after all others.
    fn overload(&mut self, arrivals: Receiver<u64>) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while self.dropped == 0 {
            assert!(Instant::now() < deadline, "of {} frames none was dropped", self.sent);
            self.send(RUN);
        }
        loop {
            assert!(Instant::now() < deadline, "no frame arrives any more");
            self.send(1);
            while let Ok(number) = arrivals.recv_timeout(LOST_AFTER) {
                if number + 1 == self.sent {
                    return;
                }
            }
        }
    }
}

/// Makes a kernel thread poll tap A. Otherwise the sender's core polls it after each batch of 64
/// frames, and the queue never fills. Each network namespace has its own sysfs.
fn poll_from_a_thread(lab: &PathLab) {
    let script = "mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/tap-a/threaded";
    let mut command = lab.router().command("unshare");
    assert!(command.args(["-m", "sh", "-c", script]).status().unwrap().success());
}

/// Captures at tap A while frames pass `interface` in `direction`, until some are dropped.
fn overload(
    lab: &PathLab,
    pair: &Pair,
    (namespace, interface, direction): (&Netns, &str, Direction),
) -> (u64, u64, Ledger) {
    let clock = ClockService::start(Counter::select()).unwrap();
    let config = Config {
        filter: Some(format!("udp port {PORT}")),
        snaplen: 64,
        ..Config::new(TAP_A, pair.method, pair.stamp)
    };
    let capture = lab.router().run(|| Capture::open(config, &clock)).unwrap().unwrap();
    let stop = Stop::new().unwrap();
    let (numbers, arrivals) = mpsc::channel();
    let (clock, stop) = (&clock, &stop);
    thread::scope(|scope| {
        let capturing = scope.spawn(|| capture.run(clock, stop, &mut SequenceSink(numbers)));
        let flood = move || {
            let mut flood = Flood::new(clock, interface, direction);
            flood.overload(arrivals);
            (flood.sent, flood.dropped)
        };
        let flooding = scope.spawn(|| namespace.run(flood).unwrap());
        let flooded = flooding.join();
        stop.request(); // also if it failed
        let ((sent, dropped), (ledger, outcome)) = (flooded.unwrap(), capturing.join().unwrap());
        outcome.unwrap();
        (sent, dropped, ledger)
    })
}

#[test]
fn every_method_counts_the_interface_drops() {
    let Some(lab) = lab() else { return };
    tool(lab.router(), "ethtool -K tap-a gro on");
    poll_from_a_thread(&lab);
    for pair in PAIRS.iter().filter(|pair| works_without_card(pair)) {
        let target = (lab.source(), SOURCE_INTERFACE, Direction::Transmit);
        let (sent, dropped, ledger) = overload(&lab, pair, target);
        let name =
            format!("{} {}: {sent} sent, {dropped} dropped; {ledger:?}", pair.method, pair.stamp);
        assert!(ledger.balances(), "{name}");
        // A veth also counts frames that AF_XDP has no room for, which the ledger already counts.
        let twice = if pair.method == Method::Xdp { ledger.fill_ring_empty } else { 0 };
        assert_eq!(ledger.interface_dropped, dropped + twice, "{name}");
        assert_eq!(sent, dropped + ledger.delivered + ledger.lost(), "{name}");
    }
}

#[test]
fn frames_beyond_the_cores_queue_are_counted_as_dropped() {
    let Some(lab) = lab() else { return };
    let core = u32::try_from(thread::available_parallelism().unwrap().get() - 1).unwrap();
    let target = (lab.router(), TAP_A, Direction::ReceiveOn(core));
    let pair = PAIRS.iter().find(|pair| pair.method == Method::Ring).unwrap();
    let (sent, dropped, ledger) = overload(&lab, pair, target);
    let name = format!("{sent} sent, {dropped} dropped; {ledger:?}");
    assert_eq!(
        (sent, ledger.interface_dropped),
        (dropped + ledger.delivered + ledger.lost(), 0),
        "{name}"
    );
}
