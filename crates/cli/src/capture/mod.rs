//! `wirestamp capture`.

mod announce;
mod destination;
mod direction;
mod events;
mod filter;
mod interfaces;
mod list;
mod open;
mod present;
mod print;
mod privileges;
mod read;
mod several;
mod tcpdump_options;
mod tune;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use wirestamp_capture::capabilities::card_clock;
use wirestamp_capture::tune::Tuned;
use wirestamp_capture::{Config, Cores, Limit, Method, StampSource, Wait, pair};

use self::announce::announce;
pub(crate) use self::announce::show_calibration;
use self::destination::Destination;
pub(crate) use self::direction::{Direction, with_sent_packets};
use self::events::{Events, RecordedEvents};
use self::filter::FilterArguments;
use self::open::open;
use self::print::{PrintOptions, Printing};
use self::privileges::Privileges;
use self::tcpdump_options::TcpdumpOptions;
use crate::clock;
use crate::interrupt::{report_on_signal, stop_on_signal};
use crate::metrics::{self, Endpoint};
use crate::output::{Output, to_stderr};
use crate::parse::{at_least_one, seconds};
use crate::progress::LiveLine;
use crate::redirection::{self, Consent};
use crate::target::Target;
use crate::usage::usage;
use tune::Tune;

pub(crate) use interfaces::Row as InterfaceRow;
pub(crate) use list::Row as PairRow;
pub(crate) use present::{Summary, Total};
pub(crate) use tune::SettingRow;

/// The largest snap length, that of tcpdump.
const MAX_SNAP_LENGTH: u32 = 262_144;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    wirestamp capture -i eth0 -w calls.pcapng udp portrange 16384-32767\n  \
    wirestamp capture -i any -w all.pcapng\n  \
    wirestamp capture -i eth0 -i eth1 -w both.pcapng\n  \
    wirestamp capture -i eth0 --print udp port 5004 -c 10\n  \
    wirestamp capture -r calls.pcapng -e -v udp port 5004\n  \
    wirestamp capture -r calls.pcapng -w sip.pcapng udp port 5060\n  \
    wirestamp capture -i eth0 --stamp raw --spin -c 100000\n  \
    wirestamp capture -i eth0 --stamp raw -w calls.pcapng --anchors calls.csv\n  \
    wirestamp capture -i eth0 --stamp hardware -Q in -w calls.pcapng\n  \
    wirestamp capture -i eth0 -w ring.pcapng -C 100 -W 10 --zstd\n  \
    wirestamp capture -i eth0 -U -w - | tshark -r -\n  \
    sudo wirestamp capture -i eth0 -w calls.pcapng -Z tcpdump\n  \
    wirestamp capture --list -i eth0\n  \
    wirestamp capture -i eth0 --metrics 127.0.0.1:9464\n  \
    wirestamp capture -i eth0 --events events.csv -w calls.pcapng\n  \
    wirestamp capture -i eth0 --tune=apply -w calls.pcapng")]
