//! `wirestamp delay`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};
use wirestamp_capture::file::Reader;
use wirestamp_capture::{Capture, Config, Error, Limit, Method, StampSource};
use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_metrics::{self as metrics, FlowTable, Outcome, Point, Quality};
use wirestamp_study::{Meeting, Tap, compare};

use crate::capture::{Direction, MethodName, StampName, detail};
use crate::clock::seconds;
use crate::interrupt::stop_on_signal;
use crate::output::Output;
use crate::quality;
use crate::table::table;
use crate::target::Target;

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
    /// Measure interfaces for so many seconds [default: until Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// How packets are received at interfaces
    #[arg(long, value_enum, default_value = "ring")]
    method: MethodName,
    /// Which clock stamps them at interfaces
    #[arg(long, value_enum)]
    stamp: Option<StampName>,
    /// Which way packets go at interfaces; a sender's own interface as A needs inout
    #[arg(short = 'Q', long, value_enum, default_value = "in")]
    direction: Direction,
    /// A packet counts as lost when it has not arrived after so many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    timeout: u32,
    /// Use a damaged file up to the damage
    #[arg(long)]
    partial: bool,
    /// Only packets that pass this filter in pcap-filter(7) syntax, at interfaces
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
}

/// What was found, by files or by interfaces.
struct Findings {
    flows: FlowTable,
    /// The greatest error of a delay because of the clocks, or why it is not known.
    clock_error: Result<Option<i64>, String>,
    unidentified: u64,
    /// What the captures themselves lost at each point: never the network's loss.
    capture_dropped: [u64; 2],
    remarks: Vec<String>,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let correlation = metrics::Config {
        timeout: Span::from_millis(arguments.timeout.into()),
        ..metrics::Config::default()
    };
    let (a, b) = (Path::new(&arguments.a), Path::new(&arguments.b));
    let findings = match (a.exists(), b.exists()) {
        (true, true) => files(&arguments, correlation)?,
        (false, false) => interfaces(&arguments, correlation, output)?,
        _ => bail!(
            "{} and {} are not of one kind: give two capture files, or two interfaces",
            arguments.a,
            arguments.b
        ),
    };
    findings.remarks.iter().for_each(|remark| output.remark(remark));
    output.result(&findings.document()?, |_| findings.text())?;
    Ok(ExitCode::SUCCESS)
}

fn files(arguments: &Arguments, correlation: metrics::Config) -> anyhow::Result<Findings> {
    let open = |name: &str| Reader::open(Path::new(name));
    let mut flows = FlowTable::new(FLOWS);
    let mut record = |outcome: Outcome| flows.record(&outcome);
    let (a, b) = (open(&arguments.a)?, open(&arguments.b)?);
    let found = compare(a, b, correlation, arguments.partial, &mut record)?;
    Ok(Findings {
        flows,
        clock_error: found.clock_error.map(|error| Some(error.as_nanos())),
        unidentified: found.unidentified,
        capture_dropped: found.capture_lost,
        remarks: found.damage,
    })
}

