//! This project's targets for the overhead of a raw stamp, beside the paper's Tables I and II.

use super::findings::CellFindings;
use super::measured::{Measured, cell};
use super::paper::{Method, Traffic};
use crate::experiment::{Claim, Estimate, Sign};
use wirestamp_report::format::duration;

/// Max mean overhead of a raw stamp, in nanoseconds.
const MEAN_NS: f64 = 30.0;
/// Share of two values above which they make up most of the overheads.
const MOST: f64 = 0.9;

/// Max standard deviation of a run without the longest thousandth, in nanoseconds.
const DEVIATION_NS: f64 = 4.0;

/// The targets with verdicts and, where they are missed, the cause.
pub(super) fn targets(measured: &Measured) -> Vec<Claim> {
    let Measured { repetitions, cells, cells_in_softirq, .. } = measured;
    vec![
        target("in user space", cells, *repetitions).caused_by(|| measured.step_of_the_counter()),
        target("in the softIRQ", cells_in_softirq, *repetitions)
            .caused_by(|| measured.call_and_caches()),
    ]
}

impl Measured {
    /// Two values that are a step apart deviate by half a step, if both are as frequent, and by less otherwise. None if a mean
    /// misses its limit, or values beside these two are frequent.
    fn step_of_the_counter(&self) -> Option<String> {
        let raw = self.cells.iter().filter(|cell| cell.method == Method::Raw);
        let missed = raw.filter(|cell| {
            let deviation = cell.deviation_of_999_ns.map(|it| it.mean);
            deviation.is_some_and(|it| it > DEVIATION_NS)
        });
        let shares: Option<Vec<_>> = missed
            .map(|cell| {
                let share = cell.share_of_two_values.filter(|it| *it >= MOST)?;
                let within = cell.mean_ns.is_some_and(|it| it.mean <= MEAN_NS);
                within.then(|| format!("{:.1} % for the {}", 100.0 * share, cell.pattern.name()))
            })
            .collect();
        let shares = shares.filter(|shares| !shares.is_empty())?.join(", ");
        Some(format!(
            "the counter of this machine advances by {} at once, and most overheads have one of two values a step apart \
             ({shares}); such a pair deviates by up to {}",
            duration(self.step_ns),
            duration(self.step_ns / 2.0)
        ))
    }

    /// Time of the first and of the second stamp of a packet.
    fn call_and_caches(&self) -> Option<String> {
        let of = |cells: &[CellFindings], method, pattern| {
            Some(duration(cell(cells, method, pattern)?.mean_ns?.mean))
        };
        let first = |method, pattern| of(&self.cells_in_softirq, method, pattern);
        let again = |method, pattern| of(&self.cells_in_softirq_again, method, pattern);
        let (call, video) = (Traffic::Call, Traffic::Video);
        Some(format!(
            "a BPF program cannot execute the counter's instruction. It calls bpf_perf_event_read, which takes {} for the \
             second stamp of a packet of the video (ktime: {}). Code and data of the first stamp are not in the caches: for a \
             packet of the call it takes {}, the second one {} (ktime: {}, {})",
            again(Method::Raw, video)?,
            again(Method::Ktime, video)?,
            first(Method::Raw, call)?,
            again(Method::Raw, call)?,
            first(Method::Ktime, call)?,
            again(Method::Ktime, call)?
        ))
    }
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
                words.push(format!(
                    "{} for the {}: {}; at most {}: {}; below ktime ({}): {}",
                    figure.name,
                    pattern.name(),
                    raw.text(duration),
                    duration(figure.limit),
                    verdict(below_limit),
                    ktime.text(duration),
                    verdict(below_ktime),
                ));
            }
            leads.extend([below_limit, below_ktime]);
        }
    }
    let claim = format!(
        "{place}, a raw stamp of each packet meets the targets: an overhead of at most {MEAN_NS:.0} ns in the mean, a \
         deviation of at most {DEVIATION_NS:.0} ns in 99.9 % of the packets, both below those of ktime in the same run"
    );
    Claim::goal(claim, leads, &words.join("; "))
}

/// Whether one figure is met, by the sign of how far it is below its limit.
fn verdict(below: Option<Estimate>) -> &'static str {
    match below.map(|it| it.sign()) {
        Some(Sign::Above) => "met",
        Some(Sign::Below) => "missed",
        Some(Sign::Open) | None => "not decided",
    }
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
        let cell = cell(cells, method, pattern)?;
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
    use super::super::measured::ClocksOfEvents;
    use super::*;
    use crate::experiment::Verdict;

    fn measured(cells: Vec<CellFindings>, cells_in_softirq: Vec<CellFindings>) -> Measured {
        let cells_in_softirq_again = cells_in_softirq.clone();
        Measured {
            repetitions: 10,
            step_ns: 10.0,
            cells,
            cells_in_softirq,
            cells_in_softirq_again,
            kernel_stamps: ClocksOfEvents::default(),
        }
    }

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
        let [user_space, in_softirq] = targets(&measured(met, missed)).try_into().unwrap();
        assert_eq!(user_space.verdict, Verdict::Confirmed, "{user_space:?}");
        assert_eq!(in_softirq.verdict, Verdict::Contradicted, "{in_softirq:?}");
        let mean = "mean for the call: 2.60\u{202f}µs";
        assert!(in_softirq.sentence.contains(mean), "{}", in_softirq.sentence);
        let missed = "; at most 30.0\u{202f}ns: missed; below ktime (900\u{202f}ns ± 0.500\u{202f}ns): missed";
        assert!(in_softirq.sentence.contains(missed), "{}", in_softirq.sentence);
        let cause = in_softirq.cause.unwrap();
        assert!(cause.contains("for a packet of the call it takes 2.60\u{202f}µs"), "{cause}");
        let once = measured(cells([20.0, 3.0], [40.0, 8.0], None), Vec::new());
        let [once, nothing] = targets(&Measured { repetitions: 1, ..once }).try_into().unwrap();
        assert_eq!([once.verdict, nothing.verdict], [Verdict::Open; 2]);
        assert!(nothing.sentence.ends_with("not decided here; nothing was measured."));
    }

    #[test]
    fn figure_whose_interval_includes_its_limit_is_not_decided() {
        let close = cells([20.0, 3.8], [40.0, 4.4], Some(0.5));
        let sentence = targets(&measured(close, Vec::new())).swap_remove(0).sentence;
        let deviation = "deviation for the video: 3.80\u{202f}ns ± 0.500\u{202f}ns; at most 4.00\u{202f}ns: not decided; below \
                         ktime (4.40\u{202f}ns ± 0.500\u{202f}ns): not decided";
        assert!(sentence.contains(deviation), "{sentence}");
    }

    #[test]
    fn step_of_the_counter_causes_the_deviation_of_two_values() {
        let with = |share: Option<f64>, mean: f64| {
            let mut cells = cells([mean, 4.7], [40.0, 8.0], Some(0.1));
            cells.iter_mut().for_each(|cell| cell.share_of_two_values = share);
            targets(&measured(cells, Vec::new())).swap_remove(0).cause
        };
        let cause = with(Some(0.95), 20.0).unwrap();
        assert!(cause.contains("(95.0 % for the call, 95.0 % for the video)"), "{cause}");
        assert!(cause.contains("deviates by up to 5.00\u{202f}ns"), "{cause}");
        assert_eq!(
            [with(Some(0.5), 20.0), with(None, 20.0), with(Some(0.95), 50.0)],
            [None, None, None]
        );
    }
}
