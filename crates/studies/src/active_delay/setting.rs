//! Settings of a run.

use std::time::Duration;

use crate::experiment::Cell;

/// Frames in bytes, with check sequence as in the report.
pub(super) const FRAMES: [u16; 2] = [600, 1500];
/// Packets a second.
pub(super) const RATES: [u32; 2] = [500, 4_167];

/// Traffic of a run.
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
