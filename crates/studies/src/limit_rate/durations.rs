//! The series over the duration: one trial per run, whose counts are read at the end of each duration.

use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::Stop;

use super::setting::Level;
use super::sweeps::Sweep;
use super::trials::{Probe, Trial};
use crate::experiment::{Cell, Design, Factor, RunId, Runs, Study};

/// The series of durations, which is measured with a probe.
pub(super) struct Durations<'a> {
    pub(super) probe: &'a Probe,
    pub(super) sweep: &'a Sweep,
}

impl Durations<'_> {
    /// The durations, in ascending order.
    fn all(&self) -> Vec<Duration> {
        let seconds = self.sweep.points.iter().map(|point| point.number());
        seconds.map(Duration::from_secs_f64).collect()
    }
}

/// The same runs as those of a series, with each count as a trial of its duration.
pub(super) fn by_duration(sweep: &Sweep, runs: Runs<Trial>) -> Runs<Trial> {
    let points = sweep.points.len();
    let of_run = |(run, trials): (RunId, Vec<Trial>)| {
        let of_duration = move |(point, trial)| {
            let cell = run.cell * points + point;
            (RunId { cell, ..run }, vec![trial])
        };
        trials.into_iter().enumerate().map(of_duration)
    };
    let Runs { seed, sittings, interrupted, runs, .. } = runs;
    let runs = runs.into_iter().flat_map(of_run).collect();
    Runs { design: sweep.design(), seed, sittings, interrupted, runs }
}

impl Study for Durations<'_> {
    type Sample = Trial;

    fn design(&self) -> Design {
        let Sweep { factors: [rate, durations], lines, points, .. } = self.sweep;
        let [lines, points] = [lines, points]
            .map(|levels| levels.iter().map(|level: &Level| level.name()).collect::<Vec<_>>());
        Design {
            factors: vec![Factor::new(rate, lines.iter().map(String::as_str))],
            constants: vec![((*durations).to_owned(), points.join(" "))],
            ..self.sweep.design()
        }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        self.all().last().copied().unwrap_or_default()
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Trial>> {
        let rate = cell.0.first().and_then(|level| self.sweep.lines.get(*level));
        let setting = rate.context("a cell of another design")?.of(self.sweep.base);
        self.probe.trials(setting, &self.all(), stop)
    }
}
