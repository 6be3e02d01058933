//! Survey of this machine's sources of raw stamps.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::anchor::SystemClocks;
use crate::ratio::approx;
use crate::source::{emulated_by, selection::selection};
use crate::{Calibrator, Counter};

/// Consecutive reads that reveal the steps of a clock. They take about 0.1 ms; on a slow clock as long as the first
/// [`STEP_READS_AT_ONCE`] of them plus [`STEP_TIME`].
const STEP_READS: usize = 2_000;
const STEP_READS_AT_ONCE: usize = 200;
const STEP_TIME: Duration = Duration::from_micros(200);

/// One in this many steps may be smaller than the smallest usual one.
const SMALLER_STEPS: usize = 5;

/// Rounds of timed reads; the median counts.
const ROUNDS: usize = 31;
/// Reads per round: 10 us of a TSC, 2 ms of a slow HPET.
const READS: u32 = 200;

/// Duration of a frequency measurement, accurate to about 20 ppm.
const BASELINE: Duration = Duration::from_millis(5);

/// A source of raw stamps. Serialises with these names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CounterSource {
    /// `tsc`, `cntvct`, `hpet` or `os`.
    pub name: &'static str,
    /// True if it is usable and trusted.
    pub available: bool,
    /// Reason for or against its use; for a usable source also for or against its choice.
    pub reason: String,
    /// Emulator of the source, if known: its cost is then not that of hardware.
    pub emulated_by: Option<String>,
    /// Ticks per second of `CLOCK_MONOTONIC_RAW`.
    pub frequency_hz: Option<f64>,
    /// Smallest usual step, in nanoseconds: at most a fifth of the steps between consecutive reads are smaller. Steps
    /// shorter than a read are invisible, so the real step of the clock may be smaller.
    pub granularity_ns: Option<f64>,
    /// Nanoseconds of one relaxed read ([`Counter::read`]) in a sequence of reads.
    pub cost_ns: Option<f64>,
    /// Nanoseconds of one ordered read ([`Counter::read_ordered`]).
    pub ordered_cost_ns: Option<f64>,
}

/// All sources, and the one that [`Counter::select`] chooses.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Survey {
    /// Name of the source in use.
    pub selected: &'static str,
    /// Every source that this program supports.
    pub sources: Vec<CounterSource>,
}

/// Measures every source, in about 20 ms.
#[must_use]
pub fn survey() -> Survey {
    let selection = selection();
    let sources = selection.assessments.iter().map(|assessment| match &assessment.counter {
        Ok((counter, reason)) => measure(*counter, reason.clone()),
        Err(reason) => unavailable(assessment.name, reason.clone()),
    });
    Survey { selected: selection.selected.name(), sources: sources.collect() }
}

fn unavailable(name: &'static str, reason: String) -> CounterSource {
    CounterSource {
        name,
        available: false,
        reason,
        emulated_by: emulated_by(name),
        frequency_hz: None,
        granularity_ns: None,
        cost_ns: None,
        ordered_cost_ns: None,
    }
}

fn measure(counter: Counter, reason: String) -> CounterSource {
    let clocks = SystemClocks::counter(counter);
    let step = smallest_usual_step(clocks);
    let frequency_hz = match Calibrator::new(counter.domain(), clocks, step) {
        Ok(mut calibrator) => {
            let start = Instant::now();
            while start.elapsed() < BASELINE {}
            calibrator.sample().difference().frequency_hz()
        }
        Err(error) => return unavailable(counter.name(), error.to_string()),
    };
    CounterSource {
        name: counter.name(),
        available: true,
        reason,
        emulated_by: emulated_by(counter.name()),
        frequency_hz: Some(frequency_hz),
        granularity_ns: Some(approx(step) * 1e9 / frequency_hz),
        cost_ns: Some(cost_of(|| counter.read())),
        ordered_cost_ns: Some(cost_of(|| counter.read_ordered())),
    }
}

