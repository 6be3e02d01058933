//! The jitter here beside that of the report's Pentium 4.

use wirestamp_report::format::{duration, length, real};

use crate::experiment::{Cell, Claim, Design, Estimate, Runs, Sign};
use crate::timestamp_jitter::causes::{LateOfCause, LateResult};
use crate::timestamp_jitter::findings::{CellFindings, JitterResult, Measure};
use crate::timestamp_jitter::flows::{SourceJitter, flow};
use crate::timestamp_jitter::paper::{Pause, deviation_of_pentium_4};

/// The jitter against the driver's transmit stamps, or against the calls where those were not recorded.
const JITTER: Measure = |row| row.driver_jitter.or(row.jitter);

/// A flow, and the best of the compared sources in it.
struct Best<'a> {
    frame_bytes: u16,
    pause: Pause,
    /// Natural logarithm of the Pentium 4's jitter divided by that of the source; none if no source was measured.
    lead: Option<Estimate>,
    cell: Option<&'a CellFindings>,
}

/// Claims that the best of these sources is better than the report's Pentium 4 in every flow.
pub(super) fn is_below_pentium_4(
    runs: &Runs<SourceJitter>,
    findings: &JitterResult,
    jitter_of: &str,
    sources: &[String],
) -> Claim {
    let flows = flows(&runs.design).into_iter();
    let best = flows.filter_map(|flow| Best::of(runs, findings, flow, sources)).collect::<Vec<_>>();
    let measured: Vec<_> = best.iter().filter_map(|it| Some((it.lead?, it))).collect();
    let weaker: Vec<_> = measured.iter().filter(|(lead, _)| lead.mean <= 0.0).collect();
    let certain = measured.iter().filter(|(lead, _)| lead.sign() == Sign::Above).count();
    let mut numbers = format!(
        "by the geometric mean of the repetitions in {} of {} flows, with 95 % confidence in {certain} (corrected for the \
         choice of the source)",
        measured.len() - weaker.len(),
        measured.len(),
    );
    if measured.len() < best.len() {
        numbers += &format!("; not measured: {} flows", best.len() - measured.len());
    }
    if !weaker.is_empty() {
        let names: Vec<_> = weaker.iter().map(|(_, it)| it.name()).collect();
        numbers += &format!("; not by this mean with {}", names.join(", "));
    }
    let claim = format!("{jitter_of} is below that of the report's Pentium 4 in every flow");
    let leads = best.iter().map(|it| it.lead).collect();
    Claim::goal(claim, leads, if findings.cells.is_empty() { "" } else { &numbers }).prevented_by(
        || {
            let is_uncertain = |(lead, _): &&(Estimate, &Best<'_>)| lead.sign() != Sign::Above;
            let uncertain = measured.iter().filter(is_uncertain).filter_map(|(_, it)| it.cell);
            late_packets(findings, &uncertain.collect::<Vec<_>>(), sources)
        },
    )
}

impl<'a> Best<'a> {
    /// None if the report has no such flow.
    fn of(
        runs: &Runs<SourceJitter>,
        findings: &'a JitterResult,
        (frame_bytes, pause): (u16, Pause),
        sources: &[String],
    ) -> Option<Self> {
        let theirs = deviation_of_pentium_4(frame_bytes, pause)?;
        let lead = |run: &[SourceJitter]| {
            let ours = run.first().and_then(JITTER)?;
            Some((theirs / ours.max(1.0)).ln())
        };
        let of_source = |cell: &'a CellFindings| {
            let index = index_of(&runs.design, cell)?;
            let leads: Vec<_> = runs.of_cell(index).filter_map(lead).collect();
            Some((Estimate::of(&leads)?, cell))
        };
        let cells = findings.cells.iter().filter(|it| {
            (it.frame_bytes, it.pause) == (frame_bytes, pause) && sources.contains(&it.source)
        });
        let compared: Vec<_> = cells.filter_map(of_source).collect();
        let is_any_better = compared.iter().any(|(lead, _)| lead.mean > 0.0);
        let key = |lead: &Estimate| match lead.ci95 {
            _ if is_any_better => lead.mean,
            // The contrary holds only if it holds for each source.
            interval => lead.mean + interval.unwrap_or(f64::INFINITY),
        };
        let best = compared.iter().max_by(|a, b| key(&a.0).total_cmp(&key(&b.0)));
        let lead = best.map(|(lead, _)| lead.of_best(real(length(&compared))));
        Some(Self { frame_bytes, pause, lead, cell: best.map(|(_, cell)| *cell) })
    }

    fn name(&self) -> String {
        let period = f64::from(self.pause.period_ns(self.frame_bytes));
        format!("{} bytes every {}", self.frame_bytes, duration(period))
    }
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

/// What late packets do to the jitter of the best source with these flows, and what made packets late.
fn late_packets(
    findings: &JitterResult,
    cells: &[&CellFindings],
    sources: &[String],
) -> Option<String> {
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
        cells.len(),
    );
    let flows_of = |source: &&String| cells.iter().filter(|cell| cell.source == **source).count();
    let source = sources.iter().max_by_key(flows_of)?;
    let of_source = format!("{source}, the best source in {} of these flows", flows_of(&source));
    Some(format!("{effect}; {}", causes(&findings.late, source, &of_source)))
}

/// What made the packets of a source late, in the flows whose kernel work was recorded.
fn causes(late: &LateResult, source: &str, of_source: &str) -> String {
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
            "recorded in flows of their own, of all sizes and 500 µs or more from packet to packet, late packets by \
             {of_source}, had these causes (in parentheses their share of the sum of the squares of all transits' \
             differences from the median): {}",
            found.join(", ")
        ),
    }
}
