//! The cells: reception technique, packets, and CPU load.

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use wirestamp_capture::Stop;
use wirestamp_clock::Span;

use super::paper::{FIGURE_2, FRAME_BYTES, LOADS, SPEEDS, Speed};
use crate::experiment::{Cell, Design, Factor, Study};
use crate::replicas::{Bed, Block, Round, Technique};

/// As many packets as a run of the paper's Figure 2 has.
const MOST_PACKETS: u64 = 1_000_000;
/// Blocks that the packets of a run are kept in, about.
const BLOCKS: usize = 25;
/// Duration of a run without sending: start and end of captures, and warm-up packets.
const AROUND: Duration = Duration::from_millis(250);

/// How much is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReceptionScale {
    /// Name of the design.
    pub(super) name: &'static str,
    /// Techniques, of those that this machine can do; none for all.
    pub(super) techniques: Option<&'static [&'static str]>,
    pub(super) repetitions: u32,
    /// How long a run sends.
    pub(super) time_ms: u32,
    pub(super) frame_bytes: Vec<u16>,
    pub(super) speeds: Vec<Speed>,
    pub(super) loads: &'static [&'static str],
}

/// The techniques of which this project claims a bound of the fluctuation.
pub(super) const STEADY: [&str; 2] = ["ring:kernel", "xdp-pass:xdp"];

impl ReceptionScale {
    /// The paper's cells, in half an hour.
    pub(super) fn full() -> Self {
        Self {
            name: "reception",
            techniques: None,
            repetitions: 5,
            time_ms: 2_500,
            frame_bytes: FRAME_BYTES.to_vec(),
            speeds: SPEEDS.to_vec(),
            loads: &LOADS,
        }
    }

    /// Those of Figures 5 and 6 and one size more, in half a minute.
    pub(super) fn quick() -> Self {
        Self {
            repetitions: 2,
            time_ms: 50,
            frame_bytes: vec![64, 256],
            speeds: vec![SPEEDS[1]],
            ..Self::full()
        }
    }

    /// The conditions of the paper's Figure 2 for the techniques of our claim, with as many repetitions as fit in three
    /// minutes: single interruptions of the machine decide about the fluctuation of a run.
    pub(super) fn of_figure_2(quick: bool) -> Self {
        let (repetitions, time_ms) = if quick { (3, 50) } else { (30, 2_500) };
        Self {
            name: "reception-fluctuation",
            techniques: Some(&STEADY),
            repetitions,
            time_ms,
            frame_bytes: vec![FIGURE_2.0],
            speeds: SPEEDS.into_iter().filter(|speed| speed.name == FIGURE_2.1).collect(),
            loads: &LOADS[..1],
        }
    }
}

/// The study, with the links that it needs.
pub(super) struct Cells {
    size: ReceptionScale,
    techniques: Vec<Technique>,
    /// None until the first run, so that stored results can be shown without privileges.
    bed: Option<Bed>,
}

/// Conditions of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Conditions {
    /// How packets were received and stamped.
    pub(super) technique: String,
    /// Check sequence included.
    pub(super) frame_bytes: u16,
    /// The link's speed.
    pub(super) speed: String,
    /// Whether the cores of the captures were busy with something else.
    pub(super) stressed: bool,
}

impl Cells {
    /// With the techniques that this machine can do.
    pub(super) fn new(size: ReceptionScale) -> Self {
        let is_wanted = |technique: &Technique| {
            size.techniques.is_none_or(|names| names.contains(&&*technique.name()))
        };
        let techniques = Technique::all().filter(is_wanted).filter(|it| it.works_here()).collect();
        Self { size, techniques, bed: None }
    }
}

impl Conditions {
    /// Whether they are these.
    pub(super) fn is(
        &self,
        technique: &str,
        (frame_bytes, speed): (u16, &str),
        stressed: bool,
    ) -> bool {
        (&*self.technique, self.frame_bytes, &*self.speed, self.stressed)
            == (technique, frame_bytes, speed, stressed)
    }

    /// Those of a cell of the design.
    pub(super) fn of(design: &Design, cell: &Cell) -> Option<Self> {
        let [technique, frame_bytes, speed, load] = design.levels(cell).try_into().ok()?;
        Some(Self {
            technique: technique.to_owned(),
            frame_bytes: frame_bytes.parse().ok()?,
            speed: speed.to_owned(),
            stressed: load == LOADS[1],
        })
    }
}

impl Study for Cells {
    type Sample = Block;

    fn design(&self) -> Design {
        let ReceptionScale { name, repetitions, time_ms, frame_bytes, speeds, loads, .. } =
            &self.size;
        let techniques: Vec<_> = self.techniques.iter().map(|it| it.name()).collect();
        let sizes: Vec<_> = frame_bytes.iter().map(u16::to_string).collect();
        Design {
            name: (*name).to_owned(),
            factors: vec![
                Factor::new("technique", techniques.iter().map(String::as_str)),
                Factor::new("frame size (bytes)", sizes.iter().map(String::as_str)),
                Factor::new("link speed", speeds.iter().map(|speed| speed.name)),
                Factor::new("CPU", loads.iter().copied()),
            ],
            repetitions: *repetitions,
            constants: vec![("milliseconds of a run".to_owned(), time_ms.to_string())],
        }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        AROUND + Duration::from_millis(self.size.time_ms.into())
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Block>> {
        let design = self.design();
        let conditions = Conditions::of(&design, cell).context("a cell without levels")?;
        let Conditions { technique, frame_bytes, speed, stressed } = conditions;
        let speed = self.size.speeds.iter().find(|it| it.name == speed);
        let interval_ns = speed.context("no such speed")?.interval_ns(frame_bytes);
        let technique = Technique::named(&technique);
        let packets = (u64::from(self.size.time_ms) * 1_000_000 / interval_ns).min(MOST_PACKETS);
        let round = Round {
            technique: technique.context("no such technique")?,
            frame_bytes,
            interval: Span::from_nanos(i64::try_from(interval_ns)?),
            packets: u32::try_from(packets)?,
            time: Span::from_millis(self.size.time_ms.into()),
            // A cable: no delay.
            delay: &|_| Span::ZERO,
            stressed,
        };
        let bed = match self.bed.take() {
            Some(bed) => bed,
            None => Bed::build()?,
        };
        let measured = self.bed.insert(bed).run(&round, stop)?;
        let packets = measured.packets.len().div_ceil(BLOCKS);
        Ok(Block::all(&measured, packets))
    }
}
