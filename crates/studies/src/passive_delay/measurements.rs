//! The designs: what each section of the report varies.

use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Counter, Span};

use super::measured::Measured;
use super::paper::Question;
use super::setting::{Bottleneck, Setting};
use super::{bed, over_mesh};
use crate::experiment::{Cell, Design, Factor, Study};
use crate::mesh::ReusedMesh;

/// Overhead of a run: building the lab, draining the queue.
const AROUND: Duration = Duration::from_millis(800);
/// The same with a mesh: start, first delay, and final results.
const AROUND_OF_MESH: Duration = Duration::from_secs(8);
/// The shortest frame over IPv6 that has room for the numbers of a test packet, with check sequence.
pub(super) const SHORTEST_FRAME: u16 = 98;

/// Extent of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PassiveDelayScale {
    /// Frame lengths in bytes, with check sequence.
    pub(super) frames: &'static [u16],
    /// Loads in thousandths of 100 Mbit/s.
    pub(super) loads: &'static [u32],
    /// Durations of section 3.6 in milliseconds.
    durations_ms: &'static [u32],
    /// How long a run of section 3.3 sends, and one of 3.4 and 3.5, in milliseconds.
    lasting_ms: [u32; 2],
    /// Repetitions of the sections, in their order.
    repetitions: [u32; 3],
}

/// The numbers of measurement tasks.
pub(super) const TASKS: [u32; 2] = [1, 4];

impl PassiveDelayScale {
    /// Takes 40 minutes.
    pub(super) const FULL: Self = Self {
        frames: &[SHORTEST_FRAME, 300, 600, 900, 1200, 1500],
        loads: &[200, 400, 1000],
        durations_ms: &[20_000, 60_000, 100_000, 200_000],
        lasting_ms: [60_000, 4_000],
        repetitions: [5, 5, 3],
    };
    /// Takes seven minutes; each mesh takes eight seconds to start and stop.
    pub(super) const FULL_OF_MESH: Self = Self {
        frames: &[SHORTEST_FRAME, 1500],
        loads: &[400, 1000],
        durations_ms: &[4_000, 12_000],
        lasting_ms: [6_000, 3_000],
        repetitions: [5, 3, 5],
    };
    /// Takes half a minute.
    pub(super) const QUICK_OF_MESH: Self = Self {
        frames: &[300],
        loads: &[1000],
        durations_ms: &[600],
        lasting_ms: [600, 400],
        repetitions: [1, 1, 1],
    };
    /// Takes 35 seconds.
    pub(super) const QUICK: Self = Self {
        frames: &[SHORTEST_FRAME, 1500],
        loads: &[400, 1000],
        durations_ms: &[400, 1200],
        lasting_ms: [800, 400],
        repetitions: [2, 2, 2],
    };
}

/// The runs of a section.
pub(super) struct Measurements<'a> {
    question: Question,
    size: PassiveDelayScale,
    /// `None` where nothing is run.
    clock: Option<ClockService>,
    /// None where captures of this process measure.
    mesh: Option<&'a mut ReusedMesh>,
}

impl<'a> Measurements<'a> {
    /// # Errors
    /// When the counter cannot be calibrated.
    pub(super) fn new(
        question: Question,
        size: PassiveDelayScale,
        mesh: Option<&'a mut ReusedMesh>,
    ) -> anyhow::Result<Self> {
        let clock = ClockService::start(Counter::select());
        let clock = Some(clock.context("cannot calibrate the counter")?);
        Ok(Self { question, size, clock, mesh })
    }

    /// Those whose runs were made before.
    #[cfg(test)]
    pub(super) const fn done(question: Question, size: PassiveDelayScale) -> Self {
        Self { question, size, clock: None, mesh: None }
    }

    /// How a cell is run.
    pub(super) fn setting(question: Question, size: PassiveDelayScale, cell: &Cell) -> Setting {
        let level = |factor: usize| cell.0.get(factor).copied().unwrap_or(0);
        let of = |values: &[u32], factor: usize| values.get(level(factor)).copied().unwrap_or(1);
        let lasting = |ms: u32| Span::from_millis(ms.into());
        let [precision, frames] = size.lasting_ms.map(lasting);
        let frame = size.frames.get(level(0)).copied().unwrap_or(SHORTEST_FRAME);
        let usual = Setting {
            frame,
            load: 400,
            tasks: 1,
            lasting: frames,
            bottleneck: Bottleneck::of_ethernet(frame),
        };
        match question {
            Question::Precision => Setting {
                frame: SHORTEST_FRAME,
                load: 25,
                lasting: precision,
                bottleneck: Bottleneck::of_precision(SHORTEST_FRAME),
                ..usual
            },
            Question::Frames => Setting { load: of(size.loads, 1), tasks: of(&TASKS, 2), ..usual },
            Question::Duration => Setting {
                frame: 300,
                lasting: lasting(of(size.durations_ms, 0)),
                bottleneck: Bottleneck::of_ethernet(300),
                ..usual
            },
        }
    }

    fn of(&self, cell: &Cell) -> Setting {
        Self::setting(self.question, self.size, cell)
    }

    fn factors(&self) -> Vec<Factor> {
        let factor =
            |name: &str, levels: Vec<String>| Factor::new(name, levels.iter().map(String::as_str));
        let frames = self.size.frames.iter().map(|frame| format!("{frame}-bytes"));
        let loads = self.size.loads.iter().map(|load| format!("{}-percent", load / 10));
        let tasks = ["1-task", "4-tasks"].map(str::to_owned);
        let durations = self.size.durations_ms.iter().map(|ms| format!("{ms}-ms"));
        match self.question {
            Question::Precision => Vec::new(),
            Question::Frames => vec![
                factor("frame", frames.collect()),
                factor("load", loads.collect()),
                factor("tasks", tasks.to_vec()),
            ],
            Question::Duration => vec![factor("duration", durations.collect())],
        }
    }
}

impl Study for Measurements<'_> {
    type Sample = Measured;

    fn design(&self) -> Design {
        let [first, second, third] = self.size.repetitions;
        let (repetitions, lasting) = match self.question {
            Question::Precision => (first, self.size.lasting_ms[0]),
            Question::Frames => (second, self.size.lasting_ms[1]),
            Question::Duration => (third, 0),
        };
        let constants = (lasting > 0).then(|| ("milliseconds".to_owned(), lasting.to_string()));
        let by = if self.mesh.is_some() { "-mesh" } else { "" };
        Design {
            name: format!("passive-delay{by}-{}", self.question),
            factors: self.factors(),
            repetitions,
            constants: constants.into_iter().collect(),
        }
    }

    fn lasts(&self, cell: &Cell) -> Duration {
        let nanos = u64::try_from(self.of(cell).lasting.as_nanos()).unwrap_or(0);
        let around = if self.mesh.is_some() { AROUND_OF_MESH } else { AROUND };
        Duration::from_nanos(nanos) + around
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Measured>> {
        let clock = self.clock.as_ref().context("these runs were made before")?;
        let setting = self.of(cell);
        Ok(vec![match &mut self.mesh {
            None => bed::run(&setting, clock, stop)?,
            Some(mesh) => over_mesh::run(&setting, mesh, clock, stop)?,
        }])
    }
}
