//! How long and how often each measurement is repeated.

use std::time::Duration;

use crate::contenders::Contender;

/// How long and how often is measured.
pub(crate) struct Extent {
    pub(crate) repetitions: u32,
    /// Packets of a test of delays, a millisecond apart.
    pub(crate) packets: u32,
    /// How long rates are measured.
    pub(crate) window: Duration,
}

impl Extent {
    /// The contenders of all repetitions, every second one in reverse order, so that a drift affects all equally.
    pub(crate) fn turns(&self) -> impl Iterator<Item = (u32, Contender)> {
        (1..=self.repetitions).flat_map(|repetition| {
            let mut all = Contender::ALL;
            if repetition % 2 == 0 {
                all.reverse();
            }
            all.map(|contender| (repetition, contender))
        })
    }
}
