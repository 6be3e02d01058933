//! The demo: a phone call, a video and a burst across a bottleneck, measured at two taps with
//! stamps of the softIRQ, and checked against everything that is known of the run.

mod bed;
mod present;
mod recorder;
mod run;
mod truth;
mod witness;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, ClockStatus, Counter};
use wirestamp_lab::PathLab;
use wirestamp_metrics::Quality;

use crate::TapReport;
use crate::report::{self, Check};
use recorder::Recorder;
use run::{Measured, Run};
use truth::Truth;
use witness::Witness;

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long packets are sent.
    pub duration: Duration,
    /// Where the report and the captures go. Made if it does not exist.
    pub folder: PathBuf,
    /// Whether the packets are IPv6 rather than IPv4.
    pub ipv6: bool,
}

/// How far the run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// Another step has begun.
    Step(&'static str),
    /// This share of the packets is sent, 0 to 1.
    Sending(f64),
}

/// What came of it. Serialises as the document of `wirestamp demo --json`.
#[derive(Debug, Serialize)]
pub struct Findings {
    /// Whether it was stopped before everything was sent.
    pub interrupted: bool,
    /// The clock behind the stamps.
    pub clock: ClockStatus,
    /// The bottleneck's rate in bit/s.
    pub rate_bits_per_s: u64,
    /// The bottleneck's queue in bytes.
    pub queue_bytes: u32,
    /// Each stream, and what the path did to it.
    pub streams: Vec<Found>,
    /// All streams together.
    pub total: Quality,
    /// What was compared with the truth.
    pub checks: Vec<Check>,
    /// The two taps, A and B.
    pub taps: Vec<TapReport>,
    /// Where less was granted than asked for, or a part of the truth is missing, in words.
    pub notes: Vec<String>,
    /// The report.
    pub report: PathBuf,
    /// The captures at tap A and B.
    pub captures: [PathBuf; 2],
}

/// What was found of one stream.
#[derive(Debug, Serialize)]
pub struct Found {
    /// What it stands for.
    pub name: &'static str,
    /// Its rhythm, in words.
    pub pattern: String,
    /// Its UDP destination port.
    pub port: u16,
    /// What the path did to it.
    #[serde(flatten)]
    pub quality: Quality,
}

impl Findings {
    /// Whether everything that was compared with the truth agrees with it.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

/// Runs the demo until everything is sent or `stop` is requested, and writes the report.
///
/// # Errors
/// When the lab, a capture, the sender or a file cannot be had; the message says what to do.
pub fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> anyhow::Result<Findings> {
    wirestamp_lab::check_privilege()?;
    fs::create_dir_all(&options.folder)
        .with_context(|| format!("cannot make the folder {}", options.folder.display()))?;
    progress(Progress::Step("building the path"));
    let clock = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let lab = PathLab::new(&bed::impairments())?;
    let witness = Witness::start(&lab, &options.folder)?;
    let run = Run::new(options, &clock, &lab);

    let mut recorder = Recorder::default();
    let Measured { traffic, taps, mut notes } = run.measure(stop, &mut recorder, progress)?;

    progress(Progress::Step("comparing with the truth"));
    let witness = witness.map(Witness::finish).transpose()?;
    let truth = Truth {
        sent: &traffic.sent,
        arrived: &traffic.arrived,
        bottleneck: lab.bottleneck()?,
        copies: lab.duplicated()?,
        path: lab.impairments(),
        witness: witness.as_ref(),
    };
    let checks = truth.checks(&recorder, &taps);
    notes.extend(missing(&truth, &traffic));
    let findings = run.findings(&traffic, &recorder, checks, taps, notes);
    let page = report::html(&present::report(&findings, &recorder, run.started));
    fs::write(&findings.report, page)
        .with_context(|| format!("cannot write {}", findings.report.display()))?;
    Ok(findings)
}

/// The parts of the truth that are missing, in words.
fn missing(truth: &Truth<'_>, traffic: &run::Traffic) -> impl Iterator<Item = String> {
    let when = |holds: bool, note: &str| holds.then(|| note.to_owned());
    let missing = [
        when(
            truth.witness.is_none(),
            "tcpdump is missing, so nobody else measured the delay; `make setup` installs it",
        ),
        when(
            !truth.queue_was_full(),
            "the run was over before the queue was full, so the delays were not compared",
        ),
        when(
            !traffic.all_arrived,
            "packets were still in the bottleneck when the run ended; they count as lost",
        ),
    ];
    missing.into_iter().flatten()
}

/// Nanoseconds in milliseconds, for people.
#[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns, which is 104 days")]
fn millis(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}
