//! `wirestamp delay`.

mod findings;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use wirestamp_capture::file::Reader;
use wirestamp_capture::{
    Capture, Config, Cores, Error, Filter, Limit, Method, StampSource, Stop, pair,
};
use wirestamp_clock::{ClockService, Counter, Domain, Span};
use wirestamp_metrics::{self as metrics, FlowTable, Outcome, Point};
use wirestamp_study::{Meeting, Recording, TapReport, compare};

use self::findings::{ClockError, Findings};
use crate::capture::{Direction, detail};
use crate::clock::seconds;
use crate::interrupt::stop_on_signal;
use crate::metrics::Endpoint;
use crate::metrics::delay::Exported;
use crate::output::Output;
use crate::target::Target;
use crate::usage::usage;

/// Flows that are reported one by one; those beyond are added up.
const FLOWS: usize = 1000;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    wirestamp delay a.pcapng b.pcapng\n  \
    wirestamp delay tap-a@wirestamp-router tap-b@wirestamp-sink --duration 10")]
pub(crate) struct Arguments {
    /// The first point: a capture file, an interface, or interface@namespace
    a: String,
    /// The second point
    b: String,
    /// A packet counts as lost when it has not arrived after so many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    timeout: u32,
    /// Only packets that pass this filter in pcap-filter(7) syntax
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Use a damaged file up to the damage
    #[arg(long, help_heading = "For files")]
    partial: bool,
    #[command(flatten)]
    live: Live,
}

/// What only makes sense where packets are captured now.
#[derive(Args)]
#[command(next_help_heading = "For interfaces")]
struct Live {
    /// Measure for so many seconds [default: until Ctrl-C]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// How packets are received: ring, recvmsg, recvmmsg, libpcap, xdp (which takes them from whoever
    /// they were for), xdp-pass or tc-pass [default: ring]
    #[arg(long, value_name = "METHOD")]
    method: Option<Method>,
    /// Which clock stamps them: kernel, raw, xdp or tc [default: kernel, but xdp for xdp and
    /// xdp-pass, and tc for tc-pass]
    #[arg(long, value_name = "STAMP")]
    stamp: Option<StampSource>,
    /// in: only what arrives; inout: what is sent there as well, as from a sender's own interface
    /// [default: in]
    #[arg(short = 'Q', long, value_enum, hide_possible_values = true)]
    direction: Option<Direction>,
    #[command(flatten)]
    endpoint: Endpoint,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let correlation = metrics::Config {
        timeout: Span::from_millis(arguments.timeout.into()),
        ..metrics::Config::default()
    };
    let (a, b) = (Path::new(&arguments.a), Path::new(&arguments.b));
    let findings = match (a.exists(), b.exists()) {
        (true, true) => files(arguments, correlation)?,
        (false, false) => interfaces(arguments, correlation, output)?,
        _ => {
            return Err(usage(format!(
                "{} and {} are not of one kind: give two capture files, or two interfaces",
                arguments.a, arguments.b
            )));
        }
    };
    findings.remarks.iter().for_each(|remark| output.remark(remark));
    output.result(&findings.document()?, |_| findings.text())?;
    Ok(ExitCode::SUCCESS)
}

fn files(arguments: &Arguments, correlation: metrics::Config) -> anyhow::Result<Findings> {
    let live = &arguments.live;
    let given = [
        ("--duration", live.duration.is_some()),
        ("--method", live.method.is_some()),
        ("--stamp", live.stamp.is_some()),
        ("--direction", live.direction.is_some()),
        ("--metrics", live.endpoint.is_open()),
    ];
    if let Some((option, _)) = given.into_iter().find(|&(_, given)| given) {
        return Err(usage(format!("{option} is for interfaces, and these are files")));
    }
    let filter = arguments.filter.as_deref().map(Filter::compile).transpose()?;
    let open = |name: &str| Reader::open(Path::new(name));
    let mut flows = FlowTable::new(FLOWS);
    let mut record = |outcome: Outcome| flows.record(&outcome);
    let (a, b) = (open(&arguments.a)?, open(&arguments.b)?);
    let found = compare(a, b, correlation, arguments.partial, filter.as_ref(), &mut record)?;
    Ok(Findings {
        flows,
        clock_error: found.clock_error.map_or_else(ClockError::Unknown, ClockError::OfFiles),
        unidentified: found.unidentified,
        capture_dropped: found.capture_lost,
        undated: found.undated,
        taps: Vec::new(),
        remarks: found.damage,
    })
}

