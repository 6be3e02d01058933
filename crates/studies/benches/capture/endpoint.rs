//! Cost of a capture for an endpoint: a TCP transfer to the interface with `xdp-pass`, with
//! `tc-pass` and with neither.
//!
//! A veth passes super-packets of many segments, but not while an XDP program is attached. To exclude this
//! difference, the sender segments before the link in all cases (no TSO, no GSO), as on a wire. The receiver's
//! kernel merges the segments again (GRO), after `xdp-pass` and before `tc-pass`: `tc-pass` captures fewer
//! packets with the same bytes.
//!
//! A veth copies TCP's packets before an XDP program can read them; drivers of network cards need no copy.
//! The cost of this copy is measured with the program of `xdp-pass` and a filter that matches no packet.
//! Over a veth without a rate limit, only `tc-pass` has to keep the rate of a transfer.

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::Value;
use wirestamp_capture::Method;
use wirestamp_studies::tester::{Bed, RECEIVER, SENDING_INTERFACE, spawn};

use crate::arguments::Arguments;
use crate::bench::Bench;
use crate::contenders::Contender;
use crate::process::Running;
use crate::results::Results;
use crate::statistics::Spread;

/// A filter that matches no packet sent here: an experimental EtherType (IEEE 802, table of EtherTypes).
const NOTHING: &str = "ether proto 0x88b5";

/// Min share of its rate that a transfer must keep.
const MIN_RATE_RATIO: f64 = 0.95;

/// A link between the sender and the interface.
struct Link {
    name: &'static str,
    /// The command that configures it.
    make: &'static str,
    /// The captures that must not reduce the rate of a transfer over it.
    keeping: &'static [Beside],
}

const LINKS: [Link; 3] = [
    Link {
        name: "1 Gbit/s",
        make: "tc qdisc replace dev IF root tbf rate 1gbit burst 128kb latency 10ms",
        keeping: &[Beside::XdpPass, Beside::TcPass],
    },
    Link {
        name: "2.5 Gbit/s",
        make: "tc qdisc replace dev IF root tbf rate 2500mbit burst 320kb latency 10ms",
        keeping: &[Beside::XdpPass, Beside::TcPass],
    },
    Link {
        name: "no limit",
        make: "tc qdisc replace dev IF root pfifo limit 10000",
        keeping: &[Beside::TcPass],
    },
];

/// The capture that runs during a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Beside {
    Nothing,
    /// The program of `xdp-pass`, with a filter that matches no packet.
    XdpProgram,
    XdpPass,
    TcPass,
}

impl Beside {
    const ALL: [Self; 4] = [Self::Nothing, Self::XdpProgram, Self::XdpPass, Self::TcPass];

    /// Method and filter.
    fn capture(self) -> Option<(Method, &'static [&'static str])> {
        match self {
            Self::Nothing => None,
            Self::XdpProgram => Some((Method::XdpPass, &[NOTHING])),
            Self::XdpPass => Some((Method::XdpPass, &[])),
            Self::TcPass => Some((Method::TcPass, &[])),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no capture",
            Self::XdpProgram => "the program of xdp-pass and no packet for it",
            Self::XdpPass => "xdp-pass",
            Self::TcPass => "tc-pass",
        }
    }
}

/// One transfer.
#[derive(Clone, Debug, Serialize)]
struct Row {
    link: &'static str,
    beside: Beside,
    repetition: u32,
    bits_per_second: f64,
    retransmits: u64,
    /// Packets that the capture observed, and packets that it lost.
    seen: Option<u64>,
    lost: Option<u64>,
}

pub(crate) fn run(bench: &mut Bench, arguments: &Arguments) -> anyhow::Result<()> {
    let seconds = if arguments.quick { 1 } else { 3 };
    let rows = transfers(bench, arguments, seconds)?;
    bench.results.csv("endpoint.csv", &rows)?;
    for link in &LINKS {
        let of_link: Vec<&Row> = rows.iter().filter(|row| row.link == link.name).collect();
        report(link, &of_link, &mut bench.results);
    }
    Ok(())
}

fn transfers(bench: &Bench, arguments: &Arguments, seconds: u32) -> anyhow::Result<Vec<Row>> {
    let (bed, mut rows) = (&bench.bed, Vec::new());
    bed.settle(bed.sender(), &format!("ethtool -K {SENDING_INTERFACE} tso off gso off"))?;
    for link in &LINKS {
        bed.settle(bed.sender(), &link.make.replace("IF", SENDING_INTERFACE))?;
        for repetition in 1..=arguments.repetitions() {
            // Every second repetition is in reverse order, so that a drift affects all cases equally.
            let mut all = Beside::ALL;
            if repetition % 2 == 0 {
                all.reverse();
            }
            for beside in all {
                if bench.interrupted() {
                    return Ok(rows);
                }
                match transfer(bench, beside, seconds) {
                    Ok(row) => rows.push(Row { link: link.name, repetition, ..row }),
                    // Ctrl-C ends iperf3 too, which then prints no result.
                    Err(_) if bench.interrupted() => return Ok(rows),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(rows)
}

fn transfer(bench: &Bench, beside: Beside, seconds: u32) -> anyhow::Result<Row> {
    let start = |(method, filter): (Method, &[&str])| {
        let contender = Contender::ours(method, method.default_stamp(), false)?;
        // Headers are enough to compute an endpoint's delays.
        let arguments = [&["--snaplen", "128"], filter].concat();
        Running::start(contender, &arguments, &bench.programs, &bench.bed)
    };
    let capture = beside.capture().map(start).transpose()?;
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
    // The server exits on its own after one transfer, but not without a transfer.
    let _ = server.kill();
    server.wait()?;
    ensure!(is_ready, "iperf3 does not listen");
    Ok(serde_json::from_slice(&output?.stdout)?)
}

fn number(answer: &Value, path: &str) -> anyhow::Result<f64> {
    let said = || answer.get("error").map_or_else(|| "nothing".into(), Value::to_string);
    answer.pointer(path).and_then(Value::as_f64).with_context(|| format!("iperf3 said {}", said()))
}

fn report(link: &Link, rows: &[&Row], results: &mut Results) {
    let rate = |beside: Beside| {
        let mine = rows.iter().filter(|row| row.beside == beside);
        Spread::of(mine.map(|row| row.bits_per_second / 1e9))
    };
    let Some(without) = rate(Beside::Nothing) else { return };
    results
        .say(&format!("TCP over a link of {}: {without:.3} Gbit/s without a capture", link.name));
    for beside in Beside::ALL {
        let (Some((method, filter)), Some(with)) = (beside.capture(), rate(beside)) else {
            continue;
        };
        let (name, ratio) = (beside.name(), with.median / without.median);
        results.say(&format!("  {with:.3} Gbit/s with {name}, {ratio:.3} of that"));
        if link.keeping.contains(&beside) {
            let text = format!(
                "TCP, {}: with {name} at least {MIN_RATE_RATIO} of the rate without: {ratio:.3}",
                link.name
            );
            results.verdict(ratio >= MIN_RATE_RATIO, text);
        }
        if filter.is_empty() {
            let mine = || rows.iter().filter(|row| row.beside == beside);
            let sum = |number: fn(&Row) -> Option<u64>| mine().filter_map(|row| number(row)).sum();
            let (seen, lost): (u64, u64) = (sum(|row| row.seen), sum(|row| row.lost));
            let text = format!("TCP, {}: {method} loses none of {seen} packets: {lost}", link.name);
            results.verdict(lost == 0, text);
        }
    }
}
