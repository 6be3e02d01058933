//! Claims of this project on its probe and of the report on tasks, and their verdicts here.

use super::findings::{
    FIVE_BESIDE, FOUR_BESIDE, Level, MeshLimitRateResult, ONE_BESIDE, cpu_ns, found,
};
use super::trials::AIM;
use crate::experiment::{Claim, Estimate, Runs};
use crate::limit_rate::saturation::Saturation;
use crate::limit_rate::trials::Trial;
use wirestamp_report::estimate::decimal;
use wirestamp_report::format::{count, real};

/// Min ratio of the rate with several tasks to the rate with one.
const MIN_RATE_RATIO: f64 = 0.8;

/// Set-ups in which the probe's core does everything: with one task, and with more.
const ONE: usize = 0;
const MORE: [usize; 2] = [1, 2];

/// All claims.
pub(super) fn claims(runs: &Runs<Trial>) -> Vec<Claim> {
    let findings = MeshLimitRateResult::of(runs);
    let threads = "the threads of a probe on one core have";
    let everything = "a probe that shares its core with the reception of the frames has";
    vec![
        aim(runs, &findings, threads, [ONE_BESIDE, FOUR_BESIDE, FIVE_BESIDE]),
        aim(runs, &findings, everything, [ONE, MORE[0], MORE[1]]),
        kept(runs, &findings, MORE[0]),
        kept(runs, &findings, MORE[1]),
        more(runs, &findings),
    ]
}

/// `of` for each run of two set-ups, of the same repetition.
fn pairs(
    runs: &Runs<Trial>,
    [one, more]: [usize; 2],
    of: impl Fn(&[Trial], &[Trial]) -> Option<f64>,
) -> Option<Estimate> {
    let pairs = runs.of_cell(one).zip(runs.of_cell(more));
    Estimate::of(&pairs.filter_map(|(one, more)| of(one, more)).collect::<Vec<_>>())
}

/// Text with the value `of` for some set-ups.
fn each(
    findings: &MeshLimitRateResult,
    which: &[usize],
    of: impl Fn(&Level) -> Option<String>,
) -> String {
    let levels = which.iter().filter_map(|index| findings.levels.get(*index));
    let words = levels.filter_map(|level| Some(format!("{} with {}", of(level)?, level.in_words)));
    words.collect::<Vec<_>>().join(", ")
}

fn rates(findings: &MeshLimitRateResult, which: &[usize]) -> String {
    let rates = each(findings, which, Level::rate_in_words);
    if rates.is_empty() { rates } else { format!("{rates} (thousands a second; report: 70)") }
}

fn aim(runs: &Runs<Trial>, findings: &MeshLimitRateResult, who: &str, which: [usize; 3]) -> Claim {
    let above = |trials: &[Trial]| match found(trials)? {
        // The outcome at rates that were not sent is unknown.
        Saturation::NotReached(rate) if rate < real(AIM) => None,
        found => Some(found.at_least() - real(AIM)),
    };
    let lead =
        |index: &usize| Estimate::of(&runs.of_cell(*index).filter_map(above).collect::<Vec<_>>());
    let claim = format!(
        "{who} {} packets of 84 bytes a second without loss, whatever its tasks are",
        count(AIM)
    );
    Claim::goal(claim, which.iter().map(lead).collect(), &rates(findings, &which))
}

fn kept(runs: &Runs<Trial>, findings: &MeshLimitRateResult, more: usize) -> Claim {
    let lead = |one: &[Trial], more: &[Trial]| {
        let (one, more) = (found(one)?, found(more)?);
        let lead = more.at_least() - MIN_RATE_RATIO * one.at_least();
        let is_decided = match (one, more) {
            (Saturation::Reached(_), Saturation::Reached(_)) => true,
            // A limit that was not reached is a lower bound.
            (Saturation::Reached(_), Saturation::NotReached(_)) => lead > 0.0,
            (Saturation::NotReached(_), Saturation::Reached(_)) => lead < 0.0,
            (Saturation::NotReached(_), Saturation::NotReached(_)) => false,
        };
        is_decided.then_some(lead)
    };
    let share = |one: &[Trial], more: &[Trial]| match (found(one)?, found(more)?) {
        (Saturation::Reached(one), Saturation::Reached(more)) if one > 0.0 => Some(more / one),
        _ => None,
    };
    let share = pairs(runs, [ONE, more], share)
        .map_or(String::new(), |share| format!("a share of {}: ", decimal(share, 2)));
    let in_words = findings.levels.get(more).map_or("more tasks", |level| level.in_words);
    let claim = format!(
        "with {in_words} a probe keeps at least {MIN_RATE_RATIO} of the rate that it has with one"
    );
    let numbers = format!("{share}{}", rates(findings, &[ONE, more]));
    Claim::goal(claim, vec![pairs(runs, [ONE, more], lead)], &numbers)
}

/// Section 2.5.1.
fn more(runs: &Runs<Trial>, findings: &MeshLimitRateResult) -> Claim {
    let lead = |one: &[Trial], more: &[Trial]| Some(cpu_ns(more)? - cpu_ns(one)?);
    let which = [ONE_BESIDE, FOUR_BESIDE];
    let numbers =
        each(findings, &which, |level| Some(format!("{} ns a packet", decimal(level.cpu_ns?, 0))));
    Claim::of("four tasks take more CPU than one", vec![pairs(runs, which, lead)], &numbers)
}
