//! Conclusions of the report, and their verdicts here.

mod pentium_4;

use self::pentium_4::is_below_pentium_4;
use super::findings::{CellFindings, JitterResult, MAX_ERROR, MEAN_ERROR, Measure, of_source};
use super::flows::{SourceJitter, flow};
use super::paper::Pause;
use super::source::names;
use crate::experiment::{Claim, Estimate, Runs, Sign, spearman};
use wirestamp_report::estimate::coefficient;
use wirestamp_report::format::duration;

/// Max error of the mean in the report, in nanoseconds.
const MEAN_WITHIN_NS: f64 = 5_000.0;

/// The report's conclusions with verdicts from the runs.
pub(super) fn claims(runs: &Runs<SourceJitter>, findings: &JitterResult) -> Vec<Claim> {
    let of_frames = "the larger the frames, the smaller the error of the max";
    let of_periods = "the longer the time between packets, the smaller the error of the max";
    vec![
        mean_is_near(runs, findings),
        jitter_is_below_the_period(runs, findings),
        falls(runs, of_periods, |frame_bytes, pause| f64::from(pause.period_ns(frame_bytes)))
            .caused_by(|| machine_grows(runs)),
        falls(runs, of_frames, |frame_bytes, _| f64::from(frame_bytes)),
        is_below_pentium_4(
            runs,
            findings,
            "the jitter of the best of the three sources, of which ring/kernel-in-call stamps before the softIRQ,",
            &names(false),
        ),
        is_below_pentium_4(
            runs,
            findings,
            "the jitter of the better of the two sources that stamp in the softIRQ",
            &names(true),
        ),
    ]
}

/// Lead of each source and flow over all runs: positive if the run agrees with the report.
fn leads(
    runs: &Runs<SourceJitter>,
    of: Measure,
    lead: impl Fn(f64, u32) -> f64,
    takes_part: impl Fn(u16, Pause) -> bool,
) -> Vec<Option<Estimate>> {
    let cells = runs.design.cells();
    let of_cell = |(index, source): (usize, &str)| {
        let (frame_bytes, pause) = flow(&runs.design, &cells[index])?;
        let lead = |run| Some(lead(of(of_source(run, source)?)?, pause.period_ns(frame_bytes)));
        let leads: Vec<_> = runs.of_cell(index).filter_map(lead).collect();
        let is_of_source = runs.design.levels(&cells[index]).last() == Some(&source);
        (is_of_source && takes_part(frame_bytes, pause)).then(|| Estimate::of(&leads))
    };
    let sources: Vec<_> = present(runs);
    let all =
        sources.iter().flat_map(|source| (0..cells.len()).map(move |cell| (cell, source.as_str())));
    all.filter_map(of_cell).collect()
}

/// The sources that stamped anything.
fn present(runs: &Runs<SourceJitter>) -> Vec<String> {
    let stamped =
        |source: &String| runs.runs.iter().any(|(_, run)| of_source(run, source).is_some());
    names(false).into_iter().filter(stamped).collect()
}

fn mean_is_near(runs: &Runs<SourceJitter>, findings: &JitterResult) -> Claim {
    let takes_part = |frame_bytes, pause| frame_bytes != 84 || pause != Pause::Least;
    let lead = |error: f64, _| MEAN_WITHIN_NS - error.abs();
    let leads = leads(runs, MEAN_ERROR, lead, takes_part);
    let error = |cell: &CellFindings| {
        cell.mean_error.filter(|_| takes_part(cell.frame_bytes, cell.pause)).map(|e| e.mean.abs())
    };
    let claim =
        "the mean time is measured within 5 µs, but for frames of 84 bytes that fill the wire";
    let mut numbers = greatest(findings, error, "an error of");
    if !numbers.is_empty() {
        numbers += "; without lost packets and unknown send times, this error is the transit of the last packet less that of the \
                    first, divided by the number of times between packets";
    }
    Claim::of(claim, leads, &numbers)
}

