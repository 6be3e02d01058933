//! The design: which tests are made.

use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Counter};

use super::bed;
use super::measured::Measured;
use crate::experiment::{Cell, Design, Factor, Study};

/// What a run takes beside the time in which it sends: the lab is built, the queue let out, and where packets
/// were lost, a time-out passes.
const AROUND: Duration = Duration::from_millis(1_500);

/// Frames in bytes, with check sequence as in the report.
const FRAMES: [u16; 2] = [600, 1500];
/// Packets a second.
const RATES: [u32; 2] = [500, 4_167];

/// What is sent in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The length of frames in bytes, with check sequence.
    pub(super) frame: u16,
    /// Packets a second.
    pub(super) rate: u32,
    /// How many.
    pub(super) packets: u64,
}

impl Setting {
    /// How a cell of any size is run, but for how long.
    pub(super) fn of(cell: &Cell, lasting: Duration) -> Self {
        let level = |factor: usize| cell.0.get(factor).copied().unwrap_or(0);
        let rate = RATES[level(1) % RATES.len()];
        let packets = u128::from(rate) * lasting.as_millis() / 1000;
        let packets = u64::try_from(packets).unwrap_or(u64::MAX);
        Self { frame: FRAMES[level(0) % FRAMES.len()], rate, packets }
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    repetitions: u32,
    lasting: Duration,
}

impl Size {
    /// The seven tests of the report, in nine minutes.
    pub(super) const FULL: Self = Self { repetitions: 7, lasting: Duration::from_secs(15) };
    /// What half a minute has room for.
    pub(super) const QUICK: Self = Self { repetitions: 3, lasting: Duration::from_millis(600) };
}

/// The study.
pub(super) struct TestsOfAPath {
    size: Size,
    /// None where nothing is to be run.
    clock: Option<ClockService>,
}

impl TestsOfAPath {
    /// # Errors
    /// When the counter cannot be calibrated.
    pub(super) fn new(size: Size) -> anyhow::Result<Self> {
        let clock = ClockService::start(Counter::select());
        Ok(Self { size, clock: Some(clock.context("cannot calibrate the counter")?) })
    }

    /// That whose runs were made before.
    #[cfg(test)]
    pub(super) const fn done(size: Size) -> Self {
        Self { size, clock: None }
    }
}

impl Study for TestsOfAPath {
    type Sample = Measured;

    fn design(&self) -> Design {
        let frames = FRAMES.map(|frame| format!("{frame}-bytes"));
        let rates = RATES.map(|rate| format!("{rate}-a-second"));
        Design {
            name: "active-delay".to_owned(),
            factors: vec![
                Factor::new("frame", frames.iter().map(String::as_str)),
                Factor::new("rate", rates.iter().map(String::as_str)),
            ],
            repetitions: self.size.repetitions,
            constants: vec![("milliseconds".to_owned(), self.size.lasting.as_millis().to_string())],
        }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        self.size.lasting + AROUND
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Measured>> {
        let clock = self.clock.as_ref().context("these runs were made before")?;
        Ok(vec![bed::run(Setting::of(cell, self.size.lasting), clock, stop)?])
    }
}
