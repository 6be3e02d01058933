//! The reads themselves: every way to read every source, in turns.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Counter, Survey, survey};

use super::contender::{Contender, READS_PER_ROUND, contenders};
use super::measured::Measured;
use super::tally::CostHistogram;
use crate::experiment::{Cell, Design, Study};

/// Number of runs into which the reads are divided, if there are enough: points of the course, and samples
/// for the claims.
const RUNS: u32 = 100;

/// Max rounds of a run: an interrupted run is discarded, and a round takes some ms.
const ROUNDS_OF_RUN: u32 = 100;

/// How often a cost occurred in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CostCount {
    /// The source that was read.
    pub(super) source: String,
    /// Called function.
    pub(super) call: String,
    /// The reader's tick in nanoseconds.
    pub(super) tick_ns: f64,
    /// The smallest usual step of the clock in nanoseconds.
    pub(super) step_ns: f64,
    /// The cost.
    pub(super) ticks: u64,
    /// Reads that had it.
    pub(super) reads: u64,
}

impl CostCount {
    /// The step in ticks.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and a step is no less than a tick"
    )]
    pub(super) fn step(&self) -> u64 {
        (self.step_ns / self.tick_ns).round().max(1.0) as u64
    }
}

/// The study: one cell, in which all ways take turns, so that disturbances of the machine affect them
/// equally.
pub(super) struct Reads {
    contenders: Vec<Contender>,
    pub(super) survey: Survey,
    rounds: u32,
    /// Duration of a round.
    round: Duration,
    /// Keeps the time of day running, which the contenders read.
    _service: ClockService,
}

impl Reads {
    /// A study with `rounds` turns of each way, rounded up to complete runs.
    pub(super) fn new(rounds: u32) -> anyhow::Result<Self> {
        let survey = survey();
        let service =
            ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
        let mut contenders = contenders(&survey, &service.wall_clock());
        // Warms up caches and the CPU's clock; not part of the results.
        let start = Instant::now();
        for contender in &mut contenders {
            contender.turn();
        }
        Ok(Self { contenders, survey, rounds, round: start.elapsed(), _service: service })
    }

    /// The ways that are measured and the sources that cannot be, without costs.
    pub(super) fn sources(&self) -> Vec<Measured> {
        let ways: Vec<_> = self.contenders.iter().map(|contender| contender.way).collect();
        Measured::all(&self.survey, &ways)
    }

    /// Turns of each way in a run.
    pub(super) fn rounds_of_run(&self) -> u32 {
        self.rounds.div_ceil(RUNS).clamp(1, ROUNDS_OF_RUN)
    }
}

/// The experiment with this number of turns of each way in a run.
pub(super) fn design(ways: &[Measured], rounds_of_run: u32, repetitions: u32) -> Design {
    let measured = ways.iter().filter(|way| way.is_available());
    let names: Vec<_> = measured.map(|way| format!("{} {}", way.source, way.call)).collect();
    let constants = [
        ("reads in a turn", READS_PER_ROUND.to_string()),
        ("turns of each way in a run", rounds_of_run.to_string()),
        ("ways", names.join(", ")),
    ];
    Design {
        name: "timers".to_owned(),
        factors: Vec::new(),
        repetitions,
        constants: constants.map(|(name, value)| (name.to_owned(), value)).into(),
    }
}

impl Study for Reads {
    type Sample = CostCount;

    fn design(&self) -> Design {
        design(&self.sources(), self.rounds_of_run(), self.rounds.div_ceil(self.rounds_of_run()))
    }

    fn lasts(&self, _: &Cell) -> Duration {
        self.round * self.rounds_of_run()
    }

    fn run(&mut self, _: &Cell, stop: &Stop) -> anyhow::Result<Vec<CostCount>> {
        let mut tallies = vec![CostHistogram::default(); self.contenders.len()];
        for _ in 0..self.rounds_of_run() {
            if stop.is_requested() {
                break;
            }
            for (contender, tally) in self.contenders.iter_mut().zip(&mut tallies) {
                tally.merge(&contender.turn());
            }
        }
        let sizes = |(Contender { way, tick_ns, .. }, tally): (&Contender, &CostHistogram)| {
            let size = |(ticks, reads)| CostCount {
                source: way.source.to_owned(),
                call: way.call.to_owned(),
                tick_ns: *tick_ns,
                step_ns: way.step_ns,
                ticks,
                reads,
            };
            tally.sizes().map(size).collect::<Vec<_>>()
        };
        Ok(self.contenders.iter().zip(&tallies).flat_map(sizes).collect())
    }
}
