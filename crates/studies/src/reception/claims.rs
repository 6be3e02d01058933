//! Claims of the paper, and their verdicts here.

use super::cells::{Conditions, STEADY};
use super::findings::{Response, error_deviation, fluctuation_p999, median_deviation};
use super::line_rate::Arrived;
use super::paper::{FIGURE_2, FIGURES_5_AND_6, FRAME_BYTES, SPEEDS};
use crate::experiment::{Cell, Claim, Estimate, Runs, mean};
use crate::replicas::Block;
use wirestamp_report::estimate::decimal;
use wirestamp_report::format::{count, duration};

/// The techniques whose stamps, according to the paper, deviate more with a stressed CPU.
const HURT: [&str; 2] = ["ring:kernel", "recvmmsg:kernel"];
/// The paper's "XDP".
const XDP: &str = "xdp:xdp";
const MMAP: &str = "ring:kernel";
const LIBPCAP: &str = "libpcap:kernel";
const SYSTEM_CALLS: &str = "recvmmsg:kernel";

/// The max fluctuation that our claim allows.
const STEADY_NS: f64 = 1_000.0;

/// The paper's claims with verdicts from complete repetitions. Deviations are compared by their logarithms,
/// whose variance does not depend on the size (Bartlett and Kendall, "The statistical analysis of
/// variance-heterogeneity", 1946).
///
/// `of_figure_2` are more runs under the conditions of that figure; without them, those among `runs` decide our claim.
pub(super) fn claims(
    runs: &Runs<Block>,
    line_rate: Option<&Runs<Arrived>>,
    of_figure_2: Option<&Runs<Block>>,
) -> Vec<Claim> {
    let data = Data { runs, line_rate, of_figure_2: of_figure_2.unwrap_or(runs) };
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
    of_figure_2: &'a Runs<Block>,
}

