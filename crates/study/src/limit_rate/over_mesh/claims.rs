//! What this project claims of its probe and the report of tasks, and what the data here say of it.

use super::AIM;
use super::findings::{Findings, Level, cpu_ns, found, in_thousands, words};
use crate::experiment::{Claim, Estimate, Runs};
use crate::limit_rate::saturation::Saturation;
use crate::limit_rate::trials::Trial;
use crate::report::format::{count, estimate, real};

/// The rate with several tasks is to be as much of that with one.
const KEPT: f64 = 0.8;

/// One task, and those that it is compared with. Passive delay of every packet is nobody's claim.
const ONE: usize = 0;
const SEVERAL: [usize; 2] = [1, 2];

/// All claims.
pub(super) fn claims(runs: &Runs<Trial>) -> Vec<Claim> {
    let findings = Findings::of(runs);
    // A quick run has fewer numbers of tasks.
    let several: Vec<_> = SEVERAL.into_iter().filter(|it| *it < findings.levels.len()).collect();
    vec![
        aim(runs, &findings, &several),
        kept(runs, &findings, &several),
        cost(runs, &findings, &several),
        more(runs, &findings),
    ]
}

/// What `of` makes of each run with several tasks and that with one of the same repetition.
fn against_one(
    runs: &Runs<Trial>,
    several: usize,
    of: impl Fn(&[Trial], &[Trial]) -> Option<f64>,
) -> Option<Estimate> {
    let pairs = runs.of_cell(ONE).zip(runs.of_cell(several));
    Estimate::of(&pairs.filter_map(|(one, several)| of(one, several)).collect::<Vec<_>>())
}

/// Something of some numbers of tasks, in words.
fn each(findings: &Findings, which: &[usize], of: impl Fn(&Level) -> Option<String>) -> String {
    let levels = which.iter().filter_map(|index| findings.levels.get(*index));
    let words =
        levels.filter_map(|level| Some(format!("{} with {}", of(level)?, words(&level.tasks))));
    words.collect::<Vec<_>>().join(", ")
}

fn rates(findings: &Findings, which: &[usize]) -> String {
    let rates = each(findings, which, |level| {
        let bound = if level.limited_by_probe == 0 { "at least " } else { "" };
        Some(format!("{bound}{}", in_thousands(level.rate?)))
    });
    if rates.is_empty() { rates } else { format!("{rates} (thousands a second; report: 70)") }
}

fn aim(runs: &Runs<Trial>, findings: &Findings, several: &[usize]) -> Claim {
    let above = |trials: &[Trial]| match found(trials)? {
        // Of what was not sent nobody knows what would have become.
        Saturation::NotReached(rate) if rate < real(AIM) => None,
        found => Some(found.at_least() - real(AIM)),
    };
    let which = [&[ONE], several].concat();
    let lead =
        |index: &usize| Estimate::of(&runs.of_cell(*index).filter_map(above).collect::<Vec<_>>());
    let claim = format!(
        "a probe on one core has {} packets of 84 bytes a second without loss, whatever its tasks are",
        count(AIM)
    );
    Claim::goal(claim, which.iter().map(lead).collect(), &rates(findings, &which))
}

fn kept(runs: &Runs<Trial>, findings: &Findings, several: &[usize]) -> Claim {
    let lead = |one: &[Trial], several: &[Trial]| {
        let (one, several) = (found(one)?, found(several)?);
        let lead = several.at_least() - KEPT * one.at_least();
        let is_decided = match (one, several) {
            (Saturation::Reached(_), _) => lead > 0.0 || matches!(several, Saturation::Reached(_)),
            (_, Saturation::Reached(_)) => lead < 0.0,
            // Both had all that was sent.
            _ => false,
        };
        is_decided.then_some(lead)
    };
    let leads = several.iter().map(|index| against_one(runs, *index, lead)).collect();
    let which = [&[ONE], several].concat();
    let claim =
        format!("with more tasks a probe keeps at least {KEPT} of the rate that it has with one");
    Claim::goal(claim, leads, &rates(findings, &which))
}

fn cost(runs: &Runs<Trial>, findings: &Findings, several: &[usize]) -> Claim {
    let lead = |one: &[Trial], several: &[Trial]| Some(cpu_ns(one)? / cpu_ns(several)? - KEPT);
    let leads = several.iter().map(|index| against_one(runs, *index, lead)).collect();
    let numbers = each(findings, several, |level| {
        Some(format!(
            "a share of {} (of {} ns)",
            estimate(level.cpu_ratio?, 2),
            estimate(level.cpu_ns?, 0)
        ))
    });
    let claim = format!(
        "a packet takes a probe with one task at least {KEPT} of the CPU time that it takes with more"
    );
    Claim::goal(claim, leads, &numbers)
}

/// Section 2.5.1.
fn more(runs: &Runs<Trial>, findings: &Findings) -> Claim {
    let lead = |one: &[Trial], several: &[Trial]| Some(cpu_ns(several)? - cpu_ns(one)?);
    let which = [ONE, SEVERAL[0]];
    let numbers =
        each(findings, &which, |level| Some(format!("{} ns a packet", estimate(level.cpu_ns?, 0))));
    let leads = vec![against_one(runs, SEVERAL[0], lead)];
    Claim::of("four tasks take more CPU than one", leads, &numbers)
}
