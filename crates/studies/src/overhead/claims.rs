//! Claims of the paper, and their verdicts here.

use super::findings::overheads;
use super::packets::Stamped;
use super::paper::{Method, PUBLISHED, Published, Traffic};
use super::series;
use crate::experiment::{Claim, Estimate, Runs, deviation, mean};
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
}

const MEASURES: [Measure; 3] = [
    Measure {
        claim: "a raw stamp has less overhead than one of ktime",
        of: mean,
        lead: |ktime, raw| ktime - raw,
        text: duration,
        published: Some(|method, pattern| Some(published(method, pattern)?.mean_ns)),
    },
    Measure {
        claim: "the overhead of a raw stamp deviates less",
        of: deviation,
        // The variance of logarithms of deviations does not depend on their size (Bartlett and Kendall, "The
        // statistical analysis of variance-heterogeneity", 1946). In differences of deviations, one interrupt
        // would hide everything else.
        lead: |ktime, raw| (ktime / raw).ln(),
        text: duration,
        published: Some(|method, pattern| Some(published(method, pattern)?.variance)),
    },
    Measure {
        claim: "with raw stamps the overhead of a packet predicts the next better, by the auto-correlation",
        of: |run| series::autocorrelation(run, 1)?.first().copied(),
        lead: |ktime, raw| raw - ktime,
        text: |correlation| format!("{correlation:.2}").replace('-', "\u{2212}"),
        published: None,
    },
];

fn published(method: Method, pattern: Traffic) -> Option<Published> {
    PUBLISHED.into_iter().find(|row| row.method == method && row.pattern == pattern)
}

/// The paper's claims with verdicts from complete repetitions in user space.
pub(super) fn claims(runs: &Runs<Stamped>) -> Vec<Claim> {
    MEASURES.iter().map(|measure| measure.claim(runs)).collect()
}

impl Measure {
    fn claim(&self, runs: &Runs<Stamped>) -> Claim {
        // Both patterns of ktime, then both of raw.
        let responses = runs.responses(|run| (self.of)(&overheads(run)));
        let [ktime_call, ktime_video, raw_call, raw_video] =
            responses.try_into().unwrap_or_default();
        let pairs = [(ktime_call, raw_call), (ktime_video, raw_video)];
        let lead = pairs.each_ref().map(|(ktime, raw)| self.lead(ktime, raw));
        let compared = Traffic::ALL.into_iter().zip(&pairs);
        let compared = compared.filter_map(|(pattern, of)| self.compared(pattern, of));
        let compared: Vec<_> = compared.collect();
        let numbers = compared.join(", ");
        let numbers =
            if numbers.is_empty() { numbers } else { format!("in user space, {numbers}") };
        Claim::of(self.claim, lead.into(), &numbers)
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
