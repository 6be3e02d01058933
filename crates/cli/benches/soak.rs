//! Checks that a long capture has constant memory and accounts for every packet.
//!
//! `cargo bench -p wirestamp --bench soak -- [--seconds 600] [--rate 200000]`
//!
//! `wirestamp capture` writes what arrives at one end of a cable to a set of three files of 200 MB
//! in the temporary folder (`TMPDIR`); the kernel makes frames of 60 bytes without a receiver at the other
//! end. The process's resident memory (`VmRSS` of proc_pid_status(5)) is printed every five
//! seconds, as CSV. Fails if the rate is not reached, memory grows after the first minute, or the
//! packet ledger does not balance. Needs root.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_lab::Netns;
use wirestamp_traffic::live::{Direction, Limit, LiveFrames, LiveReport, Pace, Template, outgoing};
use wirestamp_traffic::{MacAddress, ServiceClock};

/// Interval of memory readings.
const PERIOD: Duration = Duration::from_secs(5);
/// Warm-up time, after which memory must stay constant; half of a run if that is shorter.
const WARM_UP: Duration = Duration::from_secs(60);
/// Tolerated growth: in KiB, or as a fraction, whichever is more.
const MARGIN_KIB: u64 = 1024;
const MARGIN_FRACTION: u64 = 50;

const UNUSED_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x99]);
const PORT: u16 = 5004;
const FRAME_BYTES: u16 = 60;

struct Arguments {
    duration: Duration,
    rate: u64,
}