impl Data<'_> {
    fn stress_hurts(&self) -> Claim {
        self.of_stress(
            "a stressed CPU makes software stamps of mmap and recvmmsg deviate more",
            &HURT,
        )
    }

    fn stress_spares_xdp(&self) -> Claim {
        self.of_stress(
            "a stressed CPU hardly touches the deviation of XDP's stamps, less than that of mmap's and \
             recvmmsg's",
            &[MMAP, SYSTEM_CALLS, XDP],
        )
    }

    /// A claim about stress on the core that stamps, which is not loaded here.
    fn of_stress(&self, claim: &str, techniques: &[&str]) -> Claim {
        let mut reason = "stress runs on the cores of the captures only; the softIRQ that stamps these packets runs on the \
                          core of the sender, so that nothing here loads the core that stamps"
            .to_owned();
        let numbers = self.deviations(techniques);
        if !numbers.is_empty() {
            reason += &format!(" (deviation of the error: {numbers}{})", self.medians(techniques));
        }
        let requirement = "a sender on another machine, or a third core for the softIRQ, so that the core that stamps \
                           can be stressed";
        Claim::not_the_same_question(claim, &reason, requirement)
    }

    /// The ratio of the median of blocks, which rare interruptions of the machine do not change.
    fn medians(&self, techniques: &[&str]) -> String {
        let ratios = techniques.iter().filter_map(|technique| {
            let ratio = self.factor(technique, median_deviation)?;
            Some(format!("{ratio:.2} with {technique}"))
        });
        let ratios: Vec<_> = ratios.collect();
        if ratios.is_empty() {
            return String::new();
        }
        format!("; stressed divided by idle, of the medians of blocks: {}", ratios.join(", "))
    }

    fn system_calls_lose(&self) -> Claim {
        self.more_measured(
            "system calls with recvmmsg measure fewer packets than mmap, libpcap and XDP",
            &[MMAP, LIBPCAP, XDP],
            &[SYSTEM_CALLS],
        )
    }

    fn mmap_leads(&self) -> Claim {
        self.more_measured(
            "mmap tends to measure more packets than libpcap and XDP, though not significantly",
            &[MMAP],
            &[LIBPCAP, XDP],
        )
        .caused_by(|| self.losses_of_mmap())
    }

    /// Where mmap's missing frames were lost, and the time per received frame with each technique.
    fn losses_of_mmap(&self) -> Option<String> {
        let mmap = self.at_the_line_rate(MMAP)?;
        let missing = mmap.sent.checked_sub(mmap.captured).filter(|missing| *missing > 0)?;
        let times = [MMAP, LIBPCAP, XDP].into_iter().filter_map(|technique| {
            let ns = self.at_the_line_rate(technique)?.ns_per_received_frame()?;
            Some(format!("{} with {technique}", duration(ns)))
        });
        Some(format!(
            "of the {} frames that {MMAP} did not deliver, {} found no room in the ring of the interface. Elapsed time per \
             received frame, idle and stressed together: {}. That XDP is faster because it takes frames before the \
             network stack was not measured separately",
            count(missing),
            count(mmap.ring_dropped),
            times.collect::<Vec<_>>().join(", ")
        ))
    }

    /// Our claim about the stamps of the kernel, where the paper has ±40 us (Figure 2).
    fn steady(&self) -> Claim {
        let runs = self.of_figure_2;
        let deviations = STEADY
            .map(|technique| responses_at(runs, FIGURE_2, technique, false, fluctuation_p999));
        let below = |of: &Option<Vec<f64>>| {
            let of: Vec<_> = of.as_ref()?.iter().map(|it| STEADY_NS - it).collect();
            Estimate::of(&of)
        };
        let lead = deviations.iter().map(below).collect();
        let words = STEADY.iter().zip(&deviations).filter_map(|(technique, of)| {
            let of = Estimate::of(of.as_ref()?)?;
            let interval = of.ci95.map_or_else(String::new, |ci95| {
                let (low, high) = ((of.mean - ci95).max(0.0), of.mean + ci95);
                format!(" (95 % interval {} to {})", duration(low), duration(high))
            });
            Some(format!("{technique} ±{}{interval}", duration(of.mean)))
        });
        let numbers = words.collect::<Vec<_>>().join(", ");
        let claim = "stamps of the kernel and of XDP fluctuate by at most 1 us on an idle CPU, from 0.1 % to 99.9 % \
                     of the packets";
        Claim::goal(claim, lead, &numbers)
    }

    /// Claims that each of the `leaders` measures more packets than each of the `others`, idle and stressed.
    fn more_measured(&self, claim: &str, leaders: &[&str], others: &[&str]) -> Claim {
        let pairs = leaders.iter().flat_map(|a| others.iter().map(move |b| (*a, *b)));
        let leads: Vec<_> = pairs
            .map(|(leader, other)| {
                let lead = |stressed| {
                    let share = |technique| self.measured(technique, stressed);
                    difference(&share(leader)?, &share(other)?)
                };
                ((leader, other), [false, true].map(lead))
            })
            .collect();
        let shares = [others, leaders].concat().into_iter().filter_map(|technique| {
            let share = |stressed| mean(&self.measured(technique, stressed)?);
            Some(format!("{technique} {:.2} % idle, {:.2} % stressed", share(false)?, share(true)?))
        });
        let differences = leads.iter().filter_map(|((leader, other), lead)| {
            let [idle, stressed] = lead.map(|lead| lead.map(|it| decimal(it, 1)));
            Some(format!("{leader} minus {other} {} points idle, {} stressed", idle?, stressed?))
        });
        let numbers: Vec<_> = shares.chain(differences).collect();
        let lead = leads.iter().flat_map(|(_, lead)| *lead).collect();
        Claim::of(claim, lead, &numbers.join("; "))
    }

    /// The deviations of techniques, idle and stressed, in words, and their mean ratio.
    fn deviations(&self, techniques: &[&str]) -> String {
        let (frame_bytes, speed) = FIGURES_5_AND_6;
        let words = techniques.iter().filter_map(|technique| {
            let of = |stressed| mean(&self.responses(technique, stressed, error_deviation)?);
            let [idle, stressed] = [of(false)?, of(true)?].map(duration);
            let factor = self.factor(technique, error_deviation)?;
            Some(format!(
                "{technique}, {frame_bytes} bytes at {speed}: {idle} idle, {stressed} stressed; stressed divided by idle, \
                 geometric mean of all sizes and speeds: {factor:.2}"
            ))
        });
        words.collect::<Vec<_>>().join("; ")
    }

    /// Ratio of a figure with stress to that without, the geometric mean over all packets and repetitions.
    fn factor(&self, technique: &str, of: Response) -> Option<f64> {
        mean(&self.with_stress(technique, of)?).map(f64::exp)
    }

    /// Ratio of a figure with stress to that without, as logarithms by repetition, each the mean over the packets of all sizes
    /// and speeds.
    fn with_stress(&self, technique: &str, of: Response) -> Option<Vec<f64>> {
        let all = FRAME_BYTES.into_iter().flat_map(|bytes| SPEEDS.map(|speed| (bytes, speed.name)));
        let ratios = |packets| {
            let with = |stressed| responses_at(self.runs, packets, technique, stressed, of);
            let ratio = |(stressed, idle): (f64, f64)| (stressed / idle).ln();
            let ratios: Vec<_> = with(true)?.into_iter().zip(with(false)?).map(ratio).collect();
            ratios.iter().all(|it| it.is_finite()).then_some(ratios)
        };
        let of_packets: Vec<_> = all.filter_map(ratios).collect();
        let repetitions = of_packets.iter().map(Vec::len).min()?;
        let of_repetition = |at: usize| {
            mean(
                &of_packets.iter().filter_map(|ratios| ratios.get(at).copied()).collect::<Vec<_>>(),
            )
        };
        (0..repetitions).map(of_repetition).collect()
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

    /// The sum of the runs of a technique at the line rate, idle and stressed; none without runs.
    fn at_the_line_rate(&self, technique: &str) -> Option<Arrived> {
        let runs = self.line_rate?;
        let cells = runs.design.cells();
        let is_of = |cell: &Cell| {
            let conditions = Conditions::of(&runs.design, cell);
            conditions.is_some_and(|it| {
                [false, true].into_iter().any(|load| it.is(technique, FIGURES_5_AND_6, load))
            })
        };
        let cells = cells.iter().enumerate().filter(|(_, cell)| is_of(cell));
        cells.flat_map(|(index, _)| runs.of_cell(index).flatten().copied()).reduce(Arrived::plus)
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
