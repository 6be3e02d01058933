//! Claims of the paper and of this project about loss in the softIRQ, and their verdicts here.

use super::SoftirqRound;
use super::contender::Contender;
use super::scale::SoftirqScale;
use crate::experiment::{Claim, Estimate, Runs, mean};

/// Loss that counts as no more than another's, in percentage points above it.
const NO_MORE: f64 = 1.0;

/// Loss of the other capture from which ours is to lose at most a tenth of it, in percent.
const MUCH: f64 = 10.0;

/// All claims, with verdicts from complete repetitions. Those of this project are about the conditions with a gap, under
/// which the load is the same for all.
pub(in crate::loss) fn claims(runs: &Runs<SoftirqRound>, size: SoftirqScale) -> Vec<Claim> {
    let with_gap = size.frame_bytes.iter().flat_map(|_| size.gaps_ns).map(|gap_ns| *gap_ns > 0);
    let losses = Losses {
        with_gap: with_gap.collect(),
        cells: runs.responses(|run| run.first().map(SoftirqRound::loss_percent)),
        times: runs.responses(|run| run.first()?.softirq_ns_per_packet()),
    };
    let [generic, with_our_buffer] = Contender::GENERIC;
    vec![
        losses.fewer(
            "fewer packets are lost with raw stamps that are converted elsewhere than with generic ktime capture",
            [Contender::RAW_CAPTURE, generic],
        ),
        losses.fewer(
            "a raw stamp of each packet costs the softIRQ fewer packets than one of ktime",
            [Contender::RAW, Contender::KTIME],
        )
        .caused_by(|| losses.costs_of_stamps()),
        losses.no_more("generic ktime capture", generic),
        losses.no_more("that with the buffer of ours", with_our_buffer),
        losses.tenth(generic),
    ]
}

/// The loss of each cell, by repetition.
struct Losses {
    /// Whether each condition has a gap between packets.
    with_gap: Vec<bool>,
    /// By contender, then by condition.
    cells: Vec<Vec<f64>>,
    /// CPU time of the softIRQ for a packet, in nanoseconds; in the same order.
    times: Vec<Vec<f64>>,
}

impl Losses {
    /// The paper's claim that the first of two loses fewer packets, by the mean over all conditions.
    fn fewer(&self, claim: &str, [first, second]: [usize; 2]) -> Claim {
        let [of_first, of_second] = [first, second].map(|it| self.by_repetition(it));
        let lead: Vec<_> = of_first.iter().zip(&of_second).map(|(a, b)| b - a).collect();
        let means = mean(&of_first).zip(mean(&of_second));
        let numbers = means.map(|(a, b)| format!("{a:.2} % against {b:.2} % of all packets"));
        Claim::of(claim, vec![Estimate::of(&lead)], &numbers.unwrap_or_default())
    }

    /// The CPU time of the softIRQ with each stamp, if a raw one costs more.
    fn costs_of_stamps(&self) -> Option<String> {
        let time = |contender| {
            let cells = self.part(&self.times, contender).iter();
            mean(&cells.filter_map(|cell| mean(cell)).collect::<Vec<_>>())
        };
        let (nothing, raw) = (time(Contender::NOTHING)?, time(Contender::RAW)?);
        let ktime = time(Contender::KTIME)?;
        (raw > ktime).then(|| {
            format!(
                "a raw stamp takes more CPU time here: the softIRQ needs {raw:.0} ns a packet with it, {ktime:.0} ns with \
                 ktime, {nothing:.0} ns with neither (mean of all conditions). Its BPF program cannot execute the \
                 counter's instruction; it reads the counter by bpf_perf_event_read, which costs more than \
                 bpf_ktime_get_ns"
            )
        })
    }

