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

/// What it would take to compare the clocks of the stamps. Here they are read at two places.
const REQUIREMENT: &str = "both clocks read at one place of the softIRQ, by a changed kernel";

/// The paper's claims: the correlation from the stamps in user space. The captures cannot answer the others.
pub(super) fn claims(
    correlations: &[Correlation],
    captures: &[Stamps],
    raw_after_ktime: &[RawAfterKtime],
) -> Vec<Claim> {
    let correlated = of_overhead(correlations).caused_by(|| constant_overhead(correlations));
    vec![correlated, of_deviations(captures, raw_after_ktime), of_extremes(captures)]
}

/// Claim: raw stamps deviate less. Why the captures do not compare the clocks, with what was measured of both.
fn of_deviations(captures: &[Stamps], raw_after_ktime: &[RawAfterKtime]) -> Claim {
    let mut reason = "the raw stamp of a packet is taken further on in the softIRQ than that of ktime, so that the times \
                      between stamps differ by the place and by the clock, and no measurement here separates the two"
        .to_owned();
    let after = raw_after_ktime.iter().filter_map(|it| {
        let after = it.after_ns.as_ref()?;
        let (mean, deviation) = (duration(after.mean), duration(after.stddev));
        Some(format!("{mean} ± {deviation} (mean, deviation) for the {}", it.pattern.name()))
    });
    let after = after.collect::<Vec<_>>().join(" and ");
    if !after.is_empty() {
        reason += &format!("; the raw stamp is later by {after}");
    }
    if let Some(errors) = errors(captures, |stamps| Some(stamps.error_deviation_ns?.mean)) {
        reason += &format!("; deviation of the errors of {errors}");
    }
    let claim = "the times between raw stamps deviate less than those between stamps of ktime";
    Claim::not_the_same_question(claim, &reason, REQUIREMENT)
}

/// Claim: only ktime has extreme values.
fn of_extremes(captures: &[Stamps]) -> Claim {
    let mut reason =
        "the two stamps of a packet are taken at different places of the softIRQ".to_owned();
    if let Some(errors) = errors(captures, |stamps| Some(stamps.error_ns?.max)) {
        reason += &format!("; max of the errors of {errors}");
    }
    let claim = "ktime has extreme times between arrivals that raw stamps do not have";
    Claim::not_the_same_question(claim, &reason, REQUIREMENT)
}

/// Text with a value of the errors of raw stamps and of those of ktime, with each pattern; none without values.
fn errors(captures: &[Stamps], value: fn(&Stamps) -> Option<f64>) -> Option<String> {
    let [ktime, raw] = [KTIME, RAW].map(|source| SOURCES[source].to_string());
    let of = |source: &str, pattern: Traffic| {
        let is_it = |it: &&Stamps| (it.source.as_str(), it.pattern) == (source, pattern);
        Some(duration(value(captures.iter().find(is_it)?)?))
    };
    let compared = Traffic::ALL.into_iter().filter_map(|pattern| {
        let (raw, ktime) = (of(&raw, pattern)?, of(&ktime, pattern)?);
        Some(format!("{raw} against {ktime} for the {}", pattern.name()))
    });
    let compared = compared.collect::<Vec<_>>().join(", ");
    (!compared.is_empty()).then(|| format!("{raw} against {ktime}: {compared}"))
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
            "most overheads of ktime have one of two values, a step of the counter apart ({}): they do not differ by more \
             than the step of the counter",
            shares.join(", ")
        )
    })
}
