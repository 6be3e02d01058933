//! Packets that are captured now, at two points of this host.

mod beside;
mod coverage;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use wirestamp_capture::{Capture, Config, Cores, Error, Limit, Method, StampSource, Stop, pair};
use wirestamp_clock::{ClockService, Counter, Domain};
use wirestamp_metrics::{FlowTable, Outcome, Point};
use wirestamp_session::{PairSession, PointState, Recording, TapReport};

pub(super) use beside::{beside_file, beside_pipe};

use self::coverage::{Coverage, now};
use super::clocks::{ClockError, Clocks};
use super::findings::Findings;
use super::media::Media;
use super::round_trip::RoundTrips;
use super::{Arguments, flow_table, layers};
use crate::capture::{Direction, detail};
use crate::clock::seconds;
use crate::interrupt::stop_on_signal;
use crate::metrics::Endpoint;
use crate::metrics::delay::Exported;
use crate::output::Output;
use crate::target::Target;
use crate::usage::usage;

/// What only makes sense where packets are captured now.
#[derive(Args)]
#[command(next_help_heading = "For interfaces")]
pub(super) struct Live {
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
    /// Tell too where the time of packets goes behind the second point, from its driver to their
    /// application, as `wirestamp layers` does
    #[arg(long)]
    pub(super) layers: bool,
    #[command(flatten)]
    endpoint: Endpoint,
}

impl Live {
    /// Refuses to be given where nothing is captured.
    pub(super) fn refuse(&self) -> anyhow::Result<()> {
        let given = [
            ("--duration", self.duration.is_some()),
            ("--method", self.method.is_some()),
            ("--stamp", self.stamp.is_some()),
            ("--direction", self.direction.is_some()),
            ("--layers", self.layers),
            ("--metrics", self.endpoint.is_open()),
        ];
        match given.into_iter().find(|&(_, given)| given) {
            Some((option, _)) => {
                Err(usage(format!("{option} is for interfaces, and these are files")))
            }
            None => Ok(()),
        }
    }

    fn duration(&self) -> Option<Duration> {
        self.duration.map(Duration::from_secs_f64)
    }

    fn limit(&self) -> Limit {
        Limit { packets: None, duration: self.duration() }
    }

    fn pair(&self) -> Result<(Method, StampSource), Error> {
        let method = self.method.unwrap_or(Method::Ring);
        let stamp = self.stamp.unwrap_or_else(|| method.default_stamp());
        pair(method, stamp).map(|_| (method, stamp))
    }
}

/// Measures between two interfaces.
pub(super) fn interfaces(arguments: &Arguments, output: Output) -> anyhow::Result<Findings> {
    refuse_files(arguments)?;
    let (method, stamp) = arguments.live.pair()?;
    let domain = stamp.domain();
    if domain == Domain::Nic {
        return Err(usage(
            "--stamp hardware: each network card has a clock of its own; capture at both points with \
             `wirestamp capture` into files, and compare those",
        ));
    }
    let clock = Arc::new(start_clock()?);
    let stop = stop_on_signal()?;
    let mut cores = Cores::choose(2).into_iter();
    let followed = layers::open(arguments, method, &clock, output)?;
    // B first, so that it captures whatever A sees.
    let (cores_a, cores_b) = (cores.next(), cores.next());
    let b = open(arguments, &arguments.b, cores_b, Limit::default(), &clock)?;
    let a = open(arguments, &arguments.a, cores_a, Limit::default(), &clock)?;
    let coverage = Coverage::new(arguments.correlation());
    coverage.begins(Point::A, now(&clock));
    let mut exported =
        Exported::serve(&arguments.live.endpoint, [&a, &b], arguments.share(), &clock, output)?;
    begin([&a, &b], &clock, output);
    let recordings =
        exported.figures().map(|figures| Recording::new(&clock, domain, None).show_in(figures));
    let mut flows = flow_table();
    let meeting = PairSession::new(arguments.correlation(), |outcome| {
        let outcome = coverage.judge(outcome);
        flows.record(&outcome);
        exported.record(&outcome);
    })
    .seeing(&arguments.sight());
    let end = || {
        stop.wait(arguments.live.duration().unwrap_or(Duration::MAX));
        coverage.ends(Point::A, now(&clock));
    };
    let timeout = arguments.timeout();
    let measure = || attend([a, b], recordings, &meeting, timeout, &stop, end);
    let (taps, layers) = layers::beside(followed, &stop, measure);
    let sights = meeting.finish();
    let [a, b] = taps?;
    let taps = [a?, b?];
    let error = clock_error(&taps, domain);
    let mut findings =
        findings(arguments, flows, (taps.into(), sights), Clocks::of_one_host(error));
    findings.layers = layers?;
    if let Some(remark) = silence(arguments, &findings.flows, &arguments.a) {
        findings.remarks.push(remark);
    }
    Ok(findings)
}

