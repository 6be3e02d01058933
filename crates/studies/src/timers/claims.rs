//! Claims of the paper, and their verdicts here.

use super::elsewhere::Elsewhere;
use super::findings::{Costs, TimersResult};
use super::measured::Measured;
use super::paper::{PUBLISHED, Published, Timer};
use super::reads::CostCount;
use super::tally::Cost;
use crate::experiment::{Claim, Estimate, Runs};
use wirestamp_report::format::duration;

/// A figure of two timers, the first of which the paper finds to be lower.
struct Comparison {
    claim: &'static str,
    lower: Timer,
    higher: Timer,
    of: Figure,
}

/// Compared figure.
#[derive(Clone, Copy)]
enum Figure {
    Mean,
    Deviation,
}

const COMPARISONS: [Comparison; 4] = [
    Comparison {
        claim: "a read of the TSC costs less than one of the OS timer",
        lower: Timer::Tsc,
        higher: Timer::Os,
        of: Figure::Mean,
    },
    Comparison {
        claim: "the cost of a read of the TSC deviates less than that of the OS timer",
        lower: Timer::Tsc,
        higher: Timer::Os,
        of: Figure::Deviation,
    },
    Comparison {
        claim: "a read of the TSC costs less than one of the HPET",
        lower: Timer::Tsc,
        higher: Timer::Hpet,
        of: Figure::Mean,
    },
    Comparison {
        claim: "the cost of a read of the TSC deviates less than that of the HPET",
        lower: Timer::Tsc,
        higher: Timer::Hpet,
        of: Figure::Deviation,
    },
];

/// Where the kernel keeps time by the TSC, as in Table 1.
const BY_TSC: Comparison = Comparison {
    claim: "the OS timer costs less than the HPET where the kernel keeps time by the TSC",
    lower: Timer::Os,
    higher: Timer::Hpet,
    of: Figure::Mean,
};

/// Where it keeps time by the HPET, as in Table 2.
const BY_HPET: Comparison = Comparison {
    claim: "the OS timer costs more than the HPET where the kernel keeps time by the HPET",
    lower: Timer::Hpet,
    higher: Timer::Os,
    of: Figure::Mean,
};

/// The paper's claims with verdicts from the runs. The kernel keeps time by `clocksource`.
pub(super) fn claims(
    runs: &Runs<CostCount>,
    findings: &TimersResult,
    clocksource: &str,
) -> Vec<Claim> {
    let compared = COMPARISONS.iter().map(|comparison| comparison.claim(runs, findings));
    let by_clocksource = [("tsc", BY_TSC), ("hpet", BY_HPET)].map(|(source, comparison)| {
        if source == clocksource {
            comparison.claim(runs, findings)
        } else {
            comparison.under_another(clocksource, source, findings)
        }
    });
    compared.chain(by_clocksource).chain([peaks(runs, findings)]).collect()
}

impl Comparison {
    fn claim(&self, runs: &Runs<CostCount>, findings: &TimersResult) -> Claim {
        let lacks = |timer: &Timer| findings.timer(*timer).is_none_or(|way| !way.is_available());
        if let Some(timer) = [self.lower, self.higher].into_iter().find(lacks) {
            return self.without(timer, findings);
        }
        if let Some(reason) = self.deviations_of_steps(findings) {
            let requirement = "a counter whose step is smaller than the deviation of a read";
            return Claim::not_the_same_question(self.claim, &reason, requirement);
        }
        let numbers = self.numbers(findings);
        Claim::of(self.claim, vec![self.lead(runs, findings)], &numbers)
    }

    /// Why deviations do not compare the costs: none is above a step of the counter, and rounding to steps alone deviates by up
    /// to half a step. None if one is.
    fn deviations_of_steps(&self, findings: &TimersResult) -> Option<String> {
        let Figure::Deviation = self.of else { return None };
        let [lower, higher] =
            [findings.cost(self.lower)?, findings.cost(self.higher)?].map(|cost| cost.stddev);
        let step = findings.timer(Timer::Tsc)?.step_ns?;
        (lower.max(higher) <= step).then(|| {
            format!(
                "the counter of this machine advances in steps of {}; the deviations ({} and {}) are not above it, so that \
                 they are those of the steps rather than of the cost",
                duration(step),
                duration(lower),
                duration(higher)
            )
        })
    }

    /// The claim on a machine that has no such timer. An emulated one elsewhere has other costs than hardware.
    fn without(&self, timer: Timer, findings: &TimersResult) -> Claim {
        let name = timer.name();
        let elsewhere = findings.beside.as_ref().and_then(|beside| beside.timer(timer));
        let cost = elsewhere.and_then(|way| Some((way.emulated_by.as_deref()?, way.filtered?)));
        let emulated = cost.map_or_else(String::new, |(by, cost)| {
            format!(" (emulated by {by} on another, a read costs {})", duration(cost.mean))
        });
        let reason = format!("this machine has no {name}{emulated}");
        let requirement = "hardware whose HPET a program may map";
        Claim::not_the_same_question(self.claim, &reason, requirement)
    }

    /// The claim on a machine whose kernel keeps time by `here` and not by `required`.
    fn under_another(&self, here: &str, required: &str, findings: &TimersResult) -> Claim {
        let elsewhere = findings.beside.as_ref().and_then(|it| self.elsewhere(required, it));
        let here = if here.is_empty() { "an unknown clock source" } else { here };
        let reason = format!(
            "the kernel of this machine keeps time by {here}, not by {required}{}",
            elsewhere.unwrap_or_default()
        );
        let requirement = format!(
            "hardware whose HPET a program may map, and a kernel that keeps time by {required}"
        );
        Claim::not_the_same_question(self.claim, &reason, &requirement)
    }

