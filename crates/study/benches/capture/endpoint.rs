//! What a capture costs an endpoint: a TCP transfer to the interface with and without `xdp-pass`.
//!
//! A veth hands over super-packets of many segments, and no longer does when an XDP program is
//! there, with which it would be compared with itself. So the sender cuts its segments before the
//! link in all cases (no TSO, no GSO), as every wire wants it.
//!
//! A veth copies what TCP sends before a program may see it, which drivers of network cards have no
//! need to. What that takes is seen with the same program and a filter that nothing passes.

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::Value;
use wirestamp_capture::{Method, StampSource};

use crate::Bench;
use crate::arguments::Arguments;
use crate::bed::{Bed, RECEIVER, SENDING_INTERFACE};
use crate::contenders::Contender;
use crate::process::{Running, spawn};
use crate::results::Results;
use crate::statistics::Spread;

/// Passes nothing that is sent here: a type for experiments (IEEE 802, table of EtherTypes).
const NOTHING: &str = "ether proto 0x88b5";

/// What a transfer must keep of its rate.
const KEPT: f64 = 0.95;

/// A link, and what makes it one.
const LINKS: [(&str, &str); 3] = [
    ("1 Gbit/s", "tc qdisc replace dev IF root tbf rate 1gbit burst 128kb latency 10ms"),
    ("2.5 Gbit/s", "tc qdisc replace dev IF root tbf rate 2500mbit burst 320kb latency 10ms"),
    ("no limit", "tc qdisc replace dev IF root pfifo limit 10000"),
];

/// What is there beside a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Beside {
    Nothing,
    /// The program of `xdp-pass`, which no packet passes the filter of.
    Program,
    Capture,
}

/// One transfer.
#[derive(Clone, Debug, Serialize)]
struct Row {
    link: &'static str,
    beside: Beside,
    repetition: u32,
    bits_per_second: f64,
    retransmits: u64,
    /// Packets that the capture saw, and those it lost.
    seen: Option<u64>,
    lost: Option<u64>,
}

pub(crate) fn run(bench: &mut Bench, arguments: &Arguments) -> anyhow::Result<()> {
    let seconds = if arguments.quick { 1 } else { 3 };
    let rows = transfers(bench, arguments, seconds)?;
    bench.results.csv("endpoint.csv", &rows)?;
    for (link, _) in LINKS {
        let of_link: Vec<&Row> = rows.iter().filter(|row| row.link == link).collect();
        report(link, &of_link, &mut bench.results);
    }
    Ok(())
}

fn transfers(bench: &Bench, arguments: &Arguments, seconds: u32) -> anyhow::Result<Vec<Row>> {
    let (bed, mut rows) = (&bench.bed, Vec::new());
    bed.settle(bed.sender(), &format!("ethtool -K {SENDING_INTERFACE} tso off gso off"))?;
    for (link, make) in LINKS {
        bed.settle(bed.sender(), &make.replace("IF", SENDING_INTERFACE))?;
        for repetition in 1..=arguments.repetitions() {
            // There and back: a drift meets all alike.
            let mut all = [Beside::Nothing, Beside::Program, Beside::Capture];
            if repetition % 2 == 0 {
                all.reverse();
            }
            for beside in all {
                if bench.interrupted() {
                    return Ok(rows);
                }
                match transfer(bench, beside, seconds) {
                    Ok(row) => rows.push(Row { link, repetition, ..row }),
                    // Ctrl-C reaches iperf3 too, which then has no answer.
                    Err(_) if bench.interrupted() => return Ok(rows),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(rows)
}

fn transfer(bench: &Bench, beside: Beside, seconds: u32) -> anyhow::Result<Row> {
    let contender = Contender::ours(Method::XdpPass, StampSource::Xdp)?;
    // Heads are what an endpoint's delays are computed from.
    let start = |filter: &[&str]| {
        let arguments = [&["--snaplen", "128"], filter].concat();
        Running::start(contender, &arguments, &bench.programs, &bench.bed)
    };
    let capture = match beside {
        Beside::Nothing => None,
        Beside::Program => Some(start(&[NOTHING])?),
        Beside::Capture => Some(start(&[])?),
    };
    let answer = iperf(&bench.bed, seconds)?;
    let account = match capture {
        Some(capture) => {
            capture.rest()?;
            Some(capture.stop()?.json()?)
        }
        None => None,
    };
    let ledger = |name: &str| account.as_ref()?.pointer(&format!("/ledger/{name}"))?.as_u64();
    let sum = |names: &[&str]| names.iter().map(|name| ledger(name)).sum::<Option<u64>>();
    Ok(Row {
        link: "",
        beside,
        repetition: 0,
        bits_per_second: number(&answer, "/end/sum_received/bits_per_second")?,
        retransmits: answer
            .pointer("/end/sum_sent/retransmits")
            .and_then(Value::as_u64)
            .unwrap_or(0),
        seen: ledger("seen"),
        lost: sum(&["kernel_dropped", "left_behind", "consumer_dropped"]),
    })
}

/// A transfer by iperf3(1), from the sender to the receiver.
fn iperf(bed: &Bed, seconds: u32) -> anyhow::Result<Value> {
    let address = RECEIVER.to_string();
    let mut command = bed.receiver().command("iperf3");
    let (mut server, lines) = spawn(command.args(["-s", "-1", "--forceflush", "-B", &address]))
        .context("cannot start iperf3; tools/setup-bench")?;
    let is_ready = lines.iter().any(|line| line.contains("Server listening"));
    let seconds = seconds.to_string();
    let mut client = bed.sender().command("iperf3");
    let output = client.args(["-J", "-c", &address, "-t", &seconds]).output();
    // It has ended by itself after one transfer, unless there was none.
    let _ = server.kill();
    server.wait()?;
    ensure!(is_ready, "iperf3 does not listen");
    Ok(serde_json::from_slice(&output?.stdout)?)
}

fn number(answer: &Value, path: &str) -> anyhow::Result<f64> {
    let said = || answer.get("error").map_or_else(|| "nothing".into(), Value::to_string);
    answer.pointer(path).and_then(Value::as_f64).with_context(|| format!("iperf3 said {}", said()))
}

fn report(link: &str, rows: &[&Row], results: &mut Results) {
    let rate = |beside: Beside| {
        let mine = rows.iter().filter(|row| row.beside == beside);
        Spread::of(mine.map(|row| row.bits_per_second / 1e9))
    };
    let [Some(without), Some(program), Some(with)] =
        [Beside::Nothing, Beside::Program, Beside::Capture].map(rate)
    else {
        return;
    };
    let captures = || rows.iter().filter(|row| row.beside == Beside::Capture);
    let sum =
        |number: fn(&Row) -> Option<u64>| captures().filter_map(|row| number(row)).sum::<u64>();
    let (seen, lost) = (sum(|row| row.seen), sum(|row| row.lost));
    let [bare, ratio] = [program, with].map(|rate| rate.median / without.median);
    results.say(&format!(
        "TCP over a link of {link}: {without:.3} Gbit/s without, {program:.3} Gbit/s with the program \
         of xdp-pass and no packet for it (ratio {bare:.3}), {with:.3} Gbit/s with xdp-pass (ratio \
         {ratio:.3}), which saw {seen} packets and lost {lost}\n"
    ));
    let text = format!(
        "TCP, {link}: with xdp-pass at least {KEPT} of the rate without: {ratio:.3}; with a program \
         that captures nothing {bare:.3}"
    );
    results.verdict(ratio >= KEPT, text);
    results
        .verdict(lost == 0, format!("TCP, {link}: xdp-pass loses none of {seen} packets: {lost}"));
}