fn refuse_files(arguments: &Arguments) -> anyhow::Result<()> {
    let given = [
        ("--partial is for files", arguments.partial),
        ("--align is for files", arguments.align),
        ("--remove-skew is for files", arguments.remove_skew),
        ("--offset is for two clocks", arguments.offset.is_some()),
    ];
    match given.into_iter().find(|&(_, given)| given) {
        Some((what, _)) => Err(usage(format!("{what}, and these are interfaces"))),
        None => Ok(()),
    }
}

fn start_clock() -> anyhow::Result<ClockService> {
    ClockService::start(Counter::select()).context("cannot calibrate the counter")
}

/// Says that the captures are open.
fn begin<'a>(
    captures: impl IntoIterator<Item = &'a Capture>,
    clock: &ClockService,
    output: Output,
) {
    for capture in captures {
        capture.facts().notes.iter().for_each(|note| output.remark(note));
    }
    output.remark("measuring; Ctrl-C ends it");
    detail(output, clock);
}

/// Runs both captures: A until `end` returns, and B longer by the time-out, so that what is under
/// way arrives.
fn attend<R: FnMut(Outcome) + Send>(
    [a, b]: [Capture; 2],
    [of_a, of_b]: [Recording<'_>; 2],
    meeting: &PairSession<R>,
    timeout: Duration,
    failed: &Stop,
    end: impl FnOnce(),
) -> anyhow::Result<[Result<TapReport, Error>; 2]> {
    let stops = [Stop::new(), Stop::new()].map(|stop| stop.context("cannot make the stop event"));
    let [stop_a, stop_b] = stops;
    let (stop_a, stop_b) = (stop_a?, stop_b?);
    let run = |point, capture, recording, stop: &Stop| {
        let report = meeting.attend(point, capture, recording, stop);
        // One that fails must not leave the other to wait for Ctrl-C.
        [failed, &stop_a, &stop_b].into_iter().filter(|_| report.is_err()).for_each(Stop::request);
        report
    };
    Ok(thread::scope(|scope| {
        let a = scope.spawn(|| run(Point::A, a, of_a, &stop_a));
        let b = scope.spawn(|| run(Point::B, b, of_b, &stop_b));
        end();
        stop_a.request();
        stop_b.wait(timeout);
        stop_b.request();
        [a, b].map(|tap| tap.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }))
}

fn open(
    arguments: &Arguments,
    name: &str,
    cores: Option<Cores>,
    limit: Limit,
    clock: &ClockService,
) -> anyhow::Result<Capture> {
    let target: Target = name.parse().map_err(|reason: String| usage(reason))?;
    let (method, stamp) = arguments.live.pair()?;
    let config = Config {
        filter: arguments.filter.clone(),
        outgoing: arguments.live.direction == Some(Direction::Inout),
        lanes: vec![cores.unwrap_or_default()],
        limit,
        ..Config::new(&target.interface, method, stamp)
    };
    match target.enter(|| Capture::open(config, clock))? {
        Err(Error::NoSuchInterface(_)) => {
            bail!("{name} is neither a file nor an interface; `ip link` lists the interfaces")
        }
        opened => Ok(opened?),
    }
}

/// How wrong delays between stamps of this host can be.
fn clock_error(taps: &[TapReport], domain: Domain) -> ClockError {
    let steps = taps.iter().map(|tap| tap.figures.clock_steps).max().unwrap_or(0);
    if domain == Domain::Realtime && steps > 0 {
        ClockError::Unknown(format!(
            "the system clock was stepped {steps} times meanwhile, and kernel stamps follow it; \
             --stamp raw does not"
        ))
    } else {
        ClockError::OfEachDelay
    }
}

/// What may be wrong where no packet was seen at the interface `name`.
fn silence(arguments: &Arguments, flows: &FlowTable, name: &str) -> Option<String> {
    let sent = flows.total().counts().sent;
    (sent == 0 && arguments.live.direction != Some(Direction::Inout)).then(|| {
        format!("no packet came in at {name}; if packets are sent from there, add -Q inout")
    })
}

fn findings(
    arguments: &Arguments,
    flows: FlowTable,
    (taps, mut sights): (Vec<TapReport>, [PointState; 2]),
    clocks: Clocks,
) -> Findings {
    Findings {
        flows,
        clocks,
        codec: arguments.codec,
        sampling: arguments.sample.clone(),
        media: Media::seen(&mut sights),
        round_trips: RoundTrips::seen(&mut sights),
        sights,
        lost_beyond: 0,
        capture_dropped: [0, 1].map(|point| taps.get(point).map_or(0, |tap| tap.ledger.lost())),
        undated: [0; 2],
        taps,
        layers: None,
        remarks: Vec::new(),
    }
}