pub(crate) struct Arguments {
    /// The interface, or interface@namespace; any captures at all interfaces. Repeat it to capture at several
    /// interfaces into one pcapng file
    #[arg(short, long, value_name = "IF", required_unless_present_any = ["list", "list_interfaces", "read",
          "-J", "-L", "-V"])]
    interface: Vec<Target>,
    /// Print the packets of this capture file, with its times, instead of capturing; - is standard
    /// input, FILE#IF one interface of the file; the filter, -c and the options of printed packets apply. With -w,
    /// write them to another file of the same format, with their times, comments, interfaces, clock, and the statistics of
    /// the whole capture
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["interface", "list_interfaces", "list",
          "method", "stamp", "duration", "direction", "buffer_size", "spin", "realtime", "threads", "cores",
          "tune", "wait_for_interface", "yes", "format", "zstd", "file_size", "rotate_seconds", "file_count",
          "anchors", "events", "metrics"])]
    read: Option<PathBuf>,
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
    /// End after this many packets, of all interfaces together
    #[arg(short, long, value_name = "PACKETS", allow_negative_numbers = true,
          value_parser = at_least_one::<u64>)]
    count: Option<u64>,
    /// End after this many seconds
    #[arg(short, long, value_name = "SECONDS", allow_negative_numbers = true,
          value_parser = seconds)]
    duration: Option<f64>,
    /// Max bytes of each packet to save; 0 is the max
    #[arg(short, long, alias = "snapshot-length", value_name = "BYTES", default_value_t = 262_144, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(..=262_144))]
    snaplen: u32,
    /// in: only received packets; out: only packets sent by this machine; inout: both
    /// [default: inout, but in for xdp, xdp-pass, tc-pass and trace-pass, which support nothing else]
    #[arg(short = 'Q', long, value_enum)]
    direction: Option<Direction>,
    /// Do not put the interface into promiscuous mode: packets for other hosts are then captured only
    /// if it receives them anyway
    #[arg(short = 'p', long)]
    no_promiscuous_mode: bool,
    /// Size of the ring between kernel and capture, in KiB
    /// [default: 32768, but 65536 for raw stamps of ring, whose packets each take the memory of a full frame]
    #[arg(short = 'B', long, value_name = "KIB", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    buffer_size: Option<u32>,
    /// Poll for packets without pause: raw stamps without wake-up latency, at the cost of one core
    #[arg(long)]
    spin: bool,
    /// Run the acquisition thread with real-time priority
    #[arg(long, conflicts_with = "spin")]
    realtime: bool,
    /// Distribute the packets over this many acquisition threads, each with a conversion thread; the
    /// output is in stamp order if no thread is late by more than 50 ms
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// Cores of the acquisition, conversion and consumer thread, such as 3,2,1; - does not pin that
    /// thread; repeat for each further acquisition thread
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
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    print: PrintOptions,
    #[command(flatten)]
    endpoint: Endpoint,
    #[command(flatten)]
    destination: Destination,
    #[command(flatten)]
    privileges: Privileges,
    #[command(flatten)]
    events: Events,
    #[command(flatten)]
    tcpdump: TcpdumpOptions,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let filter = arguments.filter.expression()?;
    arguments.check(filter.as_deref(), output)?;
    if let Some(file) = &arguments.read {
        return read::run(arguments, file, filter, output);
    }
    if arguments.interface.len() > 1 {
        return several::run(arguments, &arguments.interface, filter.as_deref(), output);
    }
    if arguments.list_interfaces {
        return interfaces::list(output);
    }
    if arguments.list {
        return list::list(arguments.interface.first(), output);
    }
    let destination = &arguments.destination;
    let target = arguments.interface.first().context("no interface given")?;
    let config = arguments.config(&target.interface, filter);
    match arguments.tune {
        Some(Tune::Show) => return tune::show(target, &config, output),
        Some(Tune::Restore) => return tune::restore(target, output),
        Some(Tune::Apply) | None => {}
    }
    let pair = pair(config.method, config.stamp)?;
    let clock =
        Arc::new(clock::start_service(target.query(|| card_clock(pair, &target.interface))?)?);
    let stop = stop_on_signal()?;
    let domain = pair.domain;
    destination.check(domain, output.json)?;
    arguments.events.check(&destination.files())?;
    let capture = open(arguments, target, &config, &clock, &stop, output)?;
    let facts = capture.facts().clone();
    let figures = metrics::capture::serve(&arguments.endpoint, &capture, &clock, output)?;
    redirection::warn(config.method, config.filter.as_deref(), output);
    let tuned = tune::apply(arguments.tune, target, &config, output)?;
    let recording = destination.recording(&facts, &clock, domain)?.show_in(figures);
    arguments
        .privileges
        .drop_now(recording.files().last().map(PathBuf::as_path), destination.rotates())?;
    let prints = arguments.print.are_requested();
    let printer = prints.then(|| arguments.print.printer(output.verbose, false));
    let mut recording = Printing::new(recording, facts.link, printer);
    destination.remark().iter().for_each(|remark| output.remark(remark));
    let events = arguments.events.start(target, &clock)?;
    let notes = events.as_ref().map_or(&[][..], |events| &events.facts().notes);
    notes.iter().for_each(|note| output.remark(note));
    let live = capture.live_ledger();
    report_on_signal(move || to_stderr(present::counts(&live.snapshot())))?;
    announce(&facts, &clock, output);
    let live = capture.live_ledger();
    let progress = move || present::progress([live.snapshot()].into_iter());
    let line = arguments.shows_counts(output).then(|| LiveLine::start(progress)).transpose()?;
    let (ledger, outcome) = capture.run(&clock, &stop, &mut recording);
    drop(line);
    let (events, recorded) = events.map(RecordedEvents::finish).unzip();
    let (figures, written) = recording.into_recording().finish(&ledger);
    let summary = present::Summary::new(facts, figures, ledger, destination.path())
        .tuned(tuned.map(Tuned::restore))
        .events(events);
    if destination.is_stdout() || prints {
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

impl Arguments {
    /// Rejects options that do not fit together.
    fn check(&self, filter: Option<&str>, output: Output) -> anyhow::Result<()> {
        self.tcpdump.check()?;
        self.print.check()?;
        self.privileges.check()?;
        self.destination.check_precision()?;
        if output.json && self.read.is_some() {
            return Err(usage(
                "-r prints packets as text; leave --json out, or use `wirestamp flows`",
            ));
        }
        let prints = self.print.are_requested();
        if output.json && prints {
            return Err(usage(
                "--print and --json both use standard output; leave one out (-e, -X, -x and -A imply --print)",
            ));
        }
        self.direction.map_or(Ok(()), |direction| direction.check(self.method))?;
        if !self.list && self.tune.is_none_or(|it| it == Tune::Apply) {
            self.consent.check(self.method, filter)?;
        }
        let is_any = self.interface.first().is_some_and(|target| target.interface == "any");
        if is_any && (self.tune.is_some() || self.events.are_requested()) {
            return Err(usage("--tune and --events need one interface, not any"));
        }
        if self.privileges.are_dropped()
            && let Some(what) = self.needs_privileges_until_its_end()
        {
            return Err(usage(format!(
                "-Z: {what} needs privileges until the end of the capture; leave one of them out"
            )));
        }
        if prints && self.destination.is_stdout() {
            return Err(usage(
                "--print and -w - both use standard output; write the packets to a file (-e, -X, -x \
                 and -A imply --print)",
            ));
        }
        let shows = self.list || matches!(self.tune, Some(Tune::Show | Tune::Restore));
        let Some(filter) = filter.filter(|_| shows) else { return Ok(()) };
        let first = self.filter.first_word().unwrap_or_default();
        Err(usage(match (self.tune, Tune::from_str(first, false)) {
            (Some(_), Ok(_)) => format!("--tune {first}: write --tune={first}, with ="),
            _ => format!(
                "nothing is captured, so that the filter '{filter}' has no effect; leave it out"
            ),
        }))
    }

    /// Whether a terminal shows the counts while the capture runs: not between printed packets, and not where standard output
    /// may be a program on the same terminal.
    fn shows_counts(&self, output: Output) -> bool {
        output.shows_progress()
            && self.destination.path().is_some()
            && !self.destination.is_stdout()
            && !self.print.are_requested()
    }

    /// An option whose effect ends with a privileged call.
    fn needs_privileges_until_its_end(&self) -> Option<String> {
        let stamp = self.stamp.unwrap_or_else(|| self.method.default_stamp());
        let needs = [
            // Reading the counts of a BPF program.
            (!self.method.takes_outgoing(), format!("--method {}", self.method)),
            // Restoring the network card's setting.
            (stamp == StampSource::Hardware, format!("--stamp {stamp}")),
            // Giving the thread its priority.
            (self.realtime, "--realtime".to_owned()),
            // Restoring the machine's settings.
            (self.tune == Some(Tune::Apply), "--tune=apply".to_owned()),
            // Removing the trace instance.
            (self.events.are_requested(), "--events".to_owned()),
        ];
        needs.into_iter().find_map(|(is_needed, what)| is_needed.then_some(what))
    }

    /// Settings of a capture of one interface for Wireshark, with the filter.
    pub(crate) fn config_of_one(&self, interface: &str) -> anyhow::Result<Config> {
        if self.interface.len() > 1 {
            return Err(usage("-i is given more than once; one interface is captured here"));
        }
        let filter = self.filter.expression()?;
        self.consent.check_for_wireshark(self.method, filter.as_deref())?;
        Ok(self.config(interface, filter))
    }

    /// Whether -s cuts packets.
    fn cuts_packets(&self) -> bool {
        !matches!(self.snaplen, 0 | MAX_SNAP_LENGTH)
    }

    /// Settings of the capture.
    fn config(&self, interface: &str, filter: Option<String>) -> Config {
        let stamp = self.stamp.unwrap_or_else(|| self.method.default_stamp());
        let defaults = Config::new(interface, self.method, stamp);
        let duration = self.duration.map(Duration::from_secs_f64).into_iter();
        let duration = duration.chain(self.destination.limit()).min();
        Config {
            snaplen: if self.snaplen == 0 { MAX_SNAP_LENGTH } else { self.snaplen },
            filter,
            direction: self.direction.map(Into::into).unwrap_or_default(),
            promiscuous: !self.no_promiscuous_mode,
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
