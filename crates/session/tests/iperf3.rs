//! iperf3 over a path with delay, loss, duplicates and reordering: the results from packets captured at the server
//! must agree with the server's own report.

use std::io::Read;
use std::net::IpAddr;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use serde_json::Value;
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Direction, Error, Method, Sink, StampSource, Stop,
};
use wirestamp_clock::{ClockService, Counter, Span, Time, Utc};
use wirestamp_lab::wire::{SINK_V4, SINK_V6, Wire};
use wirestamp_lab::{Netns, TAP_B, check_privilege};
use wirestamp_metrics::iperf3::Stream;
use wirestamp_packet::iperf3::Counter::{Bits32, Bits64};
use wirestamp_packet::iperf3::{Iperf3, Recogniser};
use wirestamp_packet::{LinkType, Packet};
use wirestamp_stage::{ImpairmentPlan, Stage};

/// Default port of a server (iperf3(1), `--port`).
const DEFAULT_PORT: u16 = 5201;

/// Up to 20 ms of jitter: about a hundred times the wake-up latency of a server until it reads its clock. That latency
/// is part of its jitter, but not of ours.
const PLAN: ImpairmentPlan = ImpairmentPlan {
    seed: 0x1f3,
    delay: Span::from_millis(5),
    jitter: Span::from_millis(20),
    loss: 0.03,
    duplicate: 0.005,
    reorder: 0.0,
    reorder_delay: Span::ZERO,
};
const DATAGRAM_BYTES: u64 = 500;
/// Max difference of the two jitter values, relative to iperf3's.
const AGREEMENT: f64 = 0.01;
/// Timeout for the server to listen.
const FAILED_AFTER: Duration = Duration::from_secs(20);

/// The datagrams of the test that arrived at tap B.
#[derive(Default)]
struct Datagrams(Vec<(Vec<u8>, Time<Utc>)>);

impl Sink for Datagrams {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        if let Some(payload) = test_payload(packet.bytes) {
            self.0.push((payload.to_vec(), packet.stamp.utc));
        }
        Ok(())
    }
}

/// The payload of a datagram to the server, except of the one that opens the test.
fn test_payload(frame: &[u8]) -> Option<&[u8]> {
    let packet = Packet::parse(LinkType::Ethernet, frame).ok()?;
    let flow = packet.flow();
    let is_test = flow.protocol == 17 && flow.destination.port() == DEFAULT_PORT;
    (is_test && packet.payload_length()? > 4).then(|| packet.payload())
}

/// Identifies a datagram for the stage by its count of 32 or 64 bits.
fn number_of(frame: &[u8]) -> Option<u64> {
    let payload = test_payload(frame)?;
    let mut heads =
        [Bits32, Bits64].into_iter().filter_map(|counter| Iperf3::parse(payload, counter));
    heads.next().map(|head| head.count)
}

/// Waits until a process listens on iperf3's port in `netns`.
fn await_listener(netns: &Netns) {
    let deadline = Instant::now() + FAILED_AFTER;
    // A local port and the state LISTEN (proc_net_tcp.rst, include/net/tcp_states.h).
    let is_it =
        |line: &str| line.contains(&format!(":{DEFAULT_PORT:04X} ")) && line.contains(" 0A ");
    let sockets = || fs::read_to_string("/proc/thread-self/net/tcp6");
    while !netns.run(sockets).and_then(|read| read).unwrap().lines().any(is_it) {
        assert!(Instant::now() < deadline, "iperf3 does not listen");
        thread::yield_now();
    }
}

/// Starts iperf3 with real-time priority, because its wake-up latency adds to its jitter.
fn iperf3(netns: &Netns, arguments: &[&str]) -> io::Result<Child> {
    let mut command = netns.command("chrt");
    command.args(["--fifo", "1", "iperf3", "--json"]).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()
}

/// Final report of iperf3.
fn report(mut iperf3: Child) -> io::Result<Value> {
    let mut said = String::new();
    iperf3.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut said))?;
    if !iperf3.wait()?.success() {
        return Err(io::Error::other(said));
    }
    serde_json::from_str(&said).map_err(io::Error::other)
}

/// Runs a test of five seconds from the source to `address`. Returns the server's report.
fn test(wire: &Wire, mut server: Child, address: IpAddr, more: &[&str]) -> io::Result<Value> {
    let (address, length) = (address.to_string(), DATAGRAM_BYTES.to_string());
    let client = ["--client", &address, "--udp", "--bitrate", "4M", "--time", "5"];
    let client = iperf3(&wire.source, &[&client[..], &["--length", &length], more].concat())?;
    if let Err(failed) = report(client) {
        server.kill()?;
        return Err(failed);
    }
    report(server)
}