    /// Text with what an emulated machine measured whose kernel keeps time by `clocksource`: both timers, or else the
    /// comparison in the survey of its sources.
    fn elsewhere(&self, clocksource: &str, beside: &Elsewhere) -> Option<String> {
        let [lower, higher] = [self.lower, self.higher].map(|timer| beside.timer(timer));
        let either =
            lower.or(higher).filter(|_| beside.circumstances.clocksource == clocksource)?;
        let by = either.emulated_by.as_deref()?;
        let both = lower.and_then(|way| way.filtered).zip(higher.and_then(|way| way.filtered));
        let numbers = match both {
            Some((lower, higher)) => {
                let [low, high] = [lower, higher].map(|it| self.of.text(it.mean, it.stddev));
                format!("{low} against {high}, a ratio of {:.1}", higher.mean / lower.mean)
            }
            None => either.reason.rsplit("chosen: ").next()?.to_owned(),
        };
        let published: Vec<_> = PUBLISHED
            .iter()
            .filter(|it| it.clocksource == clocksource)
            .filter_map(|it| self.in_table(it))
            .collect();
        Some(format!(
            " (that of another, emulated by {by}, does: {numbers}; {}; absolute values are those of the emulation, \
             only the ratio is informative)",
            published.join(", ")
        ))
    }

    /// Difference between higher and lower timer, within each run.
    fn lead(&self, runs: &Runs<CostCount>, findings: &TimersResult) -> Option<Estimate> {
        let [lower, higher] = [self.lower, self.higher].map(|timer| findings.timer(timer));
        let (lower, higher) = (lower?, higher?);
        estimate(runs, |run| {
            let [lower, higher] = [lower, higher].map(|way| Costs::of(way, run));
            Some(self.of.lead(lower?.filtered, higher?.filtered))
        })
    }

    /// Text with the values of both timers, here and in the paper's tables.
    fn numbers(&self, findings: &TimersResult) -> String {
        let text = |cost: Option<Cost>| cost.map(|cost| self.of.text(cost.mean, cost.stddev));
        let [Some(lower), Some(higher)] =
            [self.lower, self.higher].map(|timer| text(findings.cost(timer)))
        else {
            return String::new();
        };
        let published: Vec<_> =
            findings.published.iter().filter_map(|it| self.in_table(it)).collect();
        format!("{lower} against {higher} ({})", published.join(", "))
    }

    fn in_table(&self, published: &Published) -> Option<String> {
        let cost = |timer| published.cost(timer).map(|cost| self.of.text(cost.mean, cost.stddev));
        let (lower, higher) = (cost(self.lower)?, cost(self.higher)?);
        Some(format!("{}: {lower} against {higher}", published.table))
    }
}

impl Figure {
    fn lead(self, lower: Cost, higher: Cost) -> f64 {
        match self {
            Self::Mean => higher.mean - lower.mean,
            // The variance of logarithms of deviations does not depend on their size, see `overhead`.
            Self::Deviation => (higher.stddev / lower.stddev).ln(),
        }
    }

    fn text(self, mean: f64, stddev: f64) -> String {
        duration(match self {
            Self::Mean => mean,
            Self::Deviation => stddev,
        })
    }
}

/// "Rarely occurring peak values" destroy "mean and especially standard deviation values", "with all
/// time sources".
fn peaks(runs: &Runs<CostCount>, findings: &TimersResult) -> Claim {
    let is_read = |way: &&Measured| way.is_available();
    let way = |timer| findings.timer(timer).filter(is_read);
    let missing = Timer::ALL.into_iter().filter(|timer| way(*timer).is_none());
    let missing = missing.map(|timer| format!("; the {} was not measured", timer.name()));
    let missing: Vec<_> = missing.collect();
    let timers = Timer::ALL.into_iter().filter_map(|timer| Some((timer, way(timer)?)));
    let grown = |way: &Measured, of: fn(f64, f64) -> f64| {
        estimate(runs, |run| {
            let Costs { filtered, unfiltered, .. } = Costs::of(way, run)?;
            let mean = unfiltered.mean / filtered.mean;
            Some(of(mean, unfiltered.stddev / filtered.stddev))
        })
    };
    let (mut lead, mut numbers) = (Vec::new(), Vec::new());
    for (timer, way) in timers {
        lead.push(grown(way, |mean, deviation| (deviation / mean).ln()));
        let times = [grown(way, |mean, _| mean), grown(way, |_, deviation| deviation)];
        if let [Some(mean), Some(deviation)] = times {
            let (name, mean, deviation) = (timer.name(), mean.mean, deviation.mean);
            numbers.push(format!("{mean:.2} and {deviation:.0} times for the {name}"));
        }
    }
    let claim = "rare peaks raise the mean, and the standard deviation even more, for every source";
    let mut numbers = numbers.join(", ");
    if !numbers.is_empty() {
        numbers += &format!(" (mean of the runs){}", missing.concat());
    }
    Claim::of(claim, lead, &numbers)
}

/// The mean of `of` over all runs with a finite value.
fn estimate(runs: &Runs<CostCount>, of: impl Fn(&[CostCount]) -> Option<f64>) -> Option<Estimate> {
    let values: Vec<_> = runs.of_cell(0).filter_map(of).filter(|value| value.is_finite()).collect();
    Estimate::of(&values)
}
