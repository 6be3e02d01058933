//! Conclusions of the report, and their verdicts here.

use super::causes::{LateOfCause, LateResult};
use super::findings::{CellFindings, JitterResult, MAX_ERROR, MEAN_ERROR, Measure, of_source};
use super::flows::{SourceJitter, flow};
use super::paper::{Pause, deviation_of_pentium_4};
use super::source::names;
use crate::experiment::{Cell, Claim, Design, Estimate, Runs, Sign, mean, spearman};
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
        is_below_pentium_4(runs, findings, "the jitter of at least one source", &names(false)),
        is_below_pentium_4(
            runs,
            findings,
            "in the softIRQ, where the report's probe stamps, too, the jitter of the better source",
            &names(true),
        ),
    ]
}

/// Claims that the source with the least jitter of these is better than the report's Pentium 4 in every flow.
fn is_below_pentium_4(
    runs: &Runs<SourceJitter>,
    findings: &JitterResult,
    jitter_of: &str,
    sources: &[String],
) -> Claim {
    let jitter: Measure = |row| row.driver_jitter.or(row.jitter);
    let (mut leads, mut weaker, mut uncertain) = (Vec::new(), Vec::new(), Vec::new());
    for (frame_bytes, pause) in flows(&runs.design) {
        let Some(theirs) = deviation_of_pentium_4(frame_bytes, pause) else { continue };
        let lead =
            |run: &[SourceJitter]| Some((theirs / run.first().and_then(jitter)?.max(1.0)).ln());
        let better = better_source(findings, (frame_bytes, pause), sources);
        let index = better.and_then(|better| index_of(&runs.design, better));
        let found = index.map(|index| runs.of_cell(index).filter_map(lead).collect::<Vec<_>>());
        let lead = Estimate::of(&found.unwrap_or_default());
        if lead.is_some_and(|lead| lead.mean <= 0.0) {
            weaker.push((frame_bytes, pause));
        }
        if lead.is_some_and(|lead| lead.sign() != Sign::Above) {
            uncertain.push((frame_bytes, pause));
        }
        leads.push(lead);
    }
    let claim = format!("{jitter_of} is below that of the report's Pentium 4 in every flow");
    let (flows, measured) = (leads.len(), leads.iter().flatten().count());
    let mut numbers = format!(
        "by the geometric mean of the repetitions in {} of {measured} flows, with 95 % confidence in {}",
        measured - weaker.len(),
        leads.iter().flatten().filter(|lead| lead.sign() == Sign::Above).count()
    );
    let name = |(frame_bytes, pause): &(u16, Pause)| {
        format!("{frame_bytes} bytes every {}", duration(f64::from(pause.period_ns(*frame_bytes))))
    };
    if measured < flows {
        numbers += &format!("; not measured: {} flows", flows - measured);
    }
    if !weaker.is_empty() {
        numbers += "; not by this mean with ";
        numbers += &weaker.iter().map(name).collect::<Vec<_>>().join(", ");
    }
    Claim::goal(claim, leads, if findings.cells.is_empty() { "" } else { &numbers })
        .prevented_by(|| late_packets(findings, &uncertain, sources))
}

/// The flows of a design, each once.
fn flows(design: &Design) -> Vec<(u16, Pause)> {
    let mut flows: Vec<_> = design.cells().iter().filter_map(|cell| flow(design, cell)).collect();
    flows.dedup();
    flows
}

/// Index of a source with a flow.
fn index_of(design: &Design, found: &CellFindings) -> Option<usize> {
    let is_it = |cell: &Cell| {
        flow(design, cell) == Some((found.frame_bytes, found.pause))
            && design.levels(cell).last() == Some(&found.source.as_str())
    };
    design.cells().iter().position(is_it)
}