fn interfaces(
    arguments: &Arguments,
    correlation: metrics::Config,
    output: Output,
) -> anyhow::Result<Findings> {
    if arguments.partial {
        return Err(usage("--partial is for files, and these are interfaces"));
    }
    let domain = arguments.live.pair()?.1.domain();
    if domain == Domain::Nic {
        return Err(usage(
            "--stamp hardware: each network card has a clock of its own; capture at both points with \
             `wirestamp capture` into files, and compare those",
        ));
    }
    let clock = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let clock = Arc::new(clock);
    let stop = stop_on_signal()?;
    let mut cores = Cores::choose(2).into_iter();
    let a = open(arguments, &arguments.a, cores.next(), &clock)?;
    let b = open(arguments, &arguments.b, cores.next(), &clock)?;
    for capture in [&a, &b] {
        capture.facts().notes.iter().for_each(|note| output.remark(note));
    }
    let exported = Exported::serve(&arguments.live.endpoint, [&a, &b], &clock, output)?;
    output.remark("measuring; Ctrl-C ends it");
    detail(output, &clock);
    let mut flows = FlowTable::new(FLOWS);
    let meeting = Meeting::new(correlation, |outcome| {
        flows.record(&outcome);
        exported.record(&outcome, flows.total());
    });
    let recording = |point| Recording::new(&clock, domain, None).show_in(exported.figures(point));
    let taps = attend([a, b], &recording, &meeting, &stop);
    meeting.finish();
    let [a, b] = taps;
    let taps = [a?, b?];
    Ok(arguments.findings(flows, taps, domain))
}

/// Runs both captures to their end.
fn attend<'a, R: FnMut(Outcome) + Send>(
    captures: [Capture; 2],
    recording: &(impl Fn(Point) -> Recording<'a> + Sync),
    meeting: &Meeting<R>,
    stop: &Stop,
) -> [Result<TapReport, Error>; 2] {
    thread::scope(|scope| {
        let mut points = [Point::A, Point::B].into_iter();
        let taps = captures.map(|capture| {
            let point = points.next().unwrap_or(Point::B);
            scope.spawn(move || {
                let report = meeting.attend(point, capture, recording(point), stop);
                // One that fails must not leave the other to wait for Ctrl-C.
                stop.request();
                report
            })
        });
        taps.map(|tap| tap.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn open(
    arguments: &Arguments,
    name: &str,
    cores: Option<Cores>,
    clock: &ClockService,
) -> anyhow::Result<Capture> {
    let target: Target = name.parse().map_err(|reason: String| usage(reason))?;
    let (method, stamp) = arguments.live.pair()?;
    let config = Config {
        filter: arguments.filter.clone(),
        outgoing: arguments.live.direction == Some(Direction::Inout),
        lanes: vec![cores.unwrap_or_default()],
        limit: Limit {
            packets: None,
            duration: arguments.live.duration.map(Duration::from_secs_f64),
        },
        ..Config::new(&target.interface, method, stamp)
    };
    match target.enter(|| Capture::open(config, clock))? {
        Err(Error::NoSuchInterface(_)) => {
            bail!("{name} is neither a file nor an interface; `ip link` lists the interfaces")
        }
        opened => Ok(opened?),
    }
}

impl Live {
    fn pair(&self) -> Result<(Method, StampSource), Error> {
        let method = self.method.unwrap_or(Method::Ring);
        let stamp = self.stamp.unwrap_or_else(|| method.default_stamp());
        pair(method, stamp).map(|_| (method, stamp))
    }
}

impl Arguments {
    fn findings(&self, flows: FlowTable, taps: [TapReport; 2], domain: Domain) -> Findings {
        let steps = taps.iter().map(|tap| tap.figures.clock_steps).max().unwrap_or(0);
        let clock_error = if domain == Domain::Realtime && steps > 0 {
            ClockError::Unknown(format!(
                "the system clock was stepped {steps} times meanwhile, and kernel stamps follow \
                 it; --stamp raw does not"
            ))
        } else {
            ClockError::OfEachDelay
        };
        let mut remarks = Vec::new();
        if flows.total().counts().sent == 0 && self.live.direction != Some(Direction::Inout) {
            remarks.push(format!(
                "no packet came in at {}; if packets are sent from there, add -Q inout",
                self.a
            ));
        }
        Findings {
            flows,
            clock_error,
            unidentified: taps.iter().map(|tap| tap.unidentified).sum(),
            capture_dropped: taps.each_ref().map(|tap| tap.ledger.lost()),
            undated: [0; 2],
            taps: taps.into(),
            remarks,
        }
    }
}
