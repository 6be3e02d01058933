//! Claims of the paper, and their verdicts here.

use super::cable::{KTIME, RAW, SOURCES};
use super::correlation::Correlation;
use super::findings::RawAfterKtime;
use super::stamps::Stamps;
use crate::experiment::{Claim, Estimate};
use crate::overhead::paper::{Method, Traffic};
use wirestamp_report::estimate::coefficient;
use wirestamp_report::format::duration;

/// Rank correlation below which an overhead and a time between arrivals count as unrelated: it explains 1 % of the variance
/// of the ranks.
const UNRELATED: f64 = 0.1;

/// The paper's claims about the clock of the stamps. Here its two clocks are read at different places.
const OF_THE_CLOCK: [&str; 2] = [
    "the times between raw stamps deviate less than those between stamps of ktime",
    "ktime has extreme times between arrivals that raw stamps do not have",
];

/// The paper's claims: the correlation from the stamps in user space. The captures cannot answer the others.
pub(super) fn claims(
    correlations: &[Correlation],
    captures: &[Stamps],
    raw_after_ktime: &[RawAfterKtime],
) -> Vec<Claim> {
    let correlated = of_overhead(correlations).caused_by(|| constant_overhead(correlations));
    let reason = other_place(captures, raw_after_ktime);
    let requirement = "both clocks read at one place of the softIRQ, by a changed kernel";
    let of_the_clock =
        OF_THE_CLOCK.map(|claim| Claim::not_the_same_question(claim, &reason, requirement));
    [correlated].into_iter().chain(of_the_clock).collect()
}

/// Why the captures do not compare the clocks, with what was measured of both.
fn other_place(captures: &[Stamps], raw_after_ktime: &[RawAfterKtime]) -> String {
    let after = raw_after_ktime.iter().filter_map(|it| {
        let after = it.after_ns.as_ref()?;
        let (mean, deviation) = (duration(after.mean), duration(after.stddev));
        Some(format!("{mean} ± {deviation} (mean, deviation) for the {}", it.pattern.name()))
    });
    let after = after.collect::<Vec<_>>().join(" and ");
    let [ktime, raw] = [KTIME, RAW].map(|source| SOURCES[source].to_string());
    let of = |source: &str, pattern: Traffic| {
        let stamps =
            captures.iter().find(|it| (it.source.as_str(), it.pattern) == (source, pattern))?;
        Some((stamps.error_deviation_ns?.mean, stamps.error_ns?.max))
    };
    let errors = Traffic::ALL.into_iter().filter_map(|pattern| {
        let (ktime, raw) = (of(&ktime, pattern)?, of(&raw, pattern)?);
        Some(format!(
            "{} and {} against {} and {} for the {}",
            duration(raw.0),
            duration(raw.1),
            duration(ktime.0),
            duration(ktime.1),
            pattern.name()
        ))
    });
    let errors = errors.collect::<Vec<_>>().join(", ");
    let mut reason = "the raw stamp of a packet is taken further on in the softIRQ than that of ktime, so that the times \
                      between stamps differ by the place and by the clock, and no measurement here separates the two"
        .to_owned();
    if !after.is_empty() {
        reason += &format!("; the raw stamp is later by {after}");
    }
    if !errors.is_empty() {
        reason += &format!("; deviation and max of the errors of {raw} against {ktime}: {errors}");
    }
    reason
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
