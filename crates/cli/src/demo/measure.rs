//! A whole run of the demo: measurement, comparison with the truth, report.

use std::fs;

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::PathLab;

use super::recorder::Recorder;
use super::result::{DemoResult, Options, Progress};
use super::run::{Measured, Run, Traffic};
use super::tcpdump::TcpdumpPair;
use super::truth::Truth;
use super::{bed, present};

/// Runs the demo until everything is sent or `stop` is requested, and writes the report.
///
/// # Errors
/// When the lab, a capture, the sender or a file is not available; the message has the next step.
pub(super) fn measure(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> anyhow::Result<DemoResult> {
    wirestamp_lab::check_privilege()?;
    fs::create_dir_all(&options.folder)
        .with_context(|| format!("cannot make the folder {}", options.folder.display()))?;
    progress(Progress::Step("building the path"));
    let clock = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let lab = PathLab::new(&bed::impairments())?;
    let tcpdump = TcpdumpPair::start(&lab, &options.folder)?;
    let run = Run::new(options, &clock, &lab);

    let mut recorder = Recorder::default();
    let Measured { traffic, taps, mut notes } = run.measure(stop, &mut recorder, progress)?;

    progress(Progress::Step("comparing with the truth"));
    let tcpdump = tcpdump.map(TcpdumpPair::finish).transpose()?;
    let truth = Truth {
        sent: &traffic.sent,
        arrived: &traffic.arrived,
        bottleneck: lab.bottleneck()?,
        copies: lab.duplicated()?,
        path: &lab.impairments,
        tcpdump: tcpdump.as_ref(),
    };
    let checks = truth.checks(&recorder, &taps);
    notes.extend(missing(&truth, &traffic));
    let findings = run.findings(&traffic, &recorder, checks, taps, notes);
    let page = wirestamp_report::html(&present::report(&findings, &recorder, run.started));
    fs::write(&findings.report, page)
        .with_context(|| format!("cannot write {}", findings.report.display()))?;
    Ok(findings)
}

/// The parts of the truth that are missing, in words.
fn missing(truth: &Truth<'_>, traffic: &Traffic) -> impl Iterator<Item = String> {
    let when = |holds: bool, note: &str| holds.then(|| note.to_owned());
    let missing = [
        when(
            truth.tcpdump.is_none(),
            "tcpdump is missing, so there is no reference measurement of the delay; `make setup` installs it",
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
