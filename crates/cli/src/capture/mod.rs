//! `wirestamp capture`.

mod destination;
mod events;
mod interfaces;
mod list;
mod present;
mod print;
mod tune;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use wirestamp_capture::capabilities::card_clock;
use wirestamp_capture::tune::Tuned;
use wirestamp_capture::{
    Capture, Config, Cores, Error, Facts, Limit, Method, StampSource, Stop, ThreadCores, Wait, pair,
};
use wirestamp_clock::ClockService;

use self::destination::Destination;
use self::events::{Events, RecordedEvents};
use self::print::Printing;
use crate::clock;
use crate::interrupt::{report_on_signal, stop_on_signal};
use crate::metrics::{self, Endpoint};
use crate::output::{Output, time, to_stderr};
use crate::parse::{at_least_one, seconds};
use crate::target::Target;
use crate::usage::usage;
use tune::Tune;

pub(crate) use interfaces::Row as InterfaceRow;
pub(crate) use list::Row as PairRow;
pub(crate) use present::Summary;
pub(crate) use tune::SettingRow;

/// The largest snap length, that of tcpdump.
const MAX_SNAP_LENGTH: u32 = 262_144;

/// Interval of checks whether the interface is up.
const INTERFACE_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    wirestamp capture -i eth0 -w calls.pcapng udp portrange 16384-32767\n  \
    wirestamp capture -i any -w all.pcapng\n  \
    wirestamp capture -i eth0 --print udp port 5004\n  \
    wirestamp capture -i eth0 --stamp raw --spin -c 100000\n  \
    wirestamp capture -i eth0 --stamp raw -w calls.pcapng --anchors calls.csv\n  \
    wirestamp capture -i eth0 --stamp hardware -Q in -w calls.pcapng\n  \
    wirestamp capture -i eth0 -w ring.pcapng -C 100 -W 10 --zstd\n  \
    wirestamp capture -i eth0 -w - | tshark -r -\n  \
    wirestamp capture --list -i eth0\n  \
    wirestamp capture -i eth0 --metrics 127.0.0.1:9464\n  \
    wirestamp capture -i eth0 --events events.csv -w calls.pcapng\n  \
    wirestamp capture -i eth0 --tune=apply -w calls.pcapng")]
pub(crate) struct Arguments {
    /// The interface, or interface@namespace; any captures at all interfaces
    #[arg(short, long, value_name = "IF", required_unless_present_any = ["list", "list_interfaces"])]
    interface: Option<Target>,
    /// List the interfaces, and whether packets can be captured on each, or why not
    #[arg(short = 'D', long, conflicts_with_all = ["interface", "list"])]
    list_interfaces: bool,
    /// Capture method: ring, recvmsg, recvmmsg, libpcap, xdp, xdp-pass, tc-pass or trace-pass; see
    /// --list
    #[arg(long, value_name = "METHOD", default_value = "ring")]
    method: Method,
    /// Stamp source: kernel, raw, xdp, tc, trace or hardware (the network card's clock)
    /// [default: kernel, but xdp for xdp and xdp-pass, tc for tc-pass, and trace for trace-pass]
    #[arg(long, value_name = "STAMP")]
    stamp: Option<StampSource>,
    /// List the pairs of method and stamp; with -i, whether the interface supports each, or why not
    #[arg(long)]
    list: bool,
    /// End after this many packets
    #[arg(short, long, value_name = "PACKETS", allow_negative_numbers = true,
          value_parser = at_least_one::<u64>)]
    count: Option<u64>,
    /// End after this many seconds
    #[arg(short, long, value_name = "SECONDS", allow_negative_numbers = true,
          value_parser = seconds)]
    duration: Option<f64>,
    /// Max bytes of each packet to save; 0 is the max
    #[arg(short, long, value_name = "BYTES", default_value_t = 262_144, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(..=262_144))]
    snaplen: u32,
    /// Accepted as by tcpdump: addresses are never converted to names
    #[arg(short = 'n', action = clap::ArgAction::Count, hide = true)]
    numeric: u8,
    /// in: only received packets; inout: also packets sent by this machine
    /// [default: inout, but in for xdp, xdp-pass, tc-pass and trace-pass, which support nothing else]
    #[arg(short = 'Q', long, value_enum)]
    direction: Option<Direction>,
    /// Size of the ring between kernel and capture, in KiB
    /// [default: 32768, but 65536 for raw stamps of ring, whose packets each take the memory of a full frame]
    #[arg(short = 'B', long, value_name = "KIB", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    buffer_size: Option<u32>,
    /// Poll for packets without pause: raw stamps without wake-up latency, at the cost of one core
    #[arg(long)]
    spin: bool,
    /// Run the stamping thread with real-time priority
    #[arg(long, conflicts_with = "spin")]
    realtime: bool,
    /// Distribute the packets over this many acquiring threads, each with a converting thread; the
    /// output is in stamp order if no thread is late by more than 50 ms
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// Cores of the acquiring, converting and consuming thread, such as 3,2,1; - does not pin that
    /// thread; repeat for each further acquiring thread
    #[arg(long, value_name = "CORES", value_parser = cores)]
    cores: Vec<Cores>,
    /// Show the machine settings that affect the stamps, or change them for the capture
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "show")]
    tune: Option<Tune>,
    /// Wait for the interface if it is missing or down, now or later, instead of ending with an error; its removal ends a
    /// capture in any case
    #[arg(long)]
    wait_for_interface: bool,
    /// Capture with --method xdp and without a filter, although the interface is then cut off from the network stack
    #[arg(long)]
    yes: bool,
    /// Print a line for each packet: time and its max error, protocol, addresses, lengths
    #[arg(long)]
    print: bool,
    /// A filter in pcap-filter(7) syntax
    #[arg(value_name = "FILTER", trailing_var_arg = true)]
    filter: Vec<String>,
    #[command(flatten)]
    endpoint: Endpoint,
    #[command(flatten)]
    destination: Destination,
    #[command(flatten)]
    events: Events,
}

