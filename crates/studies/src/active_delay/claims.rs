//! Claims of the report and of this project, and their verdicts here.

use super::measured::Measured;
use super::paper::{MEAN_DIFFERENCE_MS, MIN_ACTIVE_MS};
use crate::experiment::{Claim, Estimate, Runs};
use wirestamp_report::format::{count, duration, length, plural, real};

/// Max difference of the active and the passive mean.
const SMALL_NS: f64 = 5_000.0;
/// "In general they have lower error than the previous parameters since the error average is around 3 ms"
/// (section 3.7.1). A third of it counts as such an error.
const LARGE_NS: f64 = 1e6;
/// Indices in [`Measured::differences_ns`].
const MIN: usize = 0;
const MEAN: usize = 1;

/// All claims.
pub(super) fn claims(runs: &Runs<Measured>) -> Vec<Claim> {
    vec![
        means_agree(runs),
        never_negative(runs),
        counts_agree(runs),
        least_is_negative(runs),
        mean_is_off(runs),
        passive_sees_more(runs),
    ]
}

fn all(runs: &Runs<Measured>) -> impl Iterator<Item = &Measured> {
    runs.runs.iter().flat_map(|(_, samples)| samples)
}

/// `of` for the runs of each cell, where it is a number.
fn each_cell(runs: &Runs<Measured>, of: impl Fn(&Measured) -> f64) -> Vec<Option<Estimate>> {
    let of_cell = |index| {
        let of_runs = runs.of_cell(index).flatten().map(&of).filter(|value| value.is_finite());
        Estimate::of(&of_runs.collect::<Vec<_>>())
    };
    (0..runs.design.cells().len()).map(of_cell).collect()
}

fn means_agree(runs: &Runs<Measured>) -> Claim {
    let difference = |run: &Measured| run.differences_ns()[MEAN].abs();
    let lead = each_cell(runs, |run| SMALL_NS - difference(run));
    let most = all(runs).map(difference).filter(|it| it.is_finite()).reduce(f64::max);
    let numbers = most.map_or_else(String::new, |most| {
        format!("by max {} (paper: {})", duration(most), duration(MEAN_DIFFERENCE_MS * 1e6))
    });
    Claim::goal(
        "the mean delays of active and passive measurement differ by less than 5 µs",
        lead,
        &numbers,
    )
}

fn never_negative(runs: &Runs<Measured>) -> Claim {
    let least = all(runs).map(|run| run.active_min_ns).reduce(f64::min);
    let negative: u64 = all(runs).map(|run| run.negative).sum();
    let packets = all(runs).map(|run| run.active_received).sum();
    let numbers = least.map_or_else(String::new, |least| {
        format!(
            "of {} delays {} below 0, min {} (paper: {})",
            count(packets),
            plural(negative, "is", "are"),
            duration(least),
            duration(MIN_ACTIVE_MS * 1e6)
        )
    });
    Claim::goal("an active delay is never negative", vec![least.map(Estimate::exact)], &numbers)
}

fn counts_agree(runs: &Runs<Measured>) -> Claim {
    let whole: Vec<_> = all(runs).filter(|run| run.saw_everything()).collect();
    let others = all(runs).count() - whole.len();
    let off = whole.iter().map(|run| run.disagreement() + run.undecided).max();
    let sent: u64 = whole.iter().map(|run| run.sent).sum();
    let received = whole.iter().map(|run| run.at_b).sum();
    let numbers = off.map_or_else(String::new, |off| {
        format!(
            "off by {off} packets at the most in {} runs, in which {} were sent and {} received; in \
             {others} more a capture lost packets itself (paper: up to 852)",
            whole.len(),
            count(sent),
            count(received)
        )
    });
    let claim = "active and passive measurement count the same packets";
    // Less than half a packet.
    Claim::goal(claim, vec![off.map(|off| Estimate::exact(0.5 - real(off)))], &numbers)
}

fn least_is_negative(runs: &Runs<Measured>) -> Claim {
    let lead = each_cell(runs, |run| -run.active_min_ns);
    let negative = all(runs).filter(|run| run.active_min_ns < 0.0).collect::<Vec<_>>();
    let tests = all(runs).collect::<Vec<_>>();
    let numbers = if tests.is_empty() {
        String::new()
    } else {
        format!("in {} of {} runs (paper: in 7 of 7)", length(&negative), length(&tests))
    };
    let claim = "the min delay of the active measurement is negative";
    Claim::of(claim, lead, &numbers).caused_by(|| calculation(runs))
}

/// The report supposes that "the way how the delay is calculated" is the cause of its active delays (section 3.7.1).
fn calculation(runs: &Runs<Measured>) -> Option<String> {
    let here = same_stamps(runs).or_else(|| same_shortest(runs))?;
    Some(format!(
        "the report supposes that its probe calculated active delays in another way; here {here}"
    ))
}

/// Of one process, which knows both delays of each packet.
fn same_stamps(runs: &Runs<Measured>) -> Option<String> {
    let differences = all(runs).map(|run| run.packet_difference_ns);
    let most = differences.filter(|it| it.is_finite()).reduce(f64::max)?;
    let late: u64 = all(runs).map(|run| run.stamped_late).sum();
    let sent: u64 = all(runs).map(|run| run.sent).sum();
    Some(format!(
        "the kernel stamps packets for both methods ({} of {} packets were stamped by a program), and the median difference \
         of the two delays of a packet is {} or less",
        count(late),
        count(sent),
        duration(most)
    ))
}

/// Of a mesh, whose results are those of seconds.
fn same_shortest(runs: &Runs<Measured>) -> Option<String> {
    let differences = all(runs).map(|run| run.differences_ns()[MIN].abs());
    let most = differences.filter(|it| it.is_finite()).reduce(f64::max)?;
    Some(format!(
        "both tasks subtract stamps of the same clock, and their min delays of the same packets differ by {} or less",
        duration(most)
    ))
}

fn mean_is_off(runs: &Runs<Measured>) -> Claim {
    let difference = |run: &Measured| run.differences_ns()[MEAN].abs();
    let lead = each_cell(runs, |run| difference(run) - LARGE_NS);
    let means = each_cell(runs, difference);
    let means: Vec<_> = means.into_iter().flatten().map(|it| duration(it.mean)).collect();
    let numbers = if means.is_empty() {
        String::new()
    } else {
        format!("mean difference of the runs: {}", means.join(", "))
    };
    let claim = "the error of the active mean delay is milliseconds";
    Claim::of(claim, lead, &numbers).caused_by(|| calculation(runs))
}

fn passive_sees_more(runs: &Runs<Measured>) -> Claim {
    let more = |run: &Measured| real(run.at_b) - real(run.active_received);
    // By half a packet at least.
    let lead = each_cell(runs, |run| more(run) - 0.5);
    let most = all(runs).map(more).reduce(f64::max);
    let numbers =
        most.map_or_else(String::new, |most| format!("max {most} more (paper: 49 to 852)"));
    let claim = "the passive measurement counts more packets at the far end than the active one";
    let reflected: u64 = all(runs).map(|run| run.reflected).sum();
    let at_b: u64 = all(runs).map(|run| run.at_b).sum();
    let cause = || {
        Some(format!(
            "the far end answered {} of the {} packets that the capture there counted, and each answer carries a counter of \
             the answers",
            count(reflected),
            count(at_b)
        ))
    };
    Claim::of(claim, lead, &numbers).caused_by(cause)
}
