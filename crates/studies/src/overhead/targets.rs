//! This project's targets for the overhead of a raw stamp, beside the paper's Tables I and II.

use super::findings::CellFindings;
use super::paper::{Method, Traffic};
use crate::experiment::{Claim, Estimate};
use wirestamp_report::format::duration;

/// Max mean overhead of a raw stamp, in nanoseconds.
const MEAN_NS: f64 = 30.0;
/// Max standard deviation of a run without the longest thousandth, in nanoseconds.
const DEVIATION_NS: f64 = 4.0;

/// The targets with verdicts, from the cells of user space and those of the first stamp in the softIRQ. The interval of an
/// estimate is that of this number of repetitions.
pub(super) fn targets(
    user_space: &[CellFindings],
    in_softirq: &[CellFindings],
    repetitions: u32,
) -> Vec<Claim> {
    [("in user space", user_space), ("in the softIRQ", in_softirq)]
        .map(|(place, cells)| target(place, cells, repetitions))
        .into()
}

fn target(place: &str, cells: &[CellFindings], repetitions: u32) -> Claim {
    let (mut leads, mut words) = (Vec::new(), Vec::new());
    for pattern in Traffic::ALL {
        for figure in FIGURES {
            let of = |method| figure.of(cells, method, pattern, repetitions);
            let (raw, ktime) = (of(Method::Raw), of(Method::Ktime));
            let below_limit = raw.map(|raw| raw.around(figure.limit - raw.mean));
            let below_ktime = raw.zip(ktime).map(|(raw, ktime)| difference(ktime, raw));
            if let Some((raw, ktime)) = raw.zip(ktime) {
                let is_met = |met: bool| if met { "met" } else { "missed" };
                words.push(format!(
                    "{} for the {}: {} (limit {}: {}; ktime {}: {})",
                    figure.name,
                    pattern.name(),
                    raw.text(duration),
                    duration(figure.limit),
                    is_met(raw.mean <= figure.limit),
                    ktime.text(duration),
                    is_met(raw.mean < ktime.mean),
                ));
            }
            leads.extend([below_limit, below_ktime]);
        }
    }
    let claim = format!(
        "{place}, a raw stamp of each packet meets the targets: an overhead of at most {MEAN_NS:.0} ns in the mean, a \
         deviation of at most {DEVIATION_NS:.0} ns in 99.9 % of the packets, both below those of ktime in the same run"
    );
    Claim::goal(claim, leads, &words.join(", "))
}

/// A figure with a target.
struct Figure {
    name: &'static str,
    limit: f64,
    of: fn(&CellFindings) -> Option<Estimate>,
}

const FIGURES: [Figure; 2] = [
    Figure { name: "mean", limit: MEAN_NS, of: |cell| cell.mean_ns },
    Figure { name: "deviation", limit: DEVIATION_NS, of: |cell| cell.deviation_of_999_ns },
];

impl Figure {
    fn of(
        &self,
        cells: &[CellFindings],
        method: Method,
        pattern: Traffic,
        repetitions: u32,
    ) -> Option<Estimate> {
        let cell = cells.iter().find(|it| (it.method, it.pattern) == (method, pattern))?;
        // Documents have no degrees of freedom.
        let freedom = Some(f64::from(repetitions.saturating_sub(1)));
        (self.of)(cell).map(|found| Estimate { freedom, ..found })
    }
}

/// One minus the other. The interval is that of independent values, though they are from the same repetitions.
fn difference(one: Estimate, other: Estimate) -> Estimate {
    let ci95 = one.ci95.zip(other.ci95).map(|(one, other)| one.hypot(other));
    Estimate { mean: one.mean - other.mean, ci95, freedom: one.freedom }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict;

    fn cells(raw: [f64; 2], ktime: [f64; 2], ci95: Option<f64>) -> Vec<CellFindings> {
        let cell = |(method, [mean, deviation]): (Method, [f64; 2]), pattern| CellFindings {
            method,
            pattern,
            missing: 0,
            overhead_ns: None,
            mean_ns: Some(Estimate::new(mean, ci95)),
            deviation_ns: None,
            deviation_of_999_ns: Some(Estimate::new(deviation, ci95)),
            variance_ns2: None,
            autocorrelation: Vec::new(),
            share_of_two_values: None,
            overheads: Vec::new(),
        };
        let methods = [(Method::Ktime, ktime), (Method::Raw, raw)];
        methods.iter().flat_map(|of| Traffic::ALL.map(|pattern| cell(*of, pattern))).collect()
    }

    #[test]
    fn target_is_met_or_missed_with_its_numbers() {
        let near = Some(0.5);
        let met = cells([20.0, 3.0], [40.0, 8.0], near);
        let missed = cells([2_600.0, 50.0], [900.0, 40.0], near);
        let [user_space, in_softirq] = targets(&met, &missed, 10).try_into().unwrap();
        assert_eq!(user_space.verdict, Verdict::Confirmed, "{user_space:?}");
        assert_eq!(in_softirq.verdict, Verdict::Contradicted, "{in_softirq:?}");
        let mean = "mean for the call: 2.60\u{202f}µs";
        assert!(in_softirq.sentence.contains(mean), "{}", in_softirq.sentence);
        assert!(in_softirq.sentence.contains("(limit 30.0\u{202f}ns: missed; ktime 900\u{202f}ns"));
        let [once, nothing] =
            targets(&cells([20.0, 3.0], [40.0, 8.0], None), &[], 1).try_into().unwrap();
        assert_eq!([once.verdict, nothing.verdict], [Verdict::Open; 2]);
        assert!(nothing.sentence.ends_with("not decided here; nothing was measured."));
    }
}
