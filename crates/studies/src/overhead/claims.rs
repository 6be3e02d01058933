//! Claims of the paper, and their verdicts here.

use super::findings::{CellFindings, overheads};
use super::kernel_stamp::AddedByClock;
use super::packets::Stamped;
use super::paper::{Method, PUBLISHED, Published, Traffic};
use super::series::{self, deviation_of_999};
use crate::experiment::{Claim, Estimate, Runs, mean};
use wirestamp_report::format::duration;

/// A figure of a run by which the methods are compared.
struct Measure {
    claim: &'static str,
    of: fn(&[f64]) -> Option<f64>,
    /// The lead of raw stamps, from the values of ktime and of raw.
    lead: fn(f64, f64) -> f64,
    /// How it is written.
    text: fn(f64) -> String,
    /// Value in the paper's tables.
    published: Option<fn(Method, Traffic) -> Option<f64>>,
    /// The lead of the counter over ktime as clock of the kernel's events.
    in_softirq: fn(&AddedByClock) -> Option<Estimate>,
    /// Whether that lead can answer the question: what else is in the interval between two events must not hide it.
    decides: bool,
    /// How that lead is written.
    lead_text: fn(f64) -> String,
}

const MEASURES: [Measure; 3] = [
    Measure {
        claim: "a raw stamp has less overhead than one of ktime",
        of: mean,
        lead: |ktime, raw| ktime - raw,
        text: duration,
        published: Some(|method, pattern| Some(published(method, pattern)?.mean_ns)),
        in_softirq: |ktime| ktime.middle_mean_ns,
        decides: true,
        lead_text: |ns| format!("ktime takes {} longer (mean of the middle half)", duration(ns)),
    },
    Measure {
        claim: "the overhead of a raw stamp deviates less",
        // Without the longest thousandth, whose causes the report lists: one packet of these would hide all others.
        of: deviation_of_999,
        // The variance of logarithms of deviations does not depend on their size (Bartlett and Kendall, "The
        // statistical analysis of variance-heterogeneity", 1946).
        lead: |ktime, raw| (ktime / raw).ln(),
        text: duration,
        published: Some(|method, pattern| Some(published(method, pattern)?.variance)),
        in_softirq: |ktime| ktime.log_deviation_ratio,
        decides: false,
        lead_text: |log| {
            format!("the deviation with ktime is {:.2} times that with the counter", log.exp())
        },
    },
    Measure {
        claim: "with raw stamps the overhead of a packet predicts the next better, by the auto-correlation",
        of: |run| series::autocorrelation(run, 1)?.first().copied(),
        lead: |ktime, raw| raw - ktime,
        text: |correlation| format!("{correlation:.2}").replace('-', "\u{2212}"),
        published: None,
        in_softirq: |ktime| ktime.autocorrelation.map(negated),
        decides: true,
        lead_text: |lead| {
            format!("{lead:+.2} with the counter against ktime").replace('-', "\u{2212}")
        },
    },
];

fn published(method: Method, pattern: Traffic) -> Option<Published> {
    PUBLISHED.into_iter().find(|row| row.method == method && row.pattern == pattern)
}

/// The estimate of the difference in the other direction.
fn negated(Estimate { mean, ci95, .. }: Estimate) -> Estimate {
    Estimate::new(-mean, ci95)
}

/// The paper's claims, with verdicts from complete repetitions in user space, and in the softIRQ where events were
/// recorded. `ktime` is what it adds to an event above the counter; `cells` are those of user space.
pub(super) fn claims(
    runs: &Runs<Stamped>,
    ktime: Option<&AddedByClock>,
    cells: &[CellFindings],
) -> Vec<Claim> {
    let [overhead, deviation, memory] = MEASURES.map(|measure| measure.claim(runs, ktime));
    vec![overhead, deviation, memory.caused_by(|| steps_of_the_counter(cells))]
}

/// An overhead that does not change has one of two values, a step of the counter apart, by the phase of the counter at the
/// first checkpoint, which is another one for each packet.
fn steps_of_the_counter(cells: &[CellFindings]) -> Option<String> {
    let share = |method, pattern| {
        let cell = cells.iter().find(|it| (it.method, it.pattern) == (method, pattern))?;
        Some(format!("{:.1} %", 100.0 * cell.share_of_two_values?))
    };
    let compared = |pattern: Traffic| {
        let [raw, ktime] = [Method::Raw, Method::Ktime].map(|method| share(method, pattern));
        Some(format!("{} with raw and {} with ktime for the {}", raw?, ktime?, pattern.name()))
    };
    let shares: Vec<_> = Traffic::ALL.into_iter().filter_map(compared).collect();
    (!shares.is_empty()).then(|| {
        format!(
            "most overheads have one of two values, a step of the counter apart ({}): they are constant, and their \
             auto-correlation is that of the counter's phase",
            shares.join(", ")
        )
    })
}

impl Measure {
    fn claim(&self, runs: &Runs<Stamped>, ktime: Option<&AddedByClock>) -> Claim {
        // Both patterns of ktime, then both of raw.
        let responses = runs.responses(|run| (self.of)(&overheads(run)));
        let [ktime_call, ktime_video, raw_call, raw_video] =
            responses.try_into().unwrap_or_default();
        let pairs = [(ktime_call, raw_call), (ktime_video, raw_video)];
        let mut lead: Vec<_> = pairs.iter().map(|(ktime, raw)| self.lead(ktime, raw)).collect();
        let compared = Traffic::ALL.into_iter().zip(&pairs);
        let compared = compared.filter_map(|(pattern, of)| self.compared(pattern, of));
        let compared: Vec<_> = compared.collect();
        let numbers = compared.join(", ");
        let mut numbers =
            if numbers.is_empty() { numbers } else { format!("in user space, {numbers}") };
        if let Some(in_softirq) = ktime.and_then(self.in_softirq) {
            numbers += &format!(
                "; in the softIRQ, as clock of an event, {}",
                (self.lead_text)(in_softirq.mean)
            );
            if self.decides {
                lead.push(Some(in_softirq));
            } else {
                numbers += ", but what else is between two events deviates more than both, so that it decides nothing";
            }
        }
        Claim::of(self.claim, lead, &numbers)
    }

    /// Text with the values of raw and ktime for a pattern, and the paper's; none without values.
    fn compared(&self, pattern: Traffic, (ktime, raw): &(Vec<f64>, Vec<f64>)) -> Option<String> {
        let text = |values: &[f64]| {
            let finite: Vec<_> = values.iter().copied().filter(|v| v.is_finite()).collect();
            mean(&finite).map(self.text)
        };
        let mut compared =
            format!("{} against {} for the {}", text(raw)?, text(ktime)?, pattern.name());
        if let Some(published) = self.published {
            let [raw, ktime] =
                [Method::Raw, Method::Ktime].map(|method| published(method, pattern));
            let [raw, ktime] = [raw?, ktime?].map(self.text);
            compared += &format!(" (paper: {raw} against {ktime})");
        }
        Some(compared)
    }

    /// The lead of raw within a repetition. Runs without a value are left out.
    fn lead(&self, ktime: &[f64], raw: &[f64]) -> Option<Estimate> {
        let lead = |(ktime, raw): (&f64, &f64)| (self.lead)(*ktime, *raw);
        let leads: Vec<_> = ktime.iter().zip(raw).map(lead).filter(|l| l.is_finite()).collect();
        Estimate::of(&leads)
    }
}
