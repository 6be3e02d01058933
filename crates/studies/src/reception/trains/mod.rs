//! Packet trains before and after a device, at the link speeds of Table I: the use of the two taps that the paper names
//! (section III) without a result, the effect of a device on the burstiness of a flow.
//!
//! The device is a router with a token bucket (tc-tbf(8)) of a known rate and depth, so that the gap of each packet after it
//! is known from the stamps before it: that of an ideal bucket.

mod bed;
mod bucket;
mod findings;

use std::time::Duration;

use anyhow::Context;
use wirestamp_capture::Stop;

use super::paper::{LINK_SPEEDS, Speed};
use crate::experiment::{Cell, Design, Factor, Study};
use bed::TrainBed;
use bucket::{Device, FRAME_BYTES, FRAMES};

pub(super) use bed::TrainPacket;
pub(super) use findings::{TrainCell, cells, claim};

/// Duration of a run without trains: start and end of the captures.
const AROUND: Duration = Duration::from_millis(350);

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrainScale {
    pub(super) repetitions: u32,
    /// Trains of a run.
    pub(super) trains: u32,
    pub(super) speeds: &'static [Speed],
    /// Depths of the bucket, in frames.
    pub(super) depths: &'static [u32],
}

impl TrainScale {
    /// Takes a minute.
    pub(super) const FULL: Self =
        Self { repetitions: 10, trains: 50, speeds: &LINK_SPEEDS, depths: &[1, 8] };
    /// Takes six seconds.
    pub(super) const QUICK: Self = Self { repetitions: 2, trains: 10, ..Self::FULL };
}

/// The study.
pub(super) struct Trains {
    size: TrainScale,
    /// None until the first run, so that stored results can be shown without privileges.
    bed: Option<TrainBed>,
}

impl Trains {
    pub(super) const fn new(size: TrainScale) -> Self {
        Self { size, bed: None }
    }
}

impl Study for Trains {
    type Sample = TrainPacket;

    fn design(&self) -> Design {
        let TrainScale { repetitions, trains, speeds, depths } = self.size;
        let depths: Vec<_> = depths.iter().map(u32::to_string).collect();
        Design {
            name: "reception-trains".to_owned(),
            factors: vec![
                Factor::new("link speed", speeds.iter().map(|speed| speed.name)),
                Factor::new("depth of the bucket (frames)", depths.iter().map(String::as_str)),
            ],
            repetitions,
            constants: vec![
                ("trains".to_owned(), trains.to_string()),
                ("frames of a train".to_owned(), FRAMES.to_string()),
                ("bytes of a frame".to_owned(), FRAME_BYTES.to_string()),
            ],
        }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        let interval = u64::try_from(bed::INTERVAL.as_nanos()).unwrap_or(0);
        AROUND + Duration::from_nanos(interval) * self.size.trains
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<TrainPacket>> {
        let device = Device::of(&self.design(), cell).context("a cell without levels")?;
        let bed = match self.bed.take() {
            Some(bed) => bed,
            None => TrainBed::build()?,
        };
        self.bed.insert(bed).run(device, self.size.trains, stop)
    }
}

#[cfg(test)]
mod tests;
