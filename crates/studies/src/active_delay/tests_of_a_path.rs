//! The design: which tests are made.

use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Counter};

use super::measured::Measured;
use super::setting::{FRAMES, RATES, Setting};
use super::{bed, over_mesh};
use crate::experiment::{Cell, Design, Factor, Study};
use crate::mesh::{ReusedMesh, StartMesh};

/// Duration of a run without sending: building the lab, emptying the queue, and the timeout if packets
/// were lost.
const AROUND: Duration = Duration::from_millis(1_500);

/// The same with a mesh: start, first measurement, and final results.
const AROUND_OF_MESH: Duration = Duration::from_secs(8);

/// Extent of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ActiveDelayScale {
    repetitions: u32,
    lasting: Duration,
    /// Number of frame lengths to test, from the first.
    frames: usize,
}

impl ActiveDelayScale {
    /// The seven tests of the report, in nine minutes.
    pub(super) const FULL: Self =
        Self { repetitions: 7, lasting: Duration::from_secs(15), frames: 2 };
    /// Takes half a minute.
    pub(super) const QUICK: Self =
        Self { repetitions: 3, lasting: Duration::from_millis(600), frames: 2 };
    /// Takes two and a half minutes; each mesh takes eight seconds to start and stop.
    pub(super) const FULL_OF_MESH: Self =
        Self { repetitions: 3, lasting: Duration::from_secs(5), frames: 2 };
    /// Takes 20 seconds.
    pub(super) const QUICK_OF_MESH: Self =
        Self { repetitions: 1, lasting: Duration::from_secs(2), frames: 1 };
}

/// The study.
pub(super) struct TestsOfAPath {
    size: ActiveDelayScale,
    by: RunSource,
}

/// Source of the runs.
enum RunSource {
    /// A sender, a reflector and captures of this process.
    Ourselves(ClockService),
    Mesh(ReusedMesh),
    /// Runs of an earlier study.
    #[cfg(test)]
    Nothing,
}

impl TestsOfAPath {
    /// # Errors
    /// When the counter cannot be calibrated.
    pub(super) fn new(size: ActiveDelayScale) -> anyhow::Result<Self> {
        let clock = ClockService::start(Counter::select());
        Ok(Self { size, by: RunSource::Ourselves(clock.context("cannot calibrate the counter")?) })
    }

    /// The study with runs of a mesh.
    pub(super) const fn over_mesh(size: ActiveDelayScale, bring_up: StartMesh) -> Self {
        Self { size, by: RunSource::Mesh(ReusedMesh::new(bring_up)) }
    }

    /// The study of runs made before.
    #[cfg(test)]
    pub(super) const fn done(size: ActiveDelayScale) -> Self {
        Self { size, by: RunSource::Nothing }
    }
}

impl Study for TestsOfAPath {
    type Sample = Measured;

    fn design(&self) -> Design {
        let frames = FRAMES.iter().take(self.size.frames);
        let frames: Vec<_> = frames.map(|frame| format!("{frame}-bytes")).collect();
        let rates = RATES.map(|rate| format!("{rate}-a-second"));
        Design {
            name: match self.by {
                RunSource::Mesh(_) => "active-delay-mesh".to_owned(),
                _ => "active-delay".to_owned(),
            },
            factors: vec![
                Factor::new("frame", frames.iter().map(String::as_str)),
                Factor::new("rate", rates.iter().map(String::as_str)),
            ],
            repetitions: self.size.repetitions,
            constants: vec![("milliseconds".to_owned(), self.size.lasting.as_millis().to_string())],
        }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        let around = if matches!(self.by, RunSource::Mesh(_)) { AROUND_OF_MESH } else { AROUND };
        self.size.lasting + around
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Measured>> {
        let setting = Setting::of(cell, self.size.lasting);
        Ok(vec![match &mut self.by {
            RunSource::Ourselves(clock) => bed::run(setting, clock, stop)?,
            RunSource::Mesh(kept) => over_mesh::run(setting, kept, stop)?,
            #[cfg(test)]
            RunSource::Nothing => Measured::default(),
        }])
    }
}