/// That of these sources with the least jitter in a flow, by the mean of the repetitions.
fn better_source<'a>(
    findings: &'a JitterResult,
    flow: (u16, Pause),
    sources: &[String],
) -> Option<&'a CellFindings> {
    let cells = findings.cells.iter().filter(|cell| (cell.frame_bytes, cell.pause) == flow);
    let cells = cells.filter(|cell| sources.contains(&cell.source));
    let jitter = |cell: &CellFindings| Some(cell.driver_jitter.or(cell.jitter)?.mean);
    let cells = cells.filter_map(|cell| Some((jitter(cell)?, cell)));
    Some(cells.min_by(|a, b| a.0.total_cmp(&b.0))?.1)
}

/// What late packets do to the jitter of the better source with these flows, and what made packets late.
fn late_packets(
    findings: &JitterResult,
    flows: &[(u16, Pause)],
    sources: &[String],
) -> Option<String> {
    let of_flow = |flow: &(u16, Pause)| better_source(findings, *flow, sources);
    let cells: Vec<_> = flows.iter().filter_map(of_flow).collect();
    let most = |of: fn(&CellFindings) -> Option<Estimate>| {
        cells.iter().filter_map(|cell| Some(of(cell)?.mean)).reduce(f64::max)
    };
    let is_better = |cell: &&&CellFindings| {
        let others = cell.uninterrupted_jitter.map(|jitter| jitter.mean);
        others.zip(cell.jitter_of_pentium_4).is_some_and(|(ours, theirs)| ours < theirs)
    };
    let effect = format!(
        "in the flows without this confidence max {:.1} % of the packets are late, more than 1 µs later than the median on \
         the way from the driver's transmit stamp (or the call, where packets follow within 100 µs) to the stamp; without \
         them the jitter is max {}, and below that of the Pentium 4 in {} of {} of these flows",
        most(|cell| cell.interrupted)? * 100.0,
        duration(most(|cell| cell.uninterrupted_jitter)?),
        cells.iter().filter(is_better).count(),
        flows.len(),
    );
    let flows_of = |source: &&String| cells.iter().filter(|cell| cell.source == **source).count();
    let source = sources.iter().max_by_key(flows_of)?;
    Some(format!("{effect}; {}", causes(&findings.late, source)))
}

/// What made the packets of a source late, in the flows whose kernel work was recorded.
fn causes(late: &LateResult, source: &str) -> String {
    let cause = |it: &LateOfCause| {
        let share = it.share.unwrap_or_default() * 100.0;
        format!("{} {} ({share:.1} %)", it.late, it.cause)
    };
    let found = late.causes(source);
    let found: Vec<_> = found.iter().filter(|it| it.late > 0).map(cause).collect();
    match (&late.reason, found.as_slice()) {
        (Some(reason), _) => format!("what made them late was not recorded: {reason}"),
        (None, []) if late.packets(source) == 0 => {
            "what made them late is not known: no flow of the recording is complete".to_owned()
        }
        (None, []) => {
            "in the flows in which the kernel's work was recorded, no packet was late".to_owned()
        }
        (None, found) => format!(
            "recorded in flows of their own, late packets by {source} had these causes (in parentheses their share of the \
             sum of the squares of all transits' differences from the median): {}",
            found.join(", ")
        ),
    }
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
        numbers += "; this error is the transit of the last packet less that of the first, divided by their number";
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
    let pair = |(index, cell): (usize, &Cell)| {
        let (frame_bytes, pause) = flow(&runs.design, cell)?;
        let of_runs = runs.of_cell(index).filter_map(|run| run.first()?.machine_jitter);
        let jitter = mean(&of_runs.collect::<Vec<_>>())?;
        Some((f64::from(pause.period_ns(frame_bytes)), jitter))
    };
    let pairs: Vec<_> = cells.iter().enumerate().filter_map(pair).collect();
    let rho = spearman(&pairs).filter(|rho| *rho > 0.0)?;
    Some(format!(
        "the jitter of a microsecond of the same memory accesses on the same core, without packets, grows with the time \
         between them, too: a rank correlation of {rho:.2}"
    ))
}

/// Claims that the error of the longest time decreases with `of`, by rank correlation within each repetition.
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
