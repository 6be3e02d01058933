//! Claims of the paper, and their verdicts here.

use super::cable::{self, Cable, KTIME, RAW, Row};
use super::correlation::Correlation;
use super::findings::InterarrivalResult;
use super::stamps::errors;
use crate::experiment::{Claim, Estimate, Runs, deviation, mean};
use crate::overhead::paper::{Method, Traffic};
use crate::probe::gaps;
use wirestamp_report::estimate::coefficient;
use wirestamp_report::format::duration;

/// Difference below which two deviations, or two extreme times, count as equal: a factor.
const EQUAL: f64 = 1.05;
/// Rank correlation below which an overhead and a time between arrivals count as unrelated: it explains 1 % of the variance
/// of the ranks.
const UNRELATED: f64 = 0.1;

/// A statistic of the errors of a run's times between stamps, to compare ktime and the counter.
struct Measure {
    claim: &'static str,
    of: fn(&[f64]) -> Option<f64>,
    /// Name of the figure in sentences.
    name: &'static str,
}

const MEASURES: [Measure; 2] = [
    Measure {
        claim: "the times between raw stamps deviate less than those between stamps of ktime (here: by 5 % or more)",
        of: deviation,
        name: "a deviation of",
    },
    Measure {
        claim: "ktime has extreme times between arrivals that raw stamps do not have (here: longer by 5 % or more)",
        of: |errors| errors.iter().copied().reduce(f64::max),
        name: "max error:",
    },
];

/// The paper's claims with verdicts from the runs: the correlation from those in user space, the others from captures that
/// stamp the same packets in the softIRQ.
pub(super) fn claims(captured: &Runs<Row>, findings: &InterarrivalResult) -> Vec<Claim> {
    let correlated =
        of_overhead(&findings.correlation).caused_by(|| constant_overhead(&findings.correlation));
    let measured =
        MEASURES.iter().map(|measure| measure.claim(captured).caused_by(|| later_stamp(findings)));
    [correlated].into_iter().chain(measured).collect()
}

/// Claim: a high overhead correlates with a long time between arrivals.
fn of_overhead(correlations: &[Correlation]) -> Claim {
    let of_ktime = |pattern: Traffic| {
        let is_it = |c: &&Correlation| c.method == Method::Ktime && c.pattern == pattern;
        correlations.iter().find(is_it).and_then(|found| found.spearman)
    };
    let lead = Traffic::ALL.map(of_ktime);
    let number = |(pattern, rho): (Traffic, &Option<Estimate>)| {
        Some(format!("a rank correlation of {} for the {}", coefficient((*rho)?), pattern.name()))
    };
    let numbers: Vec<_> = Traffic::ALL.into_iter().zip(&lead).filter_map(number).collect();
    let claim =
        "with ktime, long times between arrivals correlate with high overhead of the timestamp";
    Claim::difference(claim, lead.into(), (UNRELATED, "0.1"), &numbers.join(", "))
}

/// Cause of a missing correlation: most overheads of ktime are the same, but for the counter's step.
fn constant_overhead(correlations: &[Correlation]) -> Option<String> {
    let of_ktime = correlations.iter().filter(|it| it.method == Method::Ktime);
    let share = |it: &Correlation| {
        let percent = 100.0 * it.share_of_two_values?;
        Some(format!("{percent:.1} % for the {}", it.pattern.name()))
    };
    let shares: Vec<_> = of_ktime.filter_map(share).collect();
    (!shares.is_empty()).then(|| {
        format!(
            "most overheads of ktime have one of two values, a step of the counter apart ({}): they are constant, whatever the \
             time between arrivals is",
            shares.join(", ")
        )
    })
}

/// Cause of contradicted claims: the two clocks are not read at the same place.
fn later_stamp(findings: &InterarrivalResult) -> Option<String> {
    let after: Vec<_> = findings
        .raw_after_ktime
        .iter()
        .filter_map(|it| {
            let after = it.after_ns.as_ref()?;
            let (mean, deviation) = (duration(after.mean), duration(after.stddev));
            Some(format!("{mean} ± {deviation} (mean, deviation) for the {}", it.pattern.name()))
        })
        .collect();
    (!after.is_empty()).then(|| {
        format!(
            "the raw stamp of a packet is taken further on in the softIRQ than that of ktime, by {}: the time between \
             the two places deviates more than a read of either clock does",
            after.join(" and ")
        )
    })
}

impl Measure {
    /// Both clocks stamped the same packets, so they are compared run by run.
    fn claim(&self, runs: &Runs<Row>) -> Claim {
        let figures = Traffic::ALL.map(|pattern| self.figures(runs, pattern));
        // Logarithms of deviations are spread alike whatever their size (Bartlett and Kendall, "The
        // statistical analysis of variance-heterogeneity", 1946).
        let lead = |figures: &Vec<(f64, f64)>| {
            let logs = figures.iter().map(|(ktime, raw)| (ktime / raw / EQUAL).ln());
            Estimate::of(&logs.filter(|log| log.is_finite()).collect::<Vec<_>>())
        };
        let number = |(pattern, figures): (Traffic, &Vec<(f64, f64)>)| {
            let (ktime, raw): (Vec<_>, Vec<_>) = figures.iter().copied().unzip();
            let (ktime, raw) = (duration(mean(&ktime)?), duration(mean(&raw)?));
            Some(format!("{} {raw} against {ktime} for the {}", self.name, pattern.name()))
        };
        let numbers = Traffic::ALL.into_iter().zip(&figures).filter_map(number);
        let numbers = numbers.collect::<Vec<_>>().join(", ");
        Claim::of(self.claim, figures.iter().map(lead).collect(), &numbers)
    }

    /// The figure by ktime and by the counter, of each run of a pattern that both stamped.
    fn figures(&self, runs: &Runs<Row>, pattern: Traffic) -> Vec<(f64, f64)> {
        let cells = runs.design.cells();
        let Some(cell) = cells.iter().position(|cell| Cable::of(cell) == pattern) else {
            return Vec::new();
        };
        let by = |run: &[Row], source| (self.of)(&errors(&gaps(cable::passages(run, source))));
        let both = |run: &[Row]| Some((by(run, KTIME)?, by(run, RAW)?));
        runs.of_cell(cell).filter_map(both).collect()
    }
}