/// Smallest usual step of the clock, in ticks, in reads at max speed.
pub(crate) fn smallest_usual_step(clocks: SystemClocks) -> u64 {
    let mut reads = vec![0; STEP_READS];
    let start = Instant::now();
    let mut taken = 0;
    for reads in reads.chunks_mut(STEP_READS_AT_ONCE) {
        clocks.read_fast(reads);
        taken += reads.len();
        if start.elapsed() > STEP_TIME {
            break;
        }
    }
    smallest_usual_step_in(&reads[..taken])
}

/// The step such that at most one in [`SMALLER_STEPS`] is smaller, among steps of more than one tick; one tick if
/// there is none, or if most steps are of one tick.
///
/// The min is wrong: a counter that moves in steps of about 10 ns may return one tick more when it is read again
/// within a step, so that no two reads are equal (seen on AMD's Zen 5: 0, 26, 52, 53, 78). That tick is no progress
/// of the clock, and the 25 ticks after it are no whole step. Both kinds are about equally frequent. The most
/// frequent step is wrong too: it is the multiple of the step that a read happens to take.
fn smallest_usual_step_in(reads: &[u64]) -> u64 {
    let steps = reads.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let (single, mut longer): (Vec<u64>, Vec<u64>) =
        steps.filter(|&step| step > 0).partition(|&step| step == 1);
    if single.len() > 2 * longer.len() {
        return 1;
    }
    longer.sort_unstable();
    longer.get(longer.len() / SMALLER_STEPS).map_or(1, |&step| step)
}

#[inline(always)]
fn cost_of(read: impl Fn() -> u64) -> f64 {
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..READS {
                black_box(read());
            }
            start.elapsed()
        })
        .collect();
    rounds.sort_unstable();
    rounds[ROUNDS / 2].as_secs_f64() * 1e9 / f64::from(READS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_source_is_available_and_measured() {
        let survey = survey();
        let selected = survey.sources.iter().find(|source| source.name == survey.selected).unwrap();
        assert!(selected.available);
        assert!(selected.frequency_hz.unwrap() > 1e6);
        assert!(selected.granularity_ns.unwrap() > 0.0);
        assert!(selected.cost_ns.unwrap() > 0.0);
    }

    #[test]
    fn all_sources_are_listed_with_reasons() {
        let sources = survey().sources;
        for name in ["tsc", "hpet", "os"] {
            let source = sources.iter().find(|source| source.name == name).unwrap();
            assert!(!source.reason.is_empty(), "{name}");
            assert_eq!(source.available, source.cost_ns.is_some(), "{name}");
        }
    }

    fn smallest_usual_step_of(reads: impl Iterator<Item = u64>) -> u64 {
        smallest_usual_step_in(&reads.take(STEP_READS).collect::<Vec<_>>())
    }

    #[test]
    fn tick_that_separates_equal_reads_is_no_step() {
        let in_pairs = (0..).flat_map(|n| [n * 52, n * 52 + 1, n * 52 + 26, n * 52 + 27]);
        assert_eq!(smallest_usual_step_of(in_pairs), 25);
        let now_and_then = (0..).flat_map(|n| (0..9).map(move |k| n * 208 + k * 26 + k / 8));
        assert_eq!(smallest_usual_step_of(now_and_then), 26);
        assert_eq!(smallest_usual_step_of((0..).map(|n| n / 10)), 1);
        assert_eq!(smallest_usual_step_of(std::iter::repeat(5)), 1);
    }

    #[test]
    fn fine_counter_has_a_step_of_one_tick() {
        let interrupted = (0..).map(|n| n / 10 + if n > 1_000 { 500 } else { 0 });
        assert_eq!(smallest_usual_step_of(interrupted), 1);
        assert_eq!(smallest_usual_step_of((0..).map(|n| n * 11 / 10)), 1);
    }

    #[test]
    fn slow_reads_do_not_hide_the_step() {
        let mostly_two = (0..).flat_map(|n| [0, 52, 104, 130].map(|at| n * 182 + at));
        assert_eq!(smallest_usual_step_of(mostly_two), 26);
    }
}
