//! Results computed from the raw data.

use serde::Serialize;
use wirestamp_clock::{CounterSource, Survey};

use super::contender::{READS_PER_ROUND, Way};
use super::elsewhere::Elsewhere;
use super::measured::{Measured, Moment};
use super::paper::{PUBLISHED, Published, Timer};
use super::reads::CostCount;
use super::tally::{Cost, CostHistogram, real};
use crate::experiment::Runs;

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TimersResult {
    /// Rounds that were done.
    pub(super) rounds: u32,
    /// Reads in each round of each way.
    pub(super) reads_per_round: u32,
    /// The source that the clock library chooses on this machine.
    pub(super) selected: &'static str,
    /// Each way to read each source, and each source that cannot be used.
    pub(super) ways: Vec<Measured>,
    /// Results of another machine for sources that this one cannot read.
    pub(super) beside: Option<Elsewhere>,
    /// The paper's numbers.
    pub(super) published: [Published; 2],
}

impl TimersResult {
    /// Computes the results of the measured ways.
    pub(super) fn of(
        runs: &Runs<CostCount>,
        ways: &[Way],
        rounds_of_run: u32,
        survey: &Survey,
        beside: Option<&Elsewhere>,
    ) -> Self {
        let of_source = |source: &CounterSource| {
            let ways = ways.iter().filter(|way| way.source == source.name);
            let measured: Vec<_> = ways.map(|way| measured(runs, way, source)).collect();
            if measured.is_empty() { vec![unavailable(source)] } else { measured }
        };
        let ways: Vec<_> = survey.sources.iter().flat_map(of_source).collect();
        Self {
            rounds: runs.complete() * rounds_of_run,
            reads_per_round: READS_PER_ROUND,
            selected: survey.selected,
            beside: beside.map(|beside| beside.of_what_lacks(&ways)),
            ways,
            published: PUBLISHED,
        }
    }

    /// Result of a timer of the paper.
    pub(super) fn timer(&self, timer: Timer) -> Option<&Measured> {
        self.ways.iter().find(|way| way.timer == Some(timer))
    }

    /// Cost of a timer of the paper; `None` if it is not available here.
    pub(super) fn cost(&self, timer: Timer) -> Option<Cost> {
        self.timer(timer)?.filtered
    }
}

/// The costs of one way.
pub(super) struct Costs {
    pub(super) filtered: Cost,
    pub(super) unfiltered: Cost,
    /// In nanoseconds.
    pub(super) peak_above: f64,
    /// The clock's, in nanoseconds.
    pub(super) step: f64,
}

impl Costs {
    /// Those of a way in some runs together; none if it was not read in them.
    pub(super) fn of<'a>(
        way: &Way,
        sizes: impl IntoIterator<Item = &'a CostCount>,
    ) -> Option<Self> {
        let is_of = |size: &&CostCount| size.source == way.source && size.call == way.call;
        let mut sizes = sizes.into_iter().filter(is_of).peekable();
        let first @ CostCount { tick_ns, step_ns, .. } = *sizes.peek()?;
        let mut tally = CostHistogram::default();
        for CostCount { ticks, reads, .. } in sizes {
            tally.add(*ticks, *reads);
        }
        let fence = tally.fence(first.step());
        Some(Self {
            filtered: tally.cost(fence, *tick_ns)?,
            unfiltered: tally.cost(u64::MAX, *tick_ns)?,
            peak_above: real(fence) * tick_ns,
            step: *step_ns,
        })
    }
}

fn measured(runs: &Runs<CostCount>, way: &Way, source: &CounterSource) -> Measured {
    let costs = Costs::of(way, runs.of_cell(0).flatten());
    let count = |of: fn(&Costs) -> Cost| costs.as_ref().map_or(0, |costs| of(costs).count);
    Measured {
        call: way.call.into(),
        timer: way.timer,
        step_ns: Some(costs.as_ref().map_or(way.step_ns, |costs| costs.step)),
        peak_above_ns: costs.as_ref().map(|costs| costs.peak_above),
        peaks: count(|costs| costs.unfiltered) - count(|costs| costs.filtered),
        filtered: costs.as_ref().map(|costs| costs.filtered),
        unfiltered: costs.as_ref().map(|costs| costs.unfiltered),
        course: course(runs, way),
        ..unavailable(source)
    }
}

/// A source that cannot be used.
fn unavailable(source: &CounterSource) -> Measured {
    Measured {
        source: source.name.into(),
        call: "".into(),
        timer: Timer::of_source(source.name),
        reason: source.reason.clone(),
        emulated_by: source.emulated_by.clone(),
        step_ns: None,
        peak_above_ns: None,
        peaks: 0,
        filtered: None,
        unfiltered: None,
        course: Vec::new(),
    }
}

/// A moment for each run.
fn course(runs: &Runs<CostCount>, way: &Way) -> Vec<Moment> {
    let took = |size: &CostCount| real(size.ticks) * real(size.reads) * size.tick_ns / 1e9;
    let mut at = 0.0;
    let moment = |run: &[CostCount]| {
        let began = at;
        at += run.iter().map(took).sum::<f64>();
        let Costs { filtered, unfiltered, .. } = Costs::of(way, run)?;
        Some(Moment { at: began, usual: filtered.mean, longest: unfiltered.max })
    };
    runs.of_cell(0).filter_map(moment).collect()
}