fn jitter_is_below_the_period(runs: &Runs<SourceJitter>, findings: &JitterResult) -> Claim {
    let lead = |jitter: f64, period: u32| (f64::from(period) / jitter.max(1.0)).ln();
    let leads = leads(runs, |row| row.jitter, lead, |_, _| true);
    let claim = "the jitter of the stamps stays below the time between packets";
    Claim::of(claim, leads, &greatest(findings, |cell| Some(cell.jitter?.mean), "a jitter of"))
}

/// The greatest figure of each source, and where.
fn greatest(
    findings: &JitterResult,
    of: impl Fn(&CellFindings) -> Option<f64>,
    what: &str,
) -> String {
    let of_source = |source: String| {
        let figures = findings.of_source(&source).filter_map(|cell| Some((of(cell)?, cell)));
        let (most, cell) = figures.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (bytes, period) = (cell.frame_bytes, duration(f64::from(cell.period_ns)));
        Some(format!("{what} max {} with {source} ({bytes} bytes every {period})", duration(most)))
    };
    names(false).into_iter().filter_map(of_source).collect::<Vec<_>>().join(", ")
}

/// Whether the jitter of the machine itself, without packets, grows with the time between packets.
fn machine_grows(runs: &Runs<SourceJitter>) -> Option<String> {
    let cells = runs.design.cells();
    let flows: Vec<_> = cells.iter().filter_map(|cell| flow(&runs.design, cell)).collect();
    let jitters = runs.responses(|run| run.first()?.machine_jitter);
    let of_repetition = |repetition: usize| {
        let pair = |((frame_bytes, pause), jitters): (&(u16, Pause), &Vec<f64>)| {
            let jitter = jitters.get(repetition).copied().filter(|jitter| jitter.is_finite())?;
            Some((f64::from(pause.period_ns(*frame_bytes)), jitter))
        };
        spearman(&flows.iter().zip(&jitters).filter_map(pair).collect::<Vec<_>>())
    };
    let repetitions = jitters.first().map_or(0, Vec::len);
    let rho = Estimate::of(&(0..repetitions).filter_map(of_repetition).collect::<Vec<_>>())?;
    (rho.sign() == Sign::Above).then(|| {
        format!(
            "the jitter of a microsecond of the same memory accesses on the same core, without packets, grows with the time \
             between them, too: a rank correlation of {}",
            coefficient(rho)
        )
    })
}

/// Claims that the error of the max decreases with `of`, by rank correlation within each repetition.
fn falls(runs: &Runs<SourceJitter>, claim: &str, of: impl Fn(u16, Pause) -> f64) -> Claim {
    let cells = runs.design.cells();
    let flows: Vec<_> = cells.iter().filter_map(|cell| flow(&runs.design, cell)).collect();
    let of_source = |source: &String| {
        let errors = runs.responses(|run| MAX_ERROR(of_source(run, source)?));
        let repetitions = errors.first().map_or(0, Vec::len);
        let of_repetition = |repetition: usize| {
            let pair = |((frame_bytes, pause), errors): (&(u16, Pause), &Vec<f64>)| {
                let error = errors.get(repetition).copied().filter(|error| error.is_finite())?;
                Some((of(*frame_bytes, *pause), error.abs()))
            };
            spearman(&flows.iter().zip(&errors).filter_map(pair).collect::<Vec<_>>())
        };
        Estimate::of(&(0..repetitions).filter_map(of_repetition).collect::<Vec<_>>())
    };
    let sources = present(runs);
    let found: Vec<_> = sources.iter().map(of_source).collect();
    let number = |(source, rho): (&String, &Option<Estimate>)| {
        Some(format!("a rank correlation of {} with {source}", coefficient((*rho)?)))
    };
    let numbers: Vec<_> = sources.iter().zip(&found).filter_map(number).collect();
    let falling = |rho: Option<Estimate>| rho.map(|rho| rho.around(-rho.mean));
    Claim::of(claim, found.into_iter().map(falling).collect(), &numbers.join(", "))
}
