//! Overload of the reader: 20,000 packets of one size with one gap, captured in one way. The softIRQ runs on the
//! sender's core, and the reader on another, which may be busy.

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use wirestamp_capture::{Cores, Method, StampSource, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_traffic::live::{Limit, Pace};

use super::capture::{BUFFER_MIB, Captured, Capturing, Program};
use super::paper::PACKETS;
use super::round::Round;
use crate::experiment::{Cell, Design, Factor, Study};
use crate::tester::{Bed, CAPTURE_CORE, Ends, Load, SENDING_CORE, Spinner};

/// Frames due within this time are sent back to back: each send call takes tens of microseconds, which is the
/// min gap of single frames.
const BURST_NS: u64 = 64_000;
/// Max frames back to back: the kernel's batch size (NAPI budget).
const MAX_BURST_FRAMES: u64 = 64;

/// Factors and repetitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossStudyScale {
    pub(super) repetitions: u32,
    /// Bytes of a frame, check sequence included.
    pub(super) frame_bytes: &'static [u16],
    /// From the beginning of a frame to that of the next, on average, in nanoseconds; 0 for as fast as
    /// it goes.
    pub(super) gaps_ns: &'static [u64],
}

impl LossStudyScale {
    /// As many rounds as fit in 30 minutes; the paper does not state its number.
    pub(super) const FULL: Self = Self {
        repetitions: 10,
        frame_bytes: &[64, 128, 256, 512, 1024, 1518],
        gaps_ns: &[0, 1_000, 2_000, 4_000, 8_000],
    };
    /// As many rounds as fit in 35 seconds.
    pub(super) const QUICK: Self =
        Self { repetitions: 3, frame_bytes: &[64, 1518], gaps_ns: &[0, 4_000] };
}

/// Whether the core that captures is busy with something else.
pub(super) const CORES: [&str; 2] = ["idle", "busy"];

/// A combination of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Condition {
    #[serde(skip)]
    pub(super) method: usize,
    /// Bytes of a frame, check sequence included.
    pub(super) frame_bytes: u16,
    /// From the beginning of a frame to that of the next, on average.
    pub(super) gap_ns: u64,
    /// Whether the core that captures is kept busy.
    pub(super) busy_core: bool,
}

impl LossStudyScale {
    /// Conditions of a cell.
    pub(super) fn condition(self, cell: &Cell) -> Condition {
        let level = |factor: usize| cell.0.get(factor).copied().unwrap_or(0);
        Condition {
            method: level(0),
            frame_bytes: self.frame_bytes.get(level(1)).copied().unwrap_or(64),
            gap_ns: self.gaps_ns.get(level(2)).copied().unwrap_or(0),
            busy_core: level(3) == 1,
        }
    }

    /// The design, with these names for the ways to capture.
    pub(super) fn design(self, methods: [&str; 3]) -> Design {
        let sizes: Vec<_> = self.frame_bytes.iter().map(u16::to_string).collect();
        let gaps: Vec<_> = self.gaps_ns.iter().map(|gap| format!("{gap}ns")).collect();
        Design {
            name: "loss".to_owned(),
            factors: vec![
                Factor::new("method", methods),
                Factor::new("frame bytes", sizes.iter().map(String::as_str)),
                Factor::new("gap", gaps.iter().map(String::as_str)),
                Factor::new("core", CORES),
            ],
            repetitions: self.repetitions,
            constants: vec![("packets".to_owned(), PACKETS.to_string())],
        }
    }
}

/// The study, with the bed that it sends over.
pub(super) struct Rounds {
    size: LossStudyScale,
    bed: Bed,
    clock: ClockService,
    capturing: Capturing,
}

impl Rounds {
    pub(super) fn new(size: LossStudyScale) -> anyhow::Result<Self> {
        wirestamp_lab::check_privilege()?;
        let clock =
            ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
        Ok(Self { size, bed: Bed::build()?, clock, capturing: Capturing::new()? })
    }

    /// The ways to capture, in the order of the figures' colours.
    fn programs(&self) -> [Program; 3] {
        let ours = |stamp| Program::Ours(Method::Ring, stamp);
        [ours(StampSource::Raw), ours(StampSource::Kernel), self.capturing.generic()]
    }

    fn program(&self, condition: Condition) -> Program {
        self.programs()[condition.method % 3]
    }
}

impl Study for Rounds {
    type Sample = Round;

    fn design(&self) -> Design {
        self.size.design(self.programs().map(Program::name))
    }

    fn lasts(&self, cell: &Cell) -> Duration {
        let condition = self.size.condition(cell);
        let round = Duration::from_nanos(condition.gap_ns.max(1_000) * PACKETS);
        round + self.program(condition).around()
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Round>> {
        let condition = self.size.condition(cell);
        let load = load(condition.frame_bytes, condition.gap_ns)?;
        let _busy = condition.busy_core.then(|| Spinner::on(CAPTURE_CORE));
        let (here, other) = (Some(CAPTURE_CORE), Some(SENDING_CORE));
        let cores = Cores { acquire: here, convert: other, consume: here };
        let on = (&self.bed, &self.clock);
        let send = || load.send(&self.bed, &self.clock, stop.flag());
        let Captured { sent, dropped, captured } =
            self.capturing.capture(self.program(condition), (cores, BUFFER_MIB), on, send)?;
        Ok(vec![Round {
            sent: sent.sent,
            elapsed_ns: sent.elapsed.as_nanos(),
            interface_dropped: sent.dropped,
            kernel_dropped: dropped,
            captured,
        }])
    }
}

/// A round of frames of this size, check sequence included. The gap is from the beginning of a frame to that of the
/// next; 0 for as fast as it goes.
pub(super) fn load(frame_bytes: u16, gap_ns: u64) -> anyhow::Result<Load> {
    let pace = match gap_ns {
        0 => Pace::full_speed(),
        gap_ns => {
            let burst = (BURST_NS / gap_ns).clamp(1, MAX_BURST_FRAMES);
            Pace::rate(1_000_000_000 / gap_ns)?.with_burst(u32::try_from(burst)?)?
        }
    };
    let limit = Limit { frames: Some(PACKETS), duration: None };
    Ok(Load { frame_bytes, pace, limit, ends: Ends::of_the_bed() })
}