/// Direction of captured packets.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direction {
    In,
    Inout,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    if arguments.print && output.json {
        return Err(usage("--print and --json both use standard output; leave one out"));
    }
    if arguments.list_interfaces {
        return interfaces::list(output);
    }
    if arguments.list {
        return list::list(arguments.interface.as_ref(), output);
    }
    let destination = &arguments.destination;
    let target = arguments.interface.clone().context("no interface given")?;
    let config = arguments.config(&target.interface);
    match arguments.tune {
        Some(Tune::Show) => return tune::show(&target, &config, output),
        Some(Tune::Restore) => return tune::restore(&target, output),
        Some(Tune::Apply) | None => {}
    }
    let pair = pair(config.method, config.stamp)?;
    let clock =
        Arc::new(clock::start_service(target.query(|| card_clock(pair, &target.interface))?)?);
    let stop = stop_on_signal()?;
    let domain = pair.domain;
    destination.check(domain, output.json)?;
    arguments.events.check(&destination.files())?;
    let capture = if arguments.wait_for_interface {
        open_when_up(&target, &config, &clock, &stop, output)?
    } else {
        target.query(|| Capture::open(config.clone(), &clock))?
    };
    let facts = capture.facts().clone();
    let figures = metrics::capture::serve(&arguments.endpoint, &capture, &clock, output)?;
    if config.method == Method::Xdp {
        let packets =
            if config.filter.is_some() { "packets that match the filter" } else { "all packets" };
        output.remark(format_args!(
            "method xdp redirects {packets}: the network stack does not receive them while the capture runs"
        ));
    }
    let tuned = tune::apply(arguments.tune, &target, &config, output)?;
    let recording = destination.recording(&facts, &clock, domain)?.show_in(figures);
    let mut recording = Printing::new(recording, facts.link, arguments.print);
    destination.remark().iter().for_each(|remark| output.remark(remark));
    let events = arguments.events.start(&target, &clock)?;
    let notes = events.as_ref().map_or(&[][..], |events| &events.facts().notes);
    notes.iter().for_each(|note| output.remark(note));
    let live = capture.live_ledger();
    report_on_signal(move || to_stderr(present::counts(&live.snapshot())))?;
    announce(&facts, &clock, output);
    let (ledger, outcome) = capture.run(&clock, &stop, &mut recording);
    let (events, recorded) = events.map(RecordedEvents::finish).unzip();
    let (figures, written) = recording.into_recording().finish(&ledger);
    let summary = present::Summary::new(facts, figures, ledger, destination.path())
        .tuned(tuned.map(Tuned::restore))
        .events(events);
    if destination.is_stdout() || arguments.print {
        output.remark(summary.text().trim_end());
    } else {
        output.result(&summary, present::Summary::text)?;
    }
    outcome.and(written)?;
    recorded.unwrap_or(Ok(()))?;
    Ok(if ledger.balances() && summary.events_balance() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Opens the capture as soon as its interface exists and is up, or fails when the stop is requested before.
fn open_when_up(
    target: &Target,
    config: &Config,
    clock: &ClockService,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<Capture> {
    let mut is_reported = false;
    loop {
        let opened = target.enter(|| Capture::open(config.clone(), clock))?;
        match opened {
            Err(error @ (Error::NoSuchInterface(_) | Error::Unusable { .. }))
                if !stop.is_requested() =>
            {
                if !is_reported {
                    output.remark(format_args!("waiting: {error}"));
                    is_reported = true;
                }
                stop.wait(INTERFACE_INTERVAL);
            }
            opened => return Ok(opened?),
        }
    }
}

/// Prints the capture's method and stamps, and with `--verbose` the clock's calibration.
fn announce(facts: &Facts, clock: &ClockService, output: Output) {
    facts.notes.iter().for_each(|note| output.remark(note));
    output.remark(format_args!(
        "capturing on {} by {}, stamped with {} {}; Ctrl-C ends it",
        facts.interface, facts.method, facts.clock, facts.taken
    ));
    for lane in &facts.cores {
        let ThreadCores { acquire, convert, consume } = lane;
        let [acquire, convert, consume] = [acquire, convert, consume].map(|list| cores_text(list));
        output
            .detail(format_args!("cores: acquire {acquire}, convert {convert}, consume {consume}"));
    }
    show_calibration(output, clock);
}

/// A list of cores, such as `1,2`; an empty list means all.
fn cores_text(cores: &[usize]) -> String {
    let text: Vec<_> = cores.iter().map(ToString::to_string).collect();
    if text.is_empty() { "any".to_owned() } else { text.join(",") }
}

/// Prints the clock's calibration with `--verbose`.
pub(crate) fn show_calibration(output: Output, clock: &ClockService) {
    let status = clock.status();
    output.detail(format_args!(
        "clock {}: {:.6} MHz ± {:.3} ppm, steps of {}, system time ±{}",
        status.selected,
        status.frequency_hz / 1e6,
        status.rate_error_ppm,
        time(status.granularity_ns),
        time(status.error_ns)
    ));
}

impl Arguments {
    /// Rejects options that do not fit together.
    fn check(&self) -> anyhow::Result<()> {
        if self.direction == Some(Direction::Inout) && !self.method.takes_outgoing() {
            return Err(usage(format!(
                "-Q inout: method {} captures received packets only; use -Q in, or method ring, recvmsg, \
                 recvmmsg or libpcap",
                self.method
            )));
        }
        let is_asked_for = self.yes || self.list || self.tune.is_some_and(|it| it != Tune::Apply);
        if self.method == Method::Xdp && self.filter.is_empty() && !is_asked_for {
            return Err(usage(
                "--method xdp takes all packets away from the network stack, those of your own connections too: add \
                 --yes, or a filter, or use xdp-pass",
            ));
        }
        let is_any = self.interface.as_ref().is_some_and(|target| target.interface == "any");
        if is_any && (self.tune.is_some() || self.events.are_requested()) {
            return Err(usage("--tune and --events need one interface, not any"));
        }
        if self.print && self.destination.is_stdout() {
            return Err(usage(
                "--print and -w - both use standard output; write the packets to a file",
            ));
        }
        let shows = self.list || matches!(self.tune, Some(Tune::Show | Tune::Restore));
        let Some(first) = self.filter.first().filter(|_| shows) else { return Ok(()) };
        Err(usage(match (self.tune, Tune::from_str(first, false)) {
            (Some(_), Ok(_)) => format!("--tune {first}: write --tune={first}, with ="),
            _ => format!(
                "nothing is captured, so that the filter '{}' has no effect; leave it out",
                self.filter.join(" ")
            ),
        }))
    }

    pub(crate) fn config(&self, interface: &str) -> Config {
        let stamp = self.stamp.unwrap_or_else(|| self.method.default_stamp());
        let filter = self.filter.join(" ");
        let defaults = Config::new(interface, self.method, stamp);
        let duration = self.duration.map(Duration::from_secs_f64).into_iter();
        let duration = duration.chain(self.destination.limit()).min();
        Config {
            snaplen: if self.snaplen == 0 { MAX_SNAP_LENGTH } else { self.snaplen },
            filter: (!filter.trim().is_empty()).then_some(filter),
            outgoing: self.direction != Some(Direction::In),
            ring_bytes: self.buffer_size.map_or(defaults.ring_bytes, |kib| kib as usize * 1024),
            lanes: self.lanes(),
            wait: if self.spin { Wait::Spin } else { Wait::Block { realtime: self.realtime } },
            limit: Limit { packets: self.count, duration },
            wait_for_interface: self.wait_for_interface,
            ..defaults
        }
    }

    /// The given cores, and automatically chosen ones for further threads.
    fn lanes(&self) -> Vec<Cores> {
        let threads = self.threads.map_or(self.cores.len().max(1), usize::from);
        let chosen = Cores::choose(threads).into_iter().skip(self.cores.len());
        self.cores.iter().copied().chain(chosen).collect()
    }
}

/// Parses `3,2,1` or `3,-,-`.
fn cores(text: &str) -> Result<Cores, String> {
    let core = |text: &str| match text {
        "-" => Ok(None),
        number => number.parse().map(Some).map_err(|_| ()),
    };
    let cores: Result<Vec<_>, ()> = text.split(',').map(core).collect();
    match cores.as_deref() {
        Ok(&[acquire, convert, consume]) => Ok(Cores { acquire, convert, consume }),
        _ => Err("expected three cores, such as 3,2,1 or 3,2,-".into()),
    }
}