fn arguments() -> anyhow::Result<Arguments> {
    let mut parsed = Arguments { duration: Duration::from_secs(600), rate: 200_000 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let number = arguments.next().and_then(|text| text.parse::<u64>().ok());
            number.filter(|&number| number > 0).with_context(|| format!("{argument} N, above 0"))
        };
        match argument.as_str() {
            "--seconds" => parsed.duration = Duration::from_secs(number()?),
            "--rate" => parsed.rate = number()?,
            // cargo bench passes this to every benchmark.
            "--bench" => {}
            other => bail!("{other} is not known; there are --seconds N and --rate N"),
        }
    }
    Ok(parsed)
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = arguments()?;
    let cable = cable()?;
    let folder = tempfile::tempdir()?;
    let mut capture = start(&cable, folder.path())?;
    let stop = AtomicBool::new(false);
    let (report, memory) = thread::scope(|scope| {
        let sending = scope.spawn(|| cable.run(|| send(&arguments, &stop))?);
        let memory = watch(&capture, || sending.is_finished());
        stop.store(true, Ordering::Relaxed); // if the capture has not lasted
        let report = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        anyhow::Ok((report?, memory?))
    })
    .inspect_err(|_| drop(capture.kill()))?;
    let summary = finish(capture)?;
    let good = [
        rate_was_reached(&report, &arguments),
        sent_is_accounted(&report, &summary)?,
        memory_is_flat(&memory, arguments.duration),
    ];
    Ok(if good == [true; 3] { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Two ends of a cable, `near` and `far`, in a namespace.
fn cable() -> anyhow::Result<Netns> {
    let namespace = Netns::new()?;
    let silent = "arp off multicast off addrgenmode none up";
    for line in [
        "ip link add near type veth peer name far",
        &format!("ip link set near {silent}"),
        &format!("ip link set far {silent}"),
        // Otherwise the driver takes no frames from XDP programs.
        "ethtool -K far gro on",
    ] {
        let mut words = line.split(' ');
        let program = words.next().unwrap_or_default();
        let status = namespace.command(program).args(words).status()?;
        ensure!(status.success(), "{line}: {status}");
    }
    Ok(namespace)
}

/// Starts the capture, and waits until it listens.
fn start(cable: &Netns, folder: &Path) -> anyhow::Result<Child> {
    let mut command = cable.command(env!("CARGO_BIN_EXE_wirestamp"));
    command.args(["capture", "-i", "far", "-C", "200", "-W", "3", "--json", "-w"]);
    let path = folder.join("soak.pcapng");
    let mut child = command.arg(path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let said = child.stderr.as_mut().context("no standard error")?;
    for line in BufReader::new(said).lines() {
        if line?.contains("Ctrl-C") {
            return Ok(child);
        }
    }
    bail!("the capture did not start: {}", child.wait()?)
}

fn send(arguments: &Arguments, stop: &AtomicBool) -> anyhow::Result<LiveReport> {
    let clock = ClockService::start(Counter::select())?;
    let [from, to] = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
    let to = SocketAddr::from((to, PORT));
    let [source, destination] = outgoing("near", to, Some(from.into()), PORT, Some(UNUSED_MAC))?;
    let template = Template { source, destination, frame_bytes: FRAME_BYTES, flows: 8, stream: 1 };
    let mut live = LiveFrames::open("near", template, Direction::Transmit)?;
    let duration = i64::try_from(arguments.duration.as_nanos())?;
    let limit = Limit { frames: None, duration: Some(Span::from_nanos(duration)) };
    let pace = Pace::rate(arguments.rate)?;
    Ok(live.run(&ServiceClock::new(&clock), pace, limit, stop)?)
}

/// Times and memory of the capture in KiB. The last reading is after all packets were sent.
fn watch(capture: &Child, is_sent: impl Fn() -> bool) -> anyhow::Result<Vec<(Duration, u64)>> {
    let start = Instant::now();
    let mut memory = Vec::new();
    println!("seconds,resident_kib");
    for look in 0.. {
        let due = PERIOD * look;
        let is_last = is_sent();
        thread::sleep(due.saturating_sub(start.elapsed()));
        let kib = resident_kib(capture.id())?;
        println!("{},{kib}", due.as_secs());
        memory.push((due, kib));
        if is_last {
            break;
        }
    }
    Ok(memory)
}

fn resident_kib(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.and_then(|kib| kib.parse().ok()).context("the capture has ended early")
}

/// Ends the capture as Ctrl-C does, and reads its summary.
fn finish(capture: Child) -> anyhow::Result<Value> {
    let pid = i32::try_from(capture.id()).ok().and_then(Pid::from_raw).context("no process")?;
    kill_process(pid, Signal::INT)?;
    let output = capture.wait_with_output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Whether at least 99 % of the intended packets were sent.
fn rate_was_reached(report: &LiveReport, arguments: &Arguments) -> bool {
    let LiveReport { sent, overslept, .. } = report;
    let asked = arguments.rate.saturating_mul(arguments.duration.as_secs());
    println!("\n{sent} frames sent of {asked}, {overslept} bursts after a sleep that was too long");
    let reached = *sent >= asked / 100 * 99;
    println!("rate of {} a second reached: {}", arguments.rate, verdict(reached));
    reached
}

/// Whether every packet sent was written or counted as lost.
fn sent_is_accounted(report: &LiveReport, summary: &Value) -> anyhow::Result<bool> {
    let count = |name: &str| summary["ledger"][name].as_u64().context("the ledger lacks a line");
    let written = count("delivered")?;
    let losses = ["interface_dropped", "kernel_dropped", "left_behind", "consumer_dropped"];
    let lost = losses.iter().map(|name| count(name)).sum::<anyhow::Result<u64>>()?;
    println!("{written} written, {lost} lost: {}", summary["ledger"]);
    let balanced = summary["balanced"] == true && report.sent == written + lost;
    println!("ledger balanced, and sent = written + lost: {}", verdict(balanced));
    Ok(balanced)
}

/// Whether the memory stayed constant after the warm-up time.
fn memory_is_flat(memory: &[(Duration, u64)], duration: Duration) -> bool {
    let settled = WARM_UP.min(duration / 2);
    let after: Vec<u64> =
        memory.iter().filter(|(at, _)| *at >= settled).map(|&(_, kib)| kib).collect();
    let (Some(&then), Some(&most)) = (after.first(), after.iter().max()) else { return false };
    let growth = most - then;
    let flat = growth <= MARGIN_KIB.max(then / MARGIN_FRACTION);
    println!(
        "memory after {} s: {then} KiB, at most {growth} KiB more since: {}",
        settled.as_secs(),
        verdict(flat)
    );
    flat
}

fn verdict(good: bool) -> &'static str {
    if good { "met" } else { "MISSED" }
}