/// Runs a test to `address`. Returns the server's report, and the datagrams captured there.
fn run(address: IpAddr, more: &[&str]) -> (Value, Datagrams) {
    let clock = ClockService::start(Counter::select()).unwrap();
    let wire = Wire::new().unwrap();
    let stage = Stage::open(&wire, PLAN).unwrap();
    let config = Config {
        direction: Direction::In,
        filter: Some(format!("udp dst port {DEFAULT_PORT}")),
        ..Config::new(TAP_B, Method::Ring, StampSource::Kernel)
    };
    let capture = wire.sink.run(|| Capture::open(config, &clock).unwrap()).unwrap();
    let server = iperf3(&wire.sink, &["--server", "--one-off", "--interval", "0.5"]).unwrap();
    await_listener(&wire.sink);

    let (ended, arrived, stop) = (AtomicBool::new(false), AtomicU64::new(0), Stop::new().unwrap());
    let mut datagrams = Datagrams::default();
    let (report, account, (ledger, outcome)) = thread::scope(|scope| {
        let passing = scope.spawn(|| stage.run(&number_of, &ended, &arrived));
        let capturing = scope.spawn(|| capture.run(&clock, &stop, &mut datagrams));
        let report = test(&wire, server, address, more);
        ended.store(true, Ordering::Release);
        let account = passing.join();
        stop.request();
        (report, account.unwrap().unwrap(), capturing.join().unwrap())
    });
    outcome.unwrap();
    let missed = (account.missed, account.unstamped, ledger.lost(), ledger.stamped_late);
    assert!(ledger.balances() && missed == (0, 0, 0, 0), "{missed:?} {ledger:?}");
    (report.unwrap(), datagrams)
}

/// Metric of the first `received` datagrams.
fn measure(datagrams: &Datagrams, received: u64) -> Stream {
    let mut recogniser = Recogniser::default();
    let counter = datagrams.0.iter().find_map(|(payload, _)| recogniser.record(payload)).unwrap();
    let mut stream = Stream::default();
    for (payload, arrival) in datagrams.0.iter().take(usize::try_from(received).unwrap()) {
        stream.record(&Iperf3::parse(payload, counter).unwrap(), *arrival);
    }
    stream
}

fn agrees(address: IpAddr, more: &[&str]) {
    if check_privilege().is_err() {
        eprintln!("skipped: needs root");
        return;
    }
    let (report, datagrams) = run(address, more);
    let theirs = &report["end"]["sum_received"];
    // The end of a test arrives before its last datagrams, and the server does not count these.
    let ours = measure(&datagrams, received(theirs));
    assert!(ours.lost > 50 && ours.out_of_order > 1000, "{ours:?}");
    assert_eq!(theirs["packets"].as_u64(), Some(ours.packets()));
    assert_eq!(theirs["lost_packets"].as_u64(), Some(ours.lost));
    let late = &report["end"]["streams"][0]["udp"]["out_of_order"];
    assert_eq!(late.as_u64(), Some(ours.out_of_order));

    let mut off = jitter_off(&report, &datagrams);
    eprintln!("{address}: jitter off by {off:.5?} of iperf3's at each of its reports");
    off.sort_by(f64::total_cmp);
    assert!(off.len() >= 10 && off[off.len() / 2] <= AGREEMENT, "{off:?}");
}

/// Number of datagrams in a summary of the server.
fn received(summary: &Value) -> u64 {
    summary["bytes"].as_u64().unwrap() / DATAGRAM_BYTES
}

/// Relative difference between our jitter and the server's, at the last datagram before each of its reports. If the
/// server reads one datagram a millisecond late, its jitter differs by 1 % for some dozens of later datagrams. So no
/// single report is conclusive.
fn jitter_off(report: &Value, datagrams: &Datagrams) -> Vec<f64> {
    let mut until = 0;
    let reports = report["intervals"].as_array().unwrap().iter().map(|interval| &interval["sum"]);
    let off = reports.map(|theirs| {
        until += received(theirs);
        let ours = measure(datagrams, until).jitter.nanos / 1e6;
        let theirs = theirs["jitter_ms"].as_f64().unwrap();
        (ours - theirs).abs() / theirs
    });
    off.collect()
}

#[test]
fn jitter_and_loss_over_ipv4_are_what_iperf3_reports() {
    agrees(SINK_V4.into(), &[]);
}

#[test]
fn jitter_and_loss_over_ipv6_with_wide_counts_are_what_iperf3_reports() {
    agrees(SINK_V6.into(), &["--udp-counters-64bit"]);
}