fn interfaces(
    arguments: &Arguments,
    correlation: metrics::Config,
    output: Output,
) -> anyhow::Result<Findings> {
    let clock = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let stop = stop_on_signal()?;
    let a = open(arguments, &arguments.a, &clock)?;
    let b = open(arguments, &arguments.b, &clock)?;
    output.remark("measuring; Ctrl-C ends it");
    detail(output, &clock);
    let mut flows = FlowTable::new(FLOWS);
    let meeting = Meeting::new(correlation, |outcome| flows.record(&outcome));
    let taps = thread::scope(|scope| {
        let (clock, stop, meeting) = (&clock, &stop, &meeting);
        let domain = arguments.stamp_source().domain();
        let taps = [(a, Point::A), (b, Point::B)].map(|(capture, point)| {
            scope.spawn(move || {
                let mut tap = Tap::new(point, meeting, clock, domain, None);
                let (ledger, outcome) = capture.run(clock, stop, &mut tap);
                // One that fails must not leave the other to wait for Ctrl-C.
                stop.request();
                outcome.and_then(|()| Ok((tap.finish(&ledger)?, ledger)))
            })
        });
        taps.map(|tap| tap.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    meeting.finish();
    let [a, b] = taps;
    let ((a, ledger_a), (b, ledger_b)) = (a?, b?);
    let clock_error = flows.total().clock_error().map(|error| error.max.as_nanos());
    let mut remarks = Vec::new();
    if flows.total().counts().sent == 0 && arguments.direction == Direction::In {
        remarks.push(format!(
            "no packet came in at {}; if packets are sent from there, add -Q inout",
            arguments.a
        ));
    }
    Ok(Findings {
        clock_error: Ok(clock_error),
        unidentified: a.unidentified + b.unidentified,
        capture_dropped: [ledger_a.lost(), ledger_b.lost()],
        remarks,
        flows,
    })
}

fn open(arguments: &Arguments, name: &str, clock: &ClockService) -> anyhow::Result<Capture> {
    let target: Target = name.parse().map_err(anyhow::Error::msg)?;
    let config = Config {
        filter: arguments.filter.clone(),
        outgoing: arguments.direction == Direction::Inout,
        limit: Limit { packets: None, duration: arguments.duration.map(Duration::from_secs_f64) },
        ..Config::new(&target.interface, arguments.method.into(), arguments.stamp_source())
    };
    match target.enter(|| Capture::open(config, clock))? {
        Err(Error::NoSuchInterface(_)) => {
            bail!("{name} is neither a file nor an interface; `ip link` lists the interfaces")
        }
        opened => Ok(opened?),
    }
}

impl Arguments {
    fn stamp_source(&self) -> StampSource {
        self.stamp.map_or(Method::from(self.method).default_stamp(), StampSource::from)
    }
}

impl Findings {
    fn document(&self) -> anyhow::Result<Value> {
        let mut document = self.with_clock_error(self.flows.total())?;
        let mut flows = Vec::new();
        for (flow, quality) in self.flows.flows() {
            let mut row = json!({
                "src": flow.source.ip(),
                "dst": flow.destination.ip(),
                "sport": flow.source.port(),
                "dport": flow.destination.port(),
                "protocol": flow.protocol,
            });
            merge(&mut row, self.with_clock_error(quality)?);
            flows.push(row);
        }
        let rest = json!({
            "clock_error_reason": self.clock_error.as_ref().err(),
            "unidentified": self.unidentified,
            "capture_dropped": self.capture_dropped,
            "flows": flows,
        });
        merge(&mut document, rest);
        Ok(document)
    }

    /// A quality with the clock error that holds here. Of files it is known for the whole only.
    fn with_clock_error(&self, quality: &Quality) -> anyhow::Result<Value> {
        let mut value = serde_json::to_value(quality)?;
        if self.clock_error != Ok(quality.clock_error().map(|error| error.max.as_nanos())) {
            let error = self.clock_error.as_ref().ok();
            merge(&mut value, json!({"clock_error_ns": error, "clock_error_mean_ns": error}));
        }
        Ok(value)
    }

    fn text(&self) -> String {
        let flows = self.flows.flows();
        let error = |quality: &Quality| match &self.clock_error {
            Ok(Some(whole)) => {
                let own = quality.clock_error().map(|own| own.max.as_nanos());
                Some(own.filter(|&own| own > 0).unwrap_or(*whole))
            }
            _ => None,
        };
        let mut rows: Vec<_> = flows
            .iter()
            .map(|(flow, quality)| quality::row(flow.to_string(), quality, error(quality)))
            .collect();
        let total = self.flows.total();
        if rows.len() != 1 {
            rows.push(quality::row("all".into(), total, error(total)));
        }
        let mut text = table(&quality::HEADER, &rows);
        if let Err(reason) = &self.clock_error {
            let _ = writeln!(text, "The clocks' error is not known: {reason}.");
        }
        let [a, b] = self.capture_dropped;
        if a + b > 0 {
            let _ = writeln!(
                text,
                "The captures lost {a} packets at A and {b} at B: so many of the packets counted \
                 as lost, or as seen at B only, may be theirs."
            );
        }
        let unexpected = total.counts().unexpected;
        if unexpected > 0 {
            let _ = writeln!(text, "{unexpected} packets were seen at B only.");
        }
        if self.unidentified > 0 {
            let _ = writeln!(
                text,
                "{} packets took no part: not IP, or cut too short to be recognised.",
                self.unidentified
            );
        }
        text
    }
}

/// Adds the members of `more` to `object`, in place of those with the same name.
fn merge(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}
