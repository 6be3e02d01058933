//! Results computed from the raw data.

use std::borrow::Cow;

use serde::Serialize;

use super::contender::READS_PER_ROUND;
use super::elsewhere::Elsewhere;
use super::measured::{Measured, Moment};
use super::paper::{PUBLISHED, Published, Timer};
use super::reads::CostCount;
use super::tally::{Cost, CostHistogram, real};
use crate::account::Making;
use crate::experiment::Runs;

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TimersResult {
    /// Rounds that were done.
    pub(super) rounds: u32,
    /// Reads in each round of each way.
    pub(super) reads_per_round: u32,
    /// The source that the clock library chooses on this machine.
    pub(super) selected: Cow<'static, str>,
    /// Each way to read each source, and each source that cannot be used.
    pub(super) ways: Vec<Measured>,
    /// Results of another machine: of sources that this one cannot read, and of the paper's timers under another clock
    /// source of the kernel.
    pub(super) beside: Option<Elsewhere>,
    /// The paper's numbers.
    pub(super) published: [Published; 2],
}

impl TimersResult {
    /// Computes the results of `ways` from the runs.
    pub(super) fn of(
        runs: &Runs<CostCount>,
        ways: Vec<Measured>,
        rounds_of_run: u32,
        selected: Cow<'static, str>,
        beside: Option<&Elsewhere>,
    ) -> Self {
        let clocksource = Making::of(runs).circumstances.clocksource;
        Self {
            rounds: runs.complete() * rounds_of_run,
            reads_per_round: READS_PER_ROUND,
            selected,
            beside: beside.map(|beside| beside.of_what_lacks(&ways, &clocksource)),
            ways: ways.into_iter().map(|way| measured(runs, way)).collect(),
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
    /// In nanoseconds.
    pub(super) three_sigma: f64,
    pub(super) within_three_sigma: Cost,
    /// The clock's, in nanoseconds.
    pub(super) step: f64,
}

impl Costs {
    /// Those of a way in some runs together; none if it was not read in them.
    pub(super) fn of<'a>(
        way: &Measured,
        sizes: impl IntoIterator<Item = &'a CostCount>,
    ) -> Option<Self> {
        let is_of = |size: &&CostCount| size.source == way.source && size.call == way.call;
        let mut sizes = sizes.into_iter().filter(is_of).peekable();
        let first @ CostCount { tick_ns, step_ns, .. } = *sizes.peek()?;
        let mut tally = CostHistogram::default();
        for CostCount { ticks, reads, .. } in sizes {
            tally.add(*ticks, *reads);
        }
        let (fence, three_sigma) = (tally.fence(first.step()), tally.three_sigma());
        Some(Self {
            filtered: tally.cost(fence, *tick_ns)?,
            unfiltered: tally.cost(u64::MAX, *tick_ns)?,
            peak_above: real(fence) * tick_ns,
            three_sigma: real(three_sigma) * tick_ns,
            within_three_sigma: tally.cost(three_sigma, *tick_ns)?,
            step: *step_ns,
        })
    }
}

/// The way with its costs. A way that was not read in the runs has none.
fn measured(runs: &Runs<CostCount>, way: Measured) -> Measured {
    let Some(costs) = Costs::of(&way, runs.of_cell(0).flatten()) else { return way };
    Measured {
        step_ns: Some(costs.step),
        peak_above_ns: Some(costs.peak_above),
        peaks: costs.unfiltered.count - costs.filtered.count,
        filtered: Some(costs.filtered),
        unfiltered: Some(costs.unfiltered),
        three_sigma_ns: Some(costs.three_sigma),
        within_three_sigma: Some(costs.within_three_sigma),
        course: course(runs, &way),
        ..way
    }
}

/// A moment for each run.
fn course(runs: &Runs<CostCount>, way: &Measured) -> Vec<Moment> {
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
