//! Claims of the paper and of this project, and their verdicts here.

use super::findings::{AllRuns, known};
use super::measured::Measured;
use super::measurements::{SHORTEST_FRAME, TASKS};
use super::setting::Setting;
use crate::experiment::{Claim, Estimate, Runs, mean};
use wirestamp_report::format::{count, duration, length, plural, real};

/// Max error that counts as small, and max influence that counts as none. The paper calls 27 µs none (section 3.6).
const SMALL_NS: f64 = 1_000.0;
/// Index in [`Measured::errors_ns`].
const LEAST: usize = 0;
const MEAN: usize = 1;

/// All claims. `setting` says how a cell of the second section is run.
pub(super) fn claims(runs: &AllRuns, setting: impl Fn(usize) -> Setting) -> Vec<Claim> {
    let [_, frames, lasting] = runs;
    vec![
        small(
            runs,
            MEAN,
            "the error of the mean one-way delay, averaged over the runs of an experiment, is below 1 µs",
            "376 µs, and 982 µs at full load",
        ),
        small(
            runs,
            LEAST,
            "the error of the min one-way delay, averaged over the runs of an experiment, is below 1 µs",
            "387 µs",
        ),
        never_negative(runs),
        exact_loss(runs),
        least_is_worse(runs),
        more_load(frames, &setting),
        longer_frames(frames, &setting),
        tasks(frames, &setting),
        durations(lasting),
    ]
}

fn all(runs: &AllRuns) -> impl Iterator<Item = &Measured> {
    runs.iter().flat_map(|runs| &runs.runs).flat_map(|(_, samples)| known(samples))
}

/// The errors of the runs of each section, on the average of runs.
fn small(runs: &AllRuns, which: usize, claim: &str, paper: &str) -> Claim {
    let error = |run: &Measured| run.errors_ns()[which].abs();
    let lead = runs.each_ref().map(|runs| {
        let runs = runs.runs.iter().flat_map(|(_, samples)| known(samples));
        Estimate::of(&runs.map(|run| SMALL_NS - error(run)).collect::<Vec<_>>())
    });
    let average = |lead: &Option<Estimate>| lead.map(|lead| duration(SMALL_NS - lead.mean));
    let averages: Vec<_> = lead.iter().filter_map(average).collect();
    let errors: Vec<_> = all(runs).map(error).collect();
    let most = errors.iter().copied().reduce(f64::max);
    let above: Vec<_> = errors.iter().filter(|error| **error > SMALL_NS).collect();
    let numbers = most.map_or_else(String::new, |most| {
        format!(
            "mean of the runs: {} in the three experiments, max of a single run {}; {} of {} above 1 µs (paper: up to \
             {paper})",
            averages.join(", "),
            duration(most),
            count(length(&above)),
            plural(length(&errors), "run", "runs")
        )
    });
    Claim::goal(claim, lead.into(), &numbers)
}

fn never_negative(runs: &AllRuns) -> Claim {
    let least = all(runs).map(|run| run.min_ns).reduce(f64::min);
    let negative: u64 = all(runs).map(|run| run.negative).sum();
    let packets = all(runs).map(|run| run.arrived).sum();
    let numbers = least.map_or_else(String::new, |least| {
        let negative = plural(negative, "is", "are");
        format!("of {} delays {negative} below 0, min {}", count(packets), duration(least))
    });
    Claim::goal("a delay is never negative", vec![least.map(Estimate::exact)], &numbers)
}

fn exact_loss(runs: &AllRuns) -> Claim {
    let whole: Vec<_> = all(runs).filter(|run| run.saw_everything()).collect();
    let off = whole.iter().map(|run| run.lost.abs_diff(run.truly_lost()));
    let off = off.max().map(real);
    let lost = whole.iter().map(|run| run.truly_lost()).sum();
    let others = all(runs).count() - whole.len();
    let numbers = off.map_or_else(String::new, |off| {
        format!(
            "off by {off} packets at the most in {} runs, in which the network lost {}; in {others} more \
             a capture lost packets itself (paper: the first probe lost up to 58 %)",
            whole.len(),
            count(lost)
        )
    });
    let claim = "loss is counted exactly where the captures lost no packets themselves";
    // Less than half a packet.
    Claim::goal(claim, vec![off.map(|off| Estimate::exact(0.5 - off))], &numbers)
}

fn least_is_worse(runs: &AllRuns) -> Claim {
    let shares = |run: &Measured| {
        let [least, mean, _] = run.errors_ns().map(f64::abs);
        [least / run.true_min_ns, mean / run.true_mean_ns].map(|share| share * 100.0)
    };
    let shares: Vec<_> = all(runs).map(shares).collect();
    let lead: Vec<_> = shares.iter().map(|[least, mean]| least - mean).collect();
    let average =
        |which: usize| mean(&shares.iter().map(|shares| shares[which]).collect::<Vec<_>>());
    let numbers = average(0).zip(average(1)).map(|(least, mean)| {
        format!("{least:.2} % against {mean:.5} % (paper: up to 77.9 % against 0.28 %)")
    });
    let claim = "the relative error of the min delay is larger than that of the mean";
    Claim::of(claim, vec![Estimate::of(&lead)], &numbers.unwrap_or_default())
}

