//! `wirestamp capture`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use wirestamp_capture::file::{Provenance, Writer};
use wirestamp_capture::{
    self as capture, Captured, Config, Cores, Error, Facts, Ledger, Limit, Method, PAIRS, Sink,
    StampSource, Wait,
};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_metrics::{Distribution, InterArrival};

use crate::clock::seconds;
use crate::interrupt::stop_on_signal;
use crate::output::{Output, mean, time};
use crate::table::table;
use crate::target::Target;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    wirestamp capture -i eth0 -w calls.pcapng udp portrange 16384-32767\n  \
    wirestamp capture -i eth0 --stamp raw --spin -c 100000\n  \
    wirestamp capture -i eth0 -w - | tshark -r -")]
pub(crate) struct Arguments {
    /// The interface, or interface@namespace
    #[arg(short, long, value_name = "IF", required_unless_present = "list")]
    interface: Option<Target>,
    /// Write the packets to this pcapng file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// How packets are received
    #[arg(long, value_enum, default_value = "ring")]
    method: MethodName,
    /// Which clock stamps them [default: kernel for ring, xdp for xdp-pass]
    #[arg(long, value_enum)]
    stamp: Option<StampName>,
    /// List the pairs of method and stamp
    #[arg(long)]
    list: bool,
    /// End after so many packets
    #[arg(short, long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// Bytes of each packet to keep
    #[arg(short, long, value_name = "BYTES", default_value_t = 262_144,
          value_parser = clap::value_parser!(u32).range(1..=262_144))]
    snaplen: u32,
    /// Packets that come in, or those that this machine sends, too
    #[arg(short = 'Q', long, value_enum, default_value = "inout")]
    direction: Direction,
    /// Memory for the ring between kernel and capture, in KiB
    #[arg(short = 'B', long, value_name = "KIB", default_value_t = 32_768,
          value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    buffer_size: u32,
    /// Look for packets without pause: raw stamps without the wake-up, for the price of a core
    #[arg(long)]
    spin: bool,
    /// Give the thread that takes the stamps real-time priority
    #[arg(long, conflicts_with = "spin")]
    realtime: bool,
    /// Cores of the acquiring, converting and consuming thread, such as 3,2,1; - leaves one free
    #[arg(long, value_name = "CORES", value_parser = cores)]
    cores: Option<Cores>,
    /// A filter in pcap-filter(7) syntax
    #[arg(value_name = "FILTER", trailing_var_arg = true)]
    filter: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum MethodName {
    Ring,
    XdpPass,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum StampName {
    Kernel,
    Raw,
    Xdp,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direction {
    In,
    Inout,
}

impl From<MethodName> for Method {
    fn from(name: MethodName) -> Self {
        match name {
            MethodName::Ring => Self::Ring,
            MethodName::XdpPass => Self::XdpPass,
        }
    }
}

impl From<StampName> for StampSource {
    fn from(name: StampName) -> Self {
        match name {
            StampName::Kernel => Self::Kernel,
            StampName::Raw => Self::Raw,
            StampName::Xdp => Self::Xdp,
        }
    }
}

#[derive(Serialize)]
struct Document {
    #[serde(flatten)]
    facts: Facts,
    packets: u64,
    bytes: u64,
    dropped: Dropped,
    ledger: Ledger,
    interarrival_ns: Distribution,
    acquisition_lag_ns: Distribution,
    error_ns: Option<i64>,
    file: Option<PathBuf>,
}

#[derive(Serialize)]
struct Dropped {
    interface: u64,
    kernel: u64,
    consumer: u64,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    if arguments.list {
        return list(output);
    }
    let target = arguments.interface.clone().context("no interface given")?;
    let clock = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let stop = stop_on_signal()?;
    let config = arguments.config(&target.interface);
    let opened = target.enter(|| capture::Capture::open(config, &clock))??;
    let facts = opened.facts().clone();
    facts.notes.iter().for_each(|note| output.remark(note));
    let mut counting = Counting::new(&arguments, &facts, &clock)?;
    output.remark(format!(
        "capturing on {} ({}, stamped {} with {}); Ctrl-C ends it",
        facts.interface, facts.method, facts.taken, facts.clock
    ));
    detail(output, &clock);
    let (ledger, outcome) = opened.run(&clock, &stop, &mut counting);
    let (document, finished) = counting.finish(facts, ledger, arguments.write);
    // With the packets on standard output, the summary has to go elsewhere.
    if document.file.as_deref() == Some("-".as_ref()) {
        output.remark(text(&document).trim_end());
    } else {
        output.result(&document, text)?;
    }
    outcome.and(finished)?;
    Ok(ExitCode::SUCCESS)
}

/// Says how well the clock is known, if anybody wants to know.
pub(crate) fn detail(output: Output, clock: &ClockService) {
    let status = clock.status();
    output.detail(format_args!(
        "clock {}: {:.6} MHz within {:.3} ppm, steps of {}, system time within {}",
        status.selected,
        status.frequency_hz / 1e6,
        status.rate_error_ppm,
        time(status.granularity_ns),
        time(status.error_ns)
    ));
}

impl Arguments {
    fn config(&self, interface: &str) -> Config {
        let method = Method::from(self.method);
        let stamp = self.stamp.map_or(method.default_stamp(), StampSource::from);
        let filter = self.filter.join(" ");
        Config {
            snaplen: self.snaplen,
            filter: (!filter.trim().is_empty()).then_some(filter),
            outgoing: self.direction == Direction::Inout,
            ring_bytes: self.buffer_size as usize * 1024,
            cores: self.cores.unwrap_or_else(Cores::choose),
            wait: if self.spin { Wait::Spin } else { Wait::Block { realtime: self.realtime } },
            limit: Limit {
                packets: self.count,
                duration: self.duration.map(Duration::from_secs_f64),
            },
            ..Config::new(interface, method, stamp)
        }
    }
}

/// `3,2,1` or `3,-,-`.
fn cores(text: &str) -> Result<Cores, String> {
    let core = |text: &str| match text {
        "-" => Ok(None),
        number => number.parse().map(Some).map_err(|_| ()),
    };
    let cores: Result<Vec<_>, ()> = text.split(',').map(core).collect();
    match cores.as_deref() {
        Ok(&[acquire, convert, consume]) => {
            let cores = Cores { acquire, convert, consume };
            cores.check().map(|()| cores).map_err(|error| error.to_string())
        }
        _ => Err("expected three cores, such as 3,2,1 or 3,2,-".into()),
    }
}

/// Counts packets, and writes them if there is a file.
struct Counting {
    writer: Option<Writer>,
    packets: u64,
    bytes: u64,
    interarrival: InterArrival,
    lag: Distribution,
    error_ns: Option<i64>,
}

impl Counting {
    fn new(arguments: &Arguments, facts: &Facts, clock: &ClockService) -> Result<Self, Error> {
        let provenance = || Provenance::of(facts, clock.status().error_ns);
        let path = arguments.write.as_deref();
        let writer = path.map(|path| Writer::create(path, facts, provenance())).transpose()?;
        Ok(Self {
            writer,
            packets: 0,
            bytes: 0,
            interarrival: InterArrival::new(),
            lag: Distribution::new(),
            error_ns: None,
        })
    }

    fn finish(
        self,
        facts: Facts,
        ledger: Ledger,
        file: Option<PathBuf>,
    ) -> (Document, Result<(), Error>) {
        let finished = self.writer.map_or(Ok(()), |writer| writer.finish(&ledger));
        let document = Document {
            facts,
            packets: self.packets,
            bytes: self.bytes,
            dropped: Dropped {
                interface: ledger.interface_dropped,
                kernel: ledger.kernel_dropped,
                consumer: ledger.consumer_dropped,
            },
            ledger,
            interarrival_ns: self.interarrival.distribution().clone(),
            acquisition_lag_ns: self.lag,
            error_ns: self.error_ns,
            file,
        };
        (document, finished)
    }
}

impl Sink for Counting {
    fn packet(&mut self, packet: &Captured<'_>) -> Result<(), Error> {
        if let Some(writer) = &mut self.writer {
            writer.packet(packet)?;
        }
        self.packets += 1;
        self.bytes += u64::from(packet.length);
        self.interarrival.record(packet.stamp);
        self.error_ns = self.error_ns.max(Some(packet.stamp.error.as_nanos()));
        if let Some(kernel) = packet.kernel {
            self.lag.record(packet.stamp.utc - kernel);
        }
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.writer.as_mut().map_or(Ok(()), Writer::pause)
    }
}

fn text(document: &Document) -> String {
    let Document { facts, dropped, ledger, .. } = document;
    let mut text = format!(
        "{} packets, {} bytes on {}, stamped {} with {}",
        document.packets, document.bytes, facts.interface, facts.taken, facts.clock
    );
    if let Some(error) = document.error_ns {
        let _ = write!(text, ", within {} of system time", time(error));
    }
    text.push('\n');
    if let Some(times) = document.interarrival_ns.summary() {
        let _ = writeln!(
            text,
            "between packets: mean {}, median {}, 99 % within {}, longest {}",
            mean(times.mean),
            time(times.p50),
            time(times.p99),
            time(times.max)
        );
    }
    if let Some(lag) = document.acquisition_lag_ns.summary() {
        let _ = writeln!(
            text,
            "stamps were taken after the kernel's own by: median {}, 99 % within {}, longest {}",
            time(lag.p50),
            time(lag.p99),
            time(lag.max)
        );
    }
    let _ = writeln!(
        text,
        "dropped: {} by the interface, {} by the kernel (ring full), {} by the consumer",
        dropped.interface, dropped.kernel, dropped.consumer
    );
    if ledger.stamped_late > 0 {
        let _ = writeln!(
            text,
            "{} stamps were taken only when the packet was copied to the ring",
            ledger.stamped_late
        );
    }
    if !ledger.balances() {
        let _ = writeln!(text, "the account of packets does not balance: {ledger:?}");
    }
    text
}

#[derive(Serialize)]
struct PairDocument {
    method: &'static str,
    stamp: &'static str,
    taken: &'static str,
    limits: &'static str,
}

fn list(output: Output) -> anyhow::Result<ExitCode> {
    let pairs: Vec<_> = PAIRS
        .iter()
        .map(|pair| PairDocument {
            method: pair.method.name(),
            stamp: pair.stamp.name(),
            taken: pair.taken,
            limits: pair.limits,
        })
        .collect();
    output.result(&pairs, |pairs| {
        let row = |pair: &PairDocument| {
            let limits =
                if pair.limits.is_empty() { String::new() } else { format!(" ({})", pair.limits) };
            vec![format!("{:<9} {:<7} stamped {}{limits}", pair.method, pair.stamp, pair.taken)]
        };
        table(&["method    stamp"], &pairs.iter().map(row).collect::<Vec<_>>())
    })?;
    Ok(ExitCode::SUCCESS)
}
