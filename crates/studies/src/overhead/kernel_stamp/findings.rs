//! Results of the kernel's stamp.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{CLOCKS, IntervalKind, Intervals, of};
use crate::experiment::{Estimate, Runs, mean};
use crate::overhead::series::{self, deviation_of_999};
use crate::timers::Cost;
use wirestamp_metrics::numeric::nearest_rank_per_mille;
use wirestamp_report::format::length;

/// Numeric results.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::overhead) struct KernelStamps {
    /// Repetitions that were done of every cell.
    pub(in crate::overhead) repetitions: u32,
    /// Each clock with each place of the stamp.
    pub(in crate::overhead) cells: Vec<IntervalsOfCell>,
    /// What the kernel's stamp adds, by each clock.
    pub(in crate::overhead) added: Vec<AddedByStamp>,
    /// What each clock of the events adds to an interval above the counter, ktime (mono) first.
    pub(in crate::overhead) clocks: Vec<AddedByClock>,
}

/// A clock with a place of the stamp. Times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub(in crate::overhead) struct IntervalsOfCell {
    /// The clock of the events.
    pub(in crate::overhead) clock: &'static str,
    /// Where the kernel stamped: `none`, `before-queue`, `after-queue`.
    pub(in crate::overhead) stamp: &'static str,
    /// From `netif_rx_entry` to `netif_rx`.
    pub(in crate::overhead) before_queue_ns: Option<Cost>,
    /// The mean of the middle half of a run (interquartile mean).
    pub(in crate::overhead) middle_mean_ns: Option<Estimate>,
    /// The mean of a run without its longest thousandth.
    pub(in crate::overhead) mean_of_999_ns: Option<Estimate>,
    /// The standard deviation of a run without its longest thousandth.
    pub(in crate::overhead) deviation_of_999_ns: Option<Estimate>,
    /// Auto-correlation of a packet's interval and the next one's.
    pub(in crate::overhead) autocorrelation: Option<Estimate>,
    /// From `netif_rx` to `netif_receive_skb`.
    pub(in crate::overhead) queue_ns: Option<Cost>,
    /// The cores on which `netif_rx` occurred, and those of `netif_receive_skb`.
    pub(in crate::overhead) cores: [Vec<u32>; 2],
}

/// What the kernel's stamp adds to the interval that contains it.
#[derive(Clone, Debug, Serialize)]
pub(in crate::overhead) struct AddedByStamp {
    /// The clock of the events.
    pub(in crate::overhead) clock: &'static str,
    /// Mean of 99.9 % before the queue, above that without stamps.
    pub(in crate::overhead) before_queue_ns: Option<Estimate>,
    /// Median through the queue, above that without stamps.
    pub(in crate::overhead) after_queue_ns: Option<Estimate>,
}

/// What a clock adds to an interval without the kernel's stamp, above the counter (x86-tsc), in runs of the same repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::overhead) struct AddedByClock {
    /// The clock of the events.
    pub(in crate::overhead) clock: Cow<'static, str>,
    /// Of the mean of the middle half, in nanoseconds: misses of caches, which occur in the rest, do not change it, and
    /// steps of the counter change it less than the median.
    pub(in crate::overhead) middle_mean_ns: Option<Estimate>,
    /// Of the mean of 99.9 %, in nanoseconds.
    pub(in crate::overhead) mean_ns: Option<Estimate>,
    /// Logarithm of the ratio of the standard deviations of 99.9 %.
    pub(in crate::overhead) log_deviation_ratio: Option<Estimate>,
    /// Of the auto-correlation.
    pub(in crate::overhead) autocorrelation: Option<Estimate>,
}

impl KernelStamps {
    /// Computes the results of the runs.
    pub(in crate::overhead) fn of(runs: &Runs<Intervals>) -> Self {
        let cells = runs.design.cells();
        let places = cells.len() / CLOCKS.len();
        let cell = |clock: usize, place: usize| clock * places + place;
        let cells = cells.iter().enumerate().map(|(index, cell)| {
            let (clock, place) = of(cell);
            of_cell(runs, index, clock.name(), place.name())
        });
        let difference = |a, b, value: fn(&[Intervals]) -> Option<f64>| {
            let differences = runs.of_cell(a).zip(runs.of_cell(b));
            let differences = differences.filter_map(|(a, b)| Some(value(a)? - value(b)?));
            Estimate::of(&differences.filter(|it| it.is_finite()).collect::<Vec<_>>())
        };
        let added = CLOCKS.iter().enumerate().map(|(index, clock)| AddedByStamp {
            clock: clock.name(),
            before_queue_ns: difference(cell(index, 1), cell(index, 0), mean_of_999),
            after_queue_ns: difference(cell(index, 2), cell(index, 0), median_of_queue),
        });
        let clocks = CLOCKS.iter().enumerate().skip(1).map(|(index, clock)| {
            let above_counter = |value| difference(cell(index, 0), cell(0, 0), value);
            AddedByClock {
                clock: clock.name().into(),
                middle_mean_ns: above_counter(middle_mean),
                mean_ns: above_counter(mean_of_999),
                log_deviation_ratio: above_counter(log_deviation),
                autocorrelation: above_counter(autocorrelation),
            }
        });
        Self {
            repetitions: runs.complete(),
            cells: cells.collect(),
            added: added.collect(),
            clocks: clocks.collect(),
        }
    }
}

