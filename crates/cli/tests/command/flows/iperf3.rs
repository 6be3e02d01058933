//! `flows` on what a real iperf3 sent over a path with delay, loss, duplicates and reordering: the
//! results must agree with its server's.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::common::{is_root, json, run, tool};
use serde_json::Value;
use wirestamp_clock::Span;
use wirestamp_lab::wire::{SINK_V4, Wire};
use wirestamp_lab::{Netns, TAP_B};
use wirestamp_packet::{LinkType, Packet, iperf3};
use wirestamp_stage::{ImpairmentPlan, Stage};

/// Not iperf3's default port.
const PORT: u16 = 5333;
/// Up to 20 ms of jitter: some hundred times the wake-up latency of the server, which its jitter includes and
/// ours does not.
const PLAN: ImpairmentPlan = ImpairmentPlan {
    seed: 0x1f4,
    delay: Span::from_millis(5),
    jitter: Span::from_millis(20),
    loss: 0.03,
    duplicate: 0.005,
    reorder: 0.0,
    reorder_delay: Span::ZERO,
};
const DATAGRAM_BYTES: u64 = 500;
/// Max difference of the jitters, relative to iperf3's.
const AGREEMENT: f64 = 0.01;
/// Min datagrams of a compared value: fewer are not recognised as iperf3's. On a busy machine, the client may start so
/// late that the server reports fewer, or none, at first.
const COMPARED_FROM: u64 = 50;
/// Max time for a process to start.
const FAILED_AFTER: Duration = Duration::from_secs(20);

/// Identifies a datagram for the stage; the first one of the test passes unchanged.
fn number_of(frame: &[u8]) -> Option<u64> {
    let packet = Packet::parse(LinkType::Ethernet, frame).ok()?;
    let to_server = packet.flow().protocol == 17 && packet.flow().destination.port() == PORT;
    let counter = iperf3::Counter::Bits32;
    to_server.then(|| iperf3::Iperf3::parse(packet.payload(), counter)).flatten().map(|it| it.count)
}

/// Starts iperf3 ahead of all others on this machine, so that no process delays its clock reads.
fn iperf3(netns: &Netns, arguments: &str) -> Child {
    let mut command = netns.command("chrt");
    command.args(["--fifo", "1", "iperf3", "--json", "--port", &PORT.to_string()]);
    command.args(arguments.split(' ')).stdout(Stdio::piped()).spawn().unwrap()
}

/// Final output of iperf3.
fn message(iperf3: Child) -> Value {
    let output = iperf3.wait_with_output().unwrap();
    let message: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{message}");
    message
}

/// Waits until a process listens on the port.
fn await_listener(netns: &Netns) {
    let deadline = Instant::now() + FAILED_AFTER;
    // A local port and the state LISTEN (proc_net_tcp.rst, include/net/tcp_states.h).
    let is_it = |line: &str| line.contains(&format!(":{PORT:04X} ")) && line.contains(" 0A ");
    let sockets = || fs::read_to_string("/proc/thread-self/net/tcp6");
    while !netns.run(sockets).and_then(|read: io::Result<_>| read).unwrap().lines().any(is_it) {
        assert!(Instant::now() < deadline, "iperf3 does not listen");
        thread::yield_now();
    }
}

