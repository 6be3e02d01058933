//! Packets a second, and CPU time per packet: of reflectors with a flood of packets, and of senders with a
//! requested rate above their max.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use wirestamp_studies::tester::{Bed, RECEIVER, SENDING_INTERFACE, Tool};

use crate::contenders::{Contender, Ends};
use crate::extent::Extent;
use crate::flood::flood;
use crate::spread::{Spread, real};

/// Requested rate: half a million packets per second.
const INTERVAL: Duration = Duration::from_micros(2);
/// Warm-up time before a measurement.
const WARM_UP: Duration = Duration::from_millis(500);

/// Which end is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum End {
    Reflector,
    Sender,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    contender: Contender,
    end: End,
    repetition: u32,
    /// Packets that left the sender's interface in a second.
    sent_per_second: f64,
    /// Packets that came back to it.
    answered_per_second: f64,
    /// CPU time of the threads of the program measured, for each packet that it sent or answered.
    cpu_ns: f64,
    /// CPU load of the program, in cores.
    cores_busy: f64,
}

/// The ends of a cable: no router between sender and reflector limits the rate.
fn ends(bed: &Bed) -> Ends<'_> {
    Ends { sender: bed.sender(), reflector: bed.receiver(), address: RECEIVER }
}

pub(crate) fn run(extent: &Extent) -> anyhow::Result<Vec<Row>> {
    let bed = &Bed::build()?;
    let mut rows = Vec::new();
    for end in [End::Reflector, End::Sender] {
        for (repetition, contender) in extent.turns() {
            eprintln!("rates: {} of {}, repetition {repetition}", end.name(), contender.name());
            let measured = match end {
                End::Reflector => reflector(bed, extent, contender),
                End::Sender => sender(bed, extent, contender),
            };
            let failed = || format!("the {} of {} failed", end.name(), contender.name());
            let [from, to] = measured.with_context(failed)?;
            rows.push(Row { repetition, ..Row::of(contender, end, from, to) });
        }
    }
    Ok(rows)
}

fn reflector(bed: &Bed, extent: &Extent, contender: Contender) -> anyhow::Result<[Reading; 2]> {
    let reflector = contender.reflect(ends(bed))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let flooding = scope.spawn(|| flood(bed, contender, &stop));
        let readings = during(bed, extent, &reflector);
        stop.store(true, Ordering::Relaxed);
        flooding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        readings
    })
}

/// STAMP senders all use our reflector, for equal conditions; irtt's sender uses its own server.
fn sender(bed: &Bed, extent: &Extent, contender: Contender) -> anyhow::Result<[Reading; 2]> {
    let answering = match contender {
        Contender::Irtt => Contender::Irtt,
        Contender::Wirestamp | Contender::StampSuite => Contender::Wirestamp,
    };
    let _reflector = answering.reflect(ends(bed))?;
    // More packets than needed, but not many more: irtt allocates memory for all of them at its start.
    let lasting = (WARM_UP + extent.window) * 2;
    let packets = u32::try_from(lasting.as_micros() / INTERVAL.as_micros())?;
    let before = Reading::counters(bed)?[0];
    let mut command = contender.sender(ends(bed), INTERVAL, packets);
    let sender = Tool::launch(contender.name(), &mut command)?;
    let begun = Instant::now();
    while Reading::counters(bed)?[0] < before + 100 && begun.elapsed() < 10 * WARM_UP {
        thread::sleep(Duration::from_millis(1));
    }
    during(bed, extent, &sender)
}

/// Readings at both ends of the window.
fn during(bed: &Bed, extent: &Extent, tool: &Tool) -> anyhow::Result<[Reading; 2]> {
    thread::sleep(WARM_UP);
    let from = Reading::take(bed, tool)?;
    thread::sleep(extent.window);
    Ok([from, Reading::take(bed, tool)?])
}

/// Counters at a time.
#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    sent: u64,
    answered: u64,
    cpu_seconds: f64,
}

impl Reading {
    fn take(bed: &Bed, tool: &Tool) -> anyhow::Result<Self> {
        let [sent, answered] = Self::counters(bed)?;
        Ok(Self { at: Instant::now(), sent, answered, cpu_seconds: tool.cpu_seconds()? })
    }

    /// Packets that left and came to the sender's interface (proc_pid_net(5)).
    fn counters(bed: &Bed) -> anyhow::Result<[u64; 2]> {
        let text = bed.sender().run(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
        let line = text.lines().find_map(|line| line.trim().strip_prefix(SENDING_INTERFACE));
        let fields: Vec<&str> = line.map(str::split_whitespace).context("no counters")?.collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
        // After the colon: eight receive counters, the second of which is packets, then the transmit counters.
        number(10).zip(number(2)).map(|(sent, came)| [sent, came]).context("strange counters")
    }
}

impl Row {
    fn of(contender: Contender, end: End, from: Reading, to: Reading) -> Self {
        let seconds = (to.at - from.at).as_secs_f64();
        let cpu = to.cpu_seconds - from.cpu_seconds;
        let [sent, answered] = [to.sent - from.sent, to.answered - from.answered].map(real);
        let packets = if end == End::Reflector { answered } else { sent };
        Self {
            contender,
            end,
            repetition: 0,
            sent_per_second: sent / seconds,
            answered_per_second: answered / seconds,
            cpu_ns: cpu * 1e9 / packets.max(1.0),
            cores_busy: cpu / seconds,
        }
    }
}

impl End {
    const fn name(self) -> &'static str {
        match self {
            Self::Reflector => "reflector",
            Self::Sender => "sender",
        }
    }
}

pub(crate) fn print(rows: &[Row]) {
    for (end, head) in [
        (End::Reflector, "reflectors under a flood: packets a second that are answered"),
        (End::Sender, "senders asked for 500,000 packets a second: packets a second that leave"),
    ] {
        println!("\n{head}, in thousands:");
        println!(
            "{:<12} {:>28} {:>28} {:>14} {:>28}",
            "", "thousands a second", "CPU µs/packet", "cores busy", "wirestamp's rate over it"
        );
        let of = |contender: Contender| {
            rows.iter().filter(move |row| row.contender == contender && row.end == end)
        };
        let rate = |row: &Row| match end {
            End::Reflector => row.answered_per_second,
            End::Sender => row.sent_per_second,
        };
        let cell = |values: Vec<f64>| {
            Spread::of(values).map_or_else(|| "-".into(), |spread| format!("{spread:.2}"))
        };
        for contender in Contender::ALL {
            let ratio = |row: &Row| {
                let ours = of(Contender::Wirestamp).find(|it| it.repetition == row.repetition);
                ours.map(|ours| rate(ours) / rate(row))
            };
            let busy = Spread::of(of(contender).map(|row| row.cores_busy));
            println!(
                "{:<12} {:>28} {:>28} {:>14} {:>28}",
                contender.name(),
                cell(of(contender).map(|row| rate(row) / 1e3).collect()),
                cell(of(contender).map(|row| row.cpu_ns / 1e3).collect()),
                busy.map_or_else(|| "-".into(), |busy| format!("{:.2}", busy.median)),
                cell(of(contender).filter_map(ratio).collect()),
            );
        }
    }
}