/// The absolute error of the mean in each whole repetition of the cells that `of` chooses, averaged over
/// those cells.
fn mean_errors(runs: &Runs<Measured>, of: impl Fn(usize) -> bool) -> Vec<f64> {
    let responses = runs.responses(|run| Some(known(run).next()?.errors_ns()[MEAN].abs()));
    let chosen: Vec<_> =
        (0..).zip(&responses).filter(|(cell, _)| of(*cell)).map(|(_, errors)| errors).collect();
    let repetitions = chosen.iter().map(|errors| errors.len()).min().unwrap_or(0);
    let average = |repetition: usize| {
        mean(&chosen.iter().map(|errors| errors[repetition]).collect::<Vec<_>>())
    };
    (0..repetitions).filter_map(average).collect()
}

/// The confidence of the interval of an estimate in words, for parentheses; empty if it has none.
const fn interval(of: Estimate) -> &'static str {
    if of.ci95.is_some() { "95 % interval; " } else { "" }
}

/// Claims that the first errors are greater than the second ones.
fn greater(claim: &str, [first, second]: [Vec<f64>; 2], paper: &str) -> Claim {
    let lead: Vec<_> = first
        .iter()
        .zip(&second)
        .map(|(first, second)| first - second)
        .filter(|l| l.is_finite())
        .collect();
    let lead = Estimate::of(&lead);
    let average = |errors: &[f64]| {
        let finite: Vec<_> = errors.iter().copied().filter(|error| error.is_finite()).collect();
        mean(&finite).map(duration)
    };
    let numbers = average(&first).zip(average(&second)).zip(lead);
    let numbers = numbers.map(|((first, second), lead)| {
        format!(
            "{first} against {second}, a difference of {} ({}paper: {paper})",
            lead.text(duration),
            interval(lead)
        )
    });
    let relevant = (SMALL_NS, "1 µs");
    let numbers = numbers.unwrap_or_else(|| "nothing was measured".to_owned());
    Claim::difference(claim, vec![lead], relevant, &numbers).caused_by(|| {
        let known = [first, second].concat().into_iter().filter(|error| error.is_finite());
        let most = known.reduce(f64::max).filter(|most| *most < SMALL_NS)?;
        Some(format!(
            "the kernel stamps at both points with one clock; the mean of the errors of the compared cells is at most {} \
             in each repetition, so that a difference of 1 µs is not possible here",
            duration(most)
        ))
    })
}

fn more_load(runs: &Runs<Measured>, setting: &impl Fn(usize) -> Setting) -> Claim {
    let errors = [1000, 400].map(|load| mean_errors(runs, |cell| setting(cell).load == load));
    let claim = "the mean is less precise at 100 % load than at 40 %";
    greater(claim, errors, "769 µs against 87 µs")
}

fn longer_frames(runs: &Runs<Measured>, setting: &impl Fn(usize) -> Setting) -> Claim {
    let errors =
        [SHORTEST_FRAME, 1500].map(|frame| mean_errors(runs, |cell| setting(cell).frame == frame));
    let claim = "the mean is more precise with the longest frames than with the shortest";
    greater(claim, errors, "423 µs against 546 µs; the report's numbers contradict its text")
}

fn tasks(runs: &Runs<Measured>, setting: &impl Fn(usize) -> Setting) -> Claim {
    let [one, four] = TASKS.map(|tasks| mean_errors(runs, |cell| setting(cell).tasks == tasks));
    let differences: Vec<_> = one.iter().zip(&four).map(|(one, four)| four - one).collect();
    let claim = "four measurement tasks do not change the precision of the mean (a change below 1 µs counts as none)";
    unchanged(
        claim,
        &differences,
        "15.8 to 186 µs with four, 40 to 128 µs with one at another load",
    )
}

fn durations(runs: &Runs<Measured>) -> Claim {
    let cells = runs.design.cells().len();
    let errors: Vec<_> = (0..cells).map(|cell| mean_errors(runs, |c| c == cell)).collect();
    let differences: Vec<_> = match errors.as_slice() {
        [first, .., last] => first.iter().zip(last).map(|(first, last)| last - first).collect(),
        _ => Vec::new(),
    };
    let claim = "the duration does not change the precision of the mean (a change below 1 µs counts as none)";
    unchanged(claim, &differences, "up to 38 µs")
}

/// Claims that the absolute mean of these differences is less than 1 µs.
fn unchanged(claim: &str, differences: &[f64], paper: &str) -> Claim {
    let finite: Vec<_> = differences.iter().copied().filter(|d| d.is_finite()).collect();
    let difference = Estimate::of(&finite);
    let lead = difference.map(|it| it.around(SMALL_NS - it.mean.abs()));
    let numbers = difference.map(|difference| {
        format!(
            "its error changes by {} ({}paper: {paper})",
            difference.text(duration),
            interval(difference)
        )
    });
    Claim::of(claim, vec![lead], &numbers.unwrap_or_default())
}