/// Captures the server's packets until it is interrupted.
fn capture(netns: &Netns, file: &Path) -> Child {
    let mut command = netns.command(env!("CARGO_BIN_EXE_wirestamp"));
    command.args(["capture", "-i", TAP_B, "-Q", "in", "-w"]).arg(file);
    command.args(["udp", "dst", "port", &PORT.to_string()]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let message = BufReader::new(child.stderr.as_mut().unwrap());
    assert!(message.lines().any(|line| line.unwrap().contains("Ctrl-C")), "it does not capture");
    child
}

/// Runs a test and captures it; returns the server's report.
fn tested(file: &Path) -> Value {
    let wire = Wire::new().unwrap();
    let stage = Stage::open(&wire, PLAN).unwrap();
    let mut capture = capture(&wire.sink, file);
    let server = iperf3(&wire.sink, "--server --one-off --interval 0.5");
    await_listener(&wire.sink);
    let (ended, arrived) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = thread::scope(|scope| {
        let passing = scope.spawn(|| stage.run(&number_of, &ended, &arrived));
        let client =
            format!("--client {SINK_V4} --udp --bitrate 4M --time 6 --length {DATAGRAM_BYTES}");
        message(iperf3(&wire.source, &client));
        let report = message(server);
        ended.store(true, Ordering::Release);
        let account = passing.join().unwrap().unwrap();
        assert_eq!((account.missed, account.unstamped), (0, 0));
        report
    });
    tool("kill", &["-INT", &capture.id().to_string()]);
    assert!(capture.wait().unwrap().success());
    report
}

/// Number of datagrams in a summary of the server.
fn received(summary: &Value) -> u64 {
    summary["bytes"].as_u64().unwrap() / DATAGRAM_BYTES
}

/// The flow up to the first `datagrams` datagrams after the one that opens the test.
fn flow(file: &Path, datagrams: u64) -> Value {
    let count = (datagrams + 1).to_string();
    let found = json(&["flows", file.to_str().unwrap(), "--json", "--count", &count]);
    // A classic capture does not say it.
    assert_eq!(found["capture_dropped"], Value::Null);
    found["flows"][0].clone()
}

/// Relative difference of our jitter from the server's, at the last datagram before each of its reports. If the
/// server reads one datagram a millisecond late, the next dozens differ by 1 %, so the test checks the
/// median.
fn jitter_off(report: &Value, file: &Path) -> Vec<f64> {
    let mut until = 0;
    let intervals = report["intervals"].as_array().unwrap().iter();
    let off = intervals.filter_map(|interval| {
        until += received(&interval["sum"]);
        if until < COMPARED_FROM {
            return None;
        }
        let ours = flow(file, until)["iperf3"]["jitter_ms"].as_f64().unwrap();
        let theirs = interval["sum"]["jitter_ms"].as_f64().unwrap();
        Some((ours - theirs).abs() / theirs)
    });
    off.collect()
}

#[test]
fn iperf3_values_agree_with_its_server() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.pcapng");
    let report = tested(&file);
    let theirs = &report["end"]["sum_received"];
    // The end message overtakes the last datagrams, and the server does not count datagrams after it.
    let ours = flow(&file, received(theirs));
    let (flow, ours) = (&ours, &ours["iperf3"]);
    assert!(ours["lost"].as_u64() > Some(50) && ours["out_of_order"].as_u64() > Some(1000));
    assert_eq!((&ours["sent"], &ours["lost"]), (&theirs["packets"], &theirs["lost_packets"]));
    assert_eq!(ours["out_of_order"], report["end"]["streams"][0]["udp"]["out_of_order"]);
    // For iperf3, each duplicate hides one loss, unless no packet is missing when it arrives: few duplicates, but more
    // on a busy machine.
    let [lost, copies, hidden] =
        [&flow["lost"], &flow["duplicated"], &ours["lost"]].map(|it| it.as_u64().unwrap());
    assert!(copies > 10, "{copies} duplicates");
    let expected = hidden + copies / 2..=hidden + copies;
    assert!(expected.contains(&lost), "{lost} {copies} {hidden}");

    let mut off = jitter_off(&report, &file);
    eprintln!("jitter off by {off:.5?} of iperf3's at each of its reports");
    off.sort_by(f64::total_cmp);
    assert!(off.len() >= 10 && off[off.len() / 2] <= AGREEMENT, "{off:?}");

    let csv = folder.path().join("flows.csv");
    let output = run(&["flows", file.to_str().unwrap(), "--csv", csv.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.lines().any(|line| line.contains("5333 udp") && line.contains("iperf3")),
        "{text}"
    );
    let csv = fs::read_to_string(csv).unwrap();
    assert!(csv.lines().next().unwrap().contains("iperf3_sent,iperf3_lost,iperf3_out_of_order"));
}
