//! The cells: reception technique, and size of the temporary step of the delay.

use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_clock::Span;

use super::paper::{FRAME_BYTES, STEP_NS};
use crate::experiment::{Cell, Design, Factor, Study};
use crate::replicas::{Bed, Block, Round, Technique};

/// The delay before and after the step: longer than sending a replica takes, so that the sender waits
/// for the counter and not for the kernel.
const DELAY: Span = Span::from_micros(10);
/// From one packet to the next, with room for both replicas.
const INTERVAL: Span = Span::from_micros(16);
/// Blocks that the packets of a run are kept in: fifty before, in and after the step.
pub(super) const BLOCKS: u32 = 150;
/// Duration of a run without sending.
const AROUND: Duration = Duration::from_millis(250);
/// Max duration of a run on a busy machine, as a multiple of its nominal duration.
const MAX_DURATION_FACTOR: i64 = 20;

/// How much is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepScale {
    pub(super) repetitions: u32,
    /// Packets of a run, a multiple of [`BLOCKS`]: one third before the step, in it, and after it.
    pub(super) packets: u32,
    /// The steps, in nanoseconds.
    pub(super) steps: Vec<u32>,
}

impl StepScale {
    /// The paper's packets and its step, nothing at all and something larger, in half an hour.
    pub(super) fn full() -> Self {
        Self { repetitions: 4, packets: 750_000, steps: vec![0, STEP_NS, 1_000] }
    }

    /// The paper's step and a larger one, in less than half a minute.
    pub(super) fn quick() -> Self {
        Self { repetitions: 2, packets: 15_000, steps: vec![STEP_NS, 10_000] }
    }
}

/// The study, with the links that it needs.
pub(super) struct Cells {
    size: StepScale,
    techniques: Vec<Technique>,
    /// None until the first run, so that stored results can be shown without privileges.
    bed: Option<Bed>,
}

impl Cells {
    /// With the techniques that this machine can do.
    pub(super) fn new(size: StepScale) -> Self {
        let techniques = Technique::all().filter(|technique| technique.works_here()).collect();
        Self { size, techniques, bed: None }
    }
}

/// The technique and the step in nanoseconds of a cell of the design.
pub(super) fn of(design: &Design, cell: &Cell) -> Option<(String, u32)> {
    let [technique, step] = design.levels(cell).try_into().ok()?;
    Some((technique.to_owned(), step.parse().ok()?))
}

/// Whether the delay of a packet is raised, in a run of `packets` packets.
pub(super) const fn is_raised(number: u64, packets: u64) -> bool {
    packets / 3 <= number && number < packets / 3 * 2
}

impl Study for Cells {
    type Sample = Block;

    fn design(&self) -> Design {
        let StepScale { repetitions, packets, steps } = &self.size;
        let techniques: Vec<_> = self.techniques.iter().map(|it| it.name()).collect();
        let steps: Vec<_> = steps.iter().map(u32::to_string).collect();
        Design {
            name: "step".to_owned(),
            factors: vec![
                Factor::new("technique", techniques.iter().map(String::as_str)),
                Factor::new("step (ns)", steps.iter().map(String::as_str)),
            ],
            repetitions: *repetitions,
            constants: vec![
                ("packets of a run".to_owned(), packets.to_string()),
                ("delay".to_owned(), DELAY.to_string()),
                ("interval".to_owned(), INTERVAL.to_string()),
            ],
        }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        let gap = u64::try_from(INTERVAL.as_nanos()).unwrap_or(0);
        AROUND + Duration::from_nanos(gap) * self.size.packets
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Block>> {
        let (technique, step) = of(&self.design(), cell).context("a cell without levels")?;
        let packets = self.size.packets;
        let delay = |number: u32| {
            let raised = is_raised(number.into(), packets.into());
            DELAY + Span::from_nanos(if raised { step.into() } else { 0 })
        };
        let round = Round {
            technique: Technique::named(&technique).context("no such technique")?,
            frame_bytes: FRAME_BYTES,
            interval: INTERVAL,
            packets,
            time: Span::from_nanos(MAX_DURATION_FACTOR * INTERVAL.as_nanos() * i64::from(packets)),
            delay: &delay,
            stressed: false,
        };
        let bed = match self.bed.take() {
            Some(bed) => bed,
            None => Bed::build()?,
        };
        let measured = self.bed.insert(bed).run(&round, stop)?;
        Ok(Block::all(&measured, usize::try_from(packets / BLOCKS)?))
    }
}