fn of_cell(
    runs: &Runs<Intervals>,
    index: usize,
    clock: &'static str,
    stamp: &'static str,
) -> IntervalsOfCell {
    let estimate = |value: fn(&[Intervals]) -> Option<f64>| {
        Estimate::of(&runs.of_cell(index).filter_map(value).collect::<Vec<_>>())
    };
    let all = |kind| runs.of_cell(index).flat_map(|run| lengths(run, kind)).collect::<Vec<_>>();
    let cores = |kind| {
        let rows = runs.of_cell(index).flatten().filter(|row| row.interval == kind);
        let mut cores: Vec<_> = rows.map(|row| row.core).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    };
    IntervalsOfCell {
        clock,
        stamp,
        before_queue_ns: series::cost(&all(IntervalKind::BeforeQueue)),
        middle_mean_ns: estimate(middle_mean),
        mean_of_999_ns: estimate(mean_of_999),
        deviation_of_999_ns: estimate(|run| deviation_of_999(&before_queue(run))),
        autocorrelation: estimate(autocorrelation),
        queue_ns: series::cost(&all(IntervalKind::Queue)),
        cores: [cores(IntervalKind::BeforeQueue), cores(IntervalKind::Queue)],
    }
}

/// The lengths of one kind of a run, sorted.
fn lengths(run: &[Intervals], kind: IntervalKind) -> Vec<f64> {
    let rows = run.iter().filter(|row| row.interval == kind);
    let repeated = |row: &Intervals| vec![row.ns; usize::try_from(row.packets).unwrap_or(0)];
    let mut lengths: Vec<f64> = rows.flat_map(repeated).collect();
    lengths.sort_unstable_by(f64::total_cmp);
    lengths
}

fn before_queue(run: &[Intervals]) -> Vec<f64> {
    lengths(run, IntervalKind::BeforeQueue)
}

fn middle_mean(run: &[Intervals]) -> Option<f64> {
    let lengths = before_queue(run);
    let quarter = lengths.len() / 4;
    mean(lengths.get(quarter..lengths.len() - quarter)?)
}

fn mean_of_999(run: &[Intervals]) -> Option<f64> {
    let lengths = before_queue(run);
    let kept = usize::try_from(nearest_rank_per_mille(999, length(&lengths))).ok()?;
    mean(lengths.get(..kept)?)
}

fn log_deviation(run: &[Intervals]) -> Option<f64> {
    deviation_of_999(&before_queue(run)).map(f64::ln)
}

fn median_of_queue(run: &[Intervals]) -> Option<f64> {
    let lengths = lengths(run, IntervalKind::Queue);
    lengths.get(lengths.len() / 2).copied()
}

fn autocorrelation(run: &[Intervals]) -> Option<f64> {
    run.iter().find(|row| row.interval == IntervalKind::BeforeQueue)?.autocorrelation
}

#[cfg(test)]
mod tests {
    use super::super::design;
    use super::*;
    use crate::experiment::RunId;
    use crate::overhead::packets::OverheadScale;

    fn row(interval: IntervalKind, ns: f64) -> Intervals {
        Intervals { interval, core: 1, ns, packets: 1_000, autocorrelation: Some(0.5) }
    }

    #[test]
    fn what_the_stamp_and_the_clock_add_is_the_difference_within_a_repetition() {
        let design = design(OverheadScale { repetitions: 3, packets: [0, 2_000] });
        // A clock adds 10 ns each; the stamp 25 ns before the queue, and 40 ns after it; a repetition 3 ns.
        let run = |turn: RunId| {
            let (clock, place) = (turn.cell / 3, turn.cell % 3);
            let [clock, repetition] =
                [u32::try_from(clock).unwrap(), turn.repetition].map(f64::from);
            let ns = 60.0 + 10.0 * clock + 3.0 * repetition;
            let before = ns + if place == 1 { 25.0 } else { 0.0 };
            let queue = 1_000.0 + if place == 2 { 40.0 } else { 0.0 };
            let spread = 1.0 + clock;
            vec![
                row(IntervalKind::BeforeQueue, before - spread),
                row(IntervalKind::BeforeQueue, before + spread),
                row(IntervalKind::Queue, queue),
            ]
        };
        let runs = design.order(1).into_iter().map(|turn| (turn, run(turn))).collect();
        let runs = Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs };
        let found = KernelStamps::of(&runs);
        assert_eq!(found.cells.len(), 12);
        assert_eq!((found.cells[4].clock, found.cells[4].stamp), ("mono", "before-queue"));
        assert_eq!(found.cells[4].before_queue_ns.unwrap().count, 6_000);
        assert_eq!(found.cells[4].cores, [vec![1], vec![1]]);
        for added in &found.added {
            assert!((added.before_queue_ns.unwrap().mean - 25.0).abs() < 0.1, "{added:?}");
            assert!((added.after_queue_ns.unwrap().mean - 40.0).abs() < 0.1, "{added:?}");
        }
        let ktime = found.clocks.first().unwrap();
        assert_eq!(ktime.clock, "mono");
        assert!((ktime.mean_ns.unwrap().mean - 10.0).abs() < 0.1, "{ktime:?}");
        assert!((ktime.middle_mean_ns.unwrap().mean - 10.0).abs() < 0.1, "{ktime:?}");
        assert!((ktime.log_deviation_ratio.unwrap().mean - 2_f64.ln()).abs() < 0.01);
        assert!(ktime.autocorrelation.unwrap().mean.abs() < 0.01);
    }
}
