//! The stages after the acquisition are not woken for each packet, and deliver a single packet without a second one.

use std::fs;
use std::hint;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Limit, Method, Sink, StampSource, Stop, Wait,
};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::Netns;

const PORT: u16 = 5000;

fn loopback() -> Option<Netns> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    let namespace = Netns::new().unwrap();
    let up = namespace.command("ip").args(["link", "set", "lo", "up"]).status().unwrap();
    assert!(up.success());
    Some(namespace)
}

/// How often the thread `name` of this process has slept: the voluntary context switches of proc_pid_status(5).
fn sleeps(name: &str) -> Option<u64> {
    fs::read_dir("/proc/self/task").unwrap().find_map(|task| {
        let task = task.unwrap().path();
        let named = fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name);
        let status = fs::read_to_string(task.join("status")).ok().filter(|_| named)?;
        let count =
            status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse().ok()
    })
}

/// Reads how often a thread has slept at the first packet and at the last.
struct SleepCounter {
    thread: &'static str,
    packets: u64,
    last: u64,
    sleeps: Vec<u64>,
}

impl Sink for SleepCounter {
    fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
        self.packets += 1;
        if self.packets == 1 || self.packets == self.last {
            self.sleeps.extend(sleeps(self.thread));
        }
        Ok(())
    }
}

#[test]
fn converter_and_consumer_sleep_less_often_than_packets_arrive() {
    const PACKETS: u64 = 4000;
    /// Longer than a wake-up takes, so that a stage that is woken for each packet sleeps before the next one.
    const INTERVAL: Duration = Duration::from_micros(100);
    let Some(namespace) = loopback() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    for thread in ["ws-convert", "consumer"] {
        let config = Config {
            filter: Some(format!("udp port {PORT}")),
            limit: Limit { packets: Some(PACKETS), duration: None },
            ..Config::new("lo", Method::Ring, StampSource::Raw)
        };
        let capture = namespace.run(|| Capture::open(config, &clock)).unwrap().unwrap();
        let socket = namespace.run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
        let stop = Stop::new().unwrap();
        let mut counter = SleepCounter { thread, packets: 0, last: PACKETS, sleeps: Vec::new() };
        thread::scope(|scope| {
            let run = || capture.run(&clock, &stop, &mut counter);
            let capturing =
                thread::Builder::new().name("consumer".into()).spawn_scoped(scope, run).unwrap();
            while !capturing.is_finished() {
                // Refused, because the port is closed.
                let _ = socket.send_to(&[0; 100], (Ipv4Addr::LOCALHOST, PORT));
                let next = Instant::now() + INTERVAL;
                while Instant::now() < next {
                    hint::spin_loop();
                }
            }
            let (ledger, outcome) = capturing.join().unwrap();
            outcome.unwrap();
            assert_eq!(ledger.delivered, PACKETS);
        });
        let [first, last] = *counter.sleeps else { panic!("no thread {thread}") };
        assert!((last - first) * 10 < PACKETS, "{thread} slept {} times", last - first);
    }
}

/// Signals each packet.
struct Signal(Sender<()>);

impl Sink for Signal {
    fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
        self.0.send(()).unwrap();
        Ok(())
    }
}

/// Each packet is sent only after the one before was delivered, so that every stage is idle, or polls an empty
/// queue: a lost wake-up would hang the test.
#[test]
fn single_packets_are_delivered() {
    let Some(namespace) = loopback() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    for method in [Method::Ring, Method::Recvmsg, Method::Recvmmsg, Method::LibPcap] {
        for wait in [Wait::Block { realtime: false }, Wait::Spin] {
            let config = Config {
                filter: Some(format!("udp port {PORT}")),
                wait,
                ..Config::new("lo", method, StampSource::Raw)
            };
            let capture = namespace.run(|| Capture::open(config, &clock)).unwrap().unwrap();
            let socket = namespace.run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
            let stop = Stop::new().unwrap();
            let (delivered, packets) = mpsc::channel();
            thread::scope(|scope| {
                let mut sink = Signal(delivered);
                let (clock, stop) = (&clock, &stop);
                let capturing = scope.spawn(move || capture.run(clock, stop, &mut sink));
                for number in 0..60 {
                    let _ = socket.send_to(&[0; 100], (Ipv4Addr::LOCALHOST, PORT));
                    let packet = packets.recv_timeout(Duration::from_secs(60));
                    assert!(packet.is_ok(), "{method} {wait:?}: packet {number}");
                }
                stop.request();
                capturing.join().unwrap().1.unwrap();
            });
        }
    }
}
