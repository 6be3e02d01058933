//! Claims of the paper, and their verdicts here.

use super::cells::Conditions;
use super::findings::{Response, error_deviation, fluctuation_p999};
use super::line_rate::Arrived;
use super::paper::{FIGURE_2, FIGURES_5_AND_6};
use crate::experiment::{Cell, Claim, Estimate, Runs, mean};
use crate::replicas::Block;
use wirestamp_report::format::duration;

/// The techniques whose stamps, according to the paper, are less accurate with a stressed CPU.
const HURT: [&str; 2] = ["ring:kernel", "recvmmsg:kernel"];
/// The paper's "XDP".
const XDP: &str = "xdp:xdp";
const MMAP: &str = "ring:kernel";
const SYSTEM_CALLS: &str = "recvmmsg:kernel";

/// The techniques of our claim, and the max fluctuation that it allows.
const STEADY: [&str; 2] = ["ring:kernel", "xdp-pass:xdp"];
const STEADY_NS: f64 = 1_000.0;

/// The paper's claims with verdicts from complete repetitions. Deviations are compared by their logarithms,
/// whose variance does not depend on the size (Bartlett and Kendall, "The statistical analysis of
/// variance-heterogeneity", 1946).
pub(super) fn claims(runs: &Runs<Block>, line_rate: Option<&Runs<Arrived>>) -> Vec<Claim> {
    let data = Data { runs, line_rate };
    vec![
        data.stress_hurts(),
        data.stress_spares_xdp(),
        data.system_calls_lose(),
        data.mmap_leads(),
        data.steady(),
    ]
}

struct Data<'a> {
    runs: &'a Runs<Block>,
    line_rate: Option<&'a Runs<Arrived>>,
}

impl Data<'_> {
    fn stress_hurts(&self) -> Claim {
        let lead = HURT.map(|technique| {
            let logarithms = self.with_stress(technique)?;
            Estimate::of(&logarithms)
        });
        Claim::of(
            "a stressed CPU makes software stamps of mmap and recvmmsg deviate more",
            lead.into(),
            &self.deviations(&HURT),
        )
    }

    fn stress_spares_xdp(&self) -> Claim {
        let lead = HURT.map(|technique| {
            let (theirs, xdp) = (self.with_stress(technique)?, self.with_stress(XDP)?);
            difference(&theirs, &xdp)
        });
        Claim::of(
            "a stressed CPU hardly touches the deviation of XDP's stamps, less than that of mmap's and \
             recvmmsg's",
            lead.into(),
            &self.deviations(&[XDP]),
        )
    }

    fn system_calls_lose(&self) -> Claim {
        self.more_measured(
            "system calls with recvmmsg measure fewer packets than mmap, libpcap and XDP",
            &["ring:kernel", "libpcap:kernel", XDP],
            &[SYSTEM_CALLS],
        )
    }

    fn mmap_leads(&self) -> Claim {
        self.more_measured(
            "mmap tends to measure more packets than libpcap and XDP, though not significantly",
            &[MMAP],
            &["libpcap:kernel", XDP],
        )
    }

    /// Our claim about the stamps of the kernel, where the paper has ±40 us (Figure 2).
    fn steady(&self) -> Claim {
        let deviations = STEADY
            .map(|technique| responses_at(self.runs, FIGURE_2, technique, false, fluctuation_p999));
        let below = |of: &Option<Vec<f64>>| {
            let of: Vec<_> = of.as_ref()?.iter().map(|it| STEADY_NS - it).collect();
            Estimate::of(&of)
        };
        let lead = deviations.iter().map(below).collect();
        let words = STEADY.iter().zip(&deviations).filter_map(|(technique, of)| {
            Some(format!("{technique} ±{}", duration(mean(of.as_ref()?)?)))
        });
        let numbers = words.collect::<Vec<_>>().join(", ");
        let claim = "stamps of the kernel and of XDP fluctuate by at most 1 us on an idle CPU, from 0.1 % to 99.9 % \
                     of the packets";
        Claim::goal(claim, lead, &numbers)
    }

    /// Claims that each of the `leaders` measures more packets than each of the `others`, idle and stressed.
    fn more_measured(&self, claim: &str, leaders: &[&str], others: &[&str]) -> Claim {
        let pairs = leaders.iter().flat_map(|a| others.iter().map(move |b| (*a, *b)));
        let pairs = pairs.flat_map(|pair| [(pair, false), (pair, true)]);
        let lead = pairs.map(|((leader, other), stressed)| {
            let share = |technique| self.measured(technique, stressed);
            difference(&share(leader)?, &share(other)?)
        });
        let numbers = [others, leaders].concat().into_iter().filter_map(|technique| {
            let share = |stressed| mean(&self.measured(technique, stressed)?);
            Some(format!("{technique} {:.2} % idle, {:.2} % stressed", share(false)?, share(true)?))
        });
        Claim::of(claim, lead.collect(), &numbers.collect::<Vec<_>>().join("; "))
    }

    /// The deviations of techniques, idle and stressed, in words.
    fn deviations(&self, techniques: &[&str]) -> String {
        let words = techniques.iter().filter_map(|technique| {
            let of = |stressed| mean(&self.responses(technique, stressed, error_deviation)?);
            let [idle, stressed] = [of(false)?, of(true)?].map(duration);
            Some(format!("{technique} {idle} idle, {stressed} stressed"))
        });
        words.collect::<Vec<_>>().join("; ")
    }

    /// Ratio of the deviation of a technique with stress to that without, as logarithms by repetition.
    fn with_stress(&self, technique: &str) -> Option<Vec<f64>> {
        let of = |stressed| self.responses(technique, stressed, error_deviation);
        let ratio = |(stressed, idle): (f64, f64)| (stressed / idle).ln();
        Some(of(true)?.into_iter().zip(of(false)?).map(ratio).collect())
    }

    /// The share of the packets that a technique measures at the line rate, in percent, by repetition.
    fn measured(&self, technique: &str, stressed: bool) -> Option<Vec<f64>> {
        responses_at(
            self.line_rate?,
            FIGURES_5_AND_6,
            technique,
            stressed,
            Arrived::measured_percent,
        )
    }

    /// A figure of each run of a technique under the conditions of Figures 5 and 6, by repetition; none
    /// if there is no such cell, or it has no whole repetition.
    fn responses(&self, technique: &str, stressed: bool, of: Response) -> Option<Vec<f64>> {
        responses_at(self.runs, FIGURES_5_AND_6, technique, stressed, of)
    }
}

/// A figure of each run of a technique for packets of a size, at a speed, by repetition; none if there is no such cell, or it
/// has no whole repetition.
fn responses_at<S>(
    runs: &Runs<S>,
    packets: (u16, &str),
    technique: &str,
    stressed: bool,
    of: fn(&[S]) -> Option<f64>,
) -> Option<Vec<f64>> {
    let is_it = |cell: &Cell| {
        Conditions::of(&runs.design, cell).is_some_and(|it| it.is(technique, packets, stressed))
    };
    let cell = runs.design.cells().iter().position(is_it)?;
    let responses = runs.responses(of).swap_remove(cell);
    (!responses.is_empty() && responses.iter().all(|it| it.is_finite())).then_some(responses)
}

/// One minus the other, within each repetition.
fn difference(one: &[f64], other: &[f64]) -> Option<Estimate> {
    Estimate::of(&one.iter().zip(other).map(|(one, other)| one - other).collect::<Vec<_>>())
}