    /// Our claim of every condition with a gap: neither of our captures loses more than another one.
    fn no_more(&self, name: &str, other: usize) -> Claim {
        let lead = |ours: &f64, other: &f64| other - ours + NO_MORE;
        let leads: Vec<_> =
            self.pairs(other).map(|[ours, other]| each(ours, other, lead)).collect();
        let most = self.pairs(other).filter_map(|[ours, other]| Some(mean(ours)? - mean(other)?));
        let most = most.reduce(f64::max);
        let numbers = most.map(|most| {
            let cells = leads.len();
            if most < 0.0 {
                return format!("in each of {cells} cells at least {:.2} points less", -most);
            }
            format!("in one of {cells} cells {most:.2} points more, in the others less than that")
        });
        let claim = format!(
            "at the same load, ring/kernel and trace-pass/raw lose no more than {name} (here: by {NO_MORE} point or \
             more)"
        );
        Claim::goal(claim, leads, &numbers.unwrap_or_default())
    }

    /// Our claim of the conditions with a gap under which the generic capture loses much.
    fn tenth(&self, generic: usize) -> Claim {
        let is_much = |[_, generic]: &[&[f64]; 2]| mean(generic).is_some_and(|it| it >= MUCH);
        let pairs: Vec<_> = self.pairs(generic).filter(is_much).collect();
        let lead = |ours: &f64, generic: &f64| generic / 10.0 - ours;
        let leads = pairs.iter().map(|[ours, generic]| each(ours, generic, lead)).collect();
        let number = |[ours, generic]: &[&[f64]; 2]| {
            Some(format!("{:.2} % against {:.2} %", mean(ours)?, mean(generic)?))
        };
        let numbers: Vec<_> = pairs.iter().filter_map(number).collect();
        let claim = format!(
            "at the same load, where generic ktime capture loses {MUCH} % or more, ring/kernel and trace-pass/raw lose \
             at most a tenth of that"
        );
        Claim::goal(claim, leads, &numbers.join(", ")).caused_by(|| self.without_capture(generic))
    }

    /// What is lost without a capture, under the same conditions.
    fn without_capture(&self, generic: usize) -> Option<String> {
        let conditions = self.of(Contender::NOTHING).iter().zip(self.of(generic));
        let conditions = conditions.zip(&self.with_gap).filter(|(_, with_gap)| **with_gap);
        let is_much = |generic: &[f64]| mean(generic).is_some_and(|it| it >= MUCH);
        let losses = conditions.filter(|((_, generic), _)| is_much(generic));
        let losses: Vec<_> = losses.filter_map(|((nothing, _), _)| mean(nothing)).collect();
        let least = losses.iter().copied().reduce(f64::min)?;
        let most = losses.iter().copied().reduce(f64::max)?;
        Some(format!(
            "under these conditions the softIRQ has no time left for a capture: without one it already drops {least:.2} \
             to {most:.2} % of the packets"
        ))
    }

    /// Each of our captures with another one, under each condition with a gap.
    fn pairs(&self, other: usize) -> impl Iterator<Item = [&[f64]; 2]> {
        let both = move |ours| {
            let cells = self.of(ours).iter().zip(self.of(other)).zip(&self.with_gap);
            cells.filter(|(_, with_gap)| **with_gap).map(|(both, _)| both)
        };
        let pairs = [Contender::RING, Contender::RAW_CAPTURE].into_iter().flat_map(both);
        pairs.map(|(ours, other)| [ours.as_slice(), other.as_slice()])
    }

    /// The losses of a contender, by condition.
    fn of(&self, contender: usize) -> &[Vec<f64>] {
        self.part(&self.cells, contender)
    }

    /// The values of a contender, by condition.
    fn part<'a>(&self, values: &'a [Vec<f64>], contender: usize) -> &'a [Vec<f64>] {
        let conditions = self.with_gap.len();
        let first = contender * conditions;
        values.get(first..first + conditions).unwrap_or_default()
    }

    /// The mean loss of a contender over all conditions.
    fn by_repetition(&self, contender: usize) -> Vec<f64> {
        let cells = self.of(contender);
        let repetitions = cells.iter().map(Vec::len).min().unwrap_or(0);
        let of = |repetition| mean(&cells.iter().map(|cell| cell[repetition]).collect::<Vec<_>>());
        (0..repetitions).filter_map(of).collect()
    }
}

/// The lead within each repetition.
fn each(ours: &[f64], generic: &[f64], lead: impl Fn(&f64, &f64) -> f64) -> Option<Estimate> {
    Estimate::of(
        &ours.iter().zip(generic).map(|(ours, generic)| lead(ours, generic)).collect::<Vec<_>>(),
    )
}
