//! The interface is overloaded: what it drops stands in the ledger of whoever captures there.

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

use crate::{FAILED_AFTER, PORT, RUNNING, frames, lab, outgoing, tool};

/// Frames of one run: some milliseconds of it.
const RUN: u64 = 20_000;

/// A frame may be lost, and is not waited for longer.
const LOST_AFTER: Duration = Duration::from_millis(100);

/// Tells the number of each frame.
struct Telling(Sender<u64>);

impl Sink for Telling {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        let _ = self.0.send(Payload::decode(&packet.bytes[42..]).unwrap().sequence);
        Ok(())
    }
}

/// Sends to tap A, but to nobody's address, so that nothing is forwarded.
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

    /// Sends until frames were dropped, which a veth does when 256 of them wait
    /// (`VETH_RING_SIZE`) and a core when 16,384 do, and then one by one until one has come through behind all others.
    fn overload(&mut self, told: Receiver<u64>) {
        let deadline = Instant::now() + FAILED_AFTER;
        while self.dropped == 0 {
            assert!(Instant::now() < deadline, "of {} frames none was dropped", self.sent);
            self.send(RUN);
        }
        loop {
            assert!(Instant::now() < deadline, "nothing comes through any more");
            self.send(1);
            while let Ok(number) = told.recv_timeout(LOST_AFTER) {
                if number + 1 == self.sent {
                    return;
                }
            }
        }
    }
}

/// Has a thread of the kernel's poll tap A. Otherwise the sender's core would do it after each batch
/// of 64 frames, and never leave more than it has room for. The files of a namespace's interfaces
/// are in a sysfs of its own.
fn poll_from_a_thread(lab: &PathLab) {
    let script = "mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/tap-a/threaded";
    let mut command = lab.router().command("unshare");
    assert!(command.args(["-m", "sh", "-c", script]).status().unwrap().success());
}

/// Captures at tap A what passes an interface that way until some of it has been dropped.
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
    let (tell, told) = mpsc::channel();
    let (clock, stop) = (&clock, &stop);
    thread::scope(|scope| {
        let capturing = scope.spawn(|| capture.run(clock, stop, &mut Telling(tell)));
        let flood = move || {
            let mut flood = Flood::new(clock, interface, direction);
            flood.overload(told);
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
fn what_an_overloaded_interface_drops_is_in_the_ledger_whatever_the_method() {
    let Some(lab) = lab() else { return };
    tool(lab.router(), "ethtool -K tap-a gro on");
    poll_from_a_thread(&lab);
    for pair in PAIRS.iter().filter(|pair| works_without_card(pair)) {
        let way = (lab.source(), SOURCE_INTERFACE, Direction::Transmit);
        let (sent, dropped, ledger) = overload(&lab, pair, way);
        let name =
            format!("{} {}: {sent} sent, {dropped} dropped; {ledger:?}", pair.method, pair.stamp);
        assert!(ledger.balances(), "{name}");
        // A veth counts what AF_XDP has no room for, as the ledger does already.
        let twice = if pair.method == Method::Xdp { ledger.fill_ring_empty } else { 0 };
        assert_eq!(ledger.interface_dropped, dropped + twice, "{name}");
        assert_eq!(sent, dropped + ledger.delivered + ledger.lost(), "{name}");
    }
}

#[test]
fn what_a_core_has_no_room_for_is_counted_as_dropped() {
    let Some(lab) = lab() else { return };
    let core = u32::try_from(thread::available_parallelism().unwrap().get() - 1).unwrap();
    let way = (lab.router(), TAP_A, Direction::ReceiveOn(core));
    let pair = PAIRS.iter().find(|pair| pair.method == Method::Ring).unwrap();
    let (sent, dropped, ledger) = overload(&lab, pair, way);
    let name = format!("{sent} sent, {dropped} dropped; {ledger:?}");
    assert_eq!(
        (sent, ledger.interface_dropped),
        (dropped + ledger.delivered + ledger.lost(), 0),
        "{name}"
    );
}
