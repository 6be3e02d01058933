//! The clock that a capture's stamps are converted with.

use anyhow::Context;
use wirestamp_clock::{ClockService, Counter, Phc};

/// Starts it; with the network card's clock of this number, if the stamps are that card's
/// ([`wirestamp_capture::capabilities::card_clock`]).
pub(crate) fn start(card: Option<u32>) -> anyhow::Result<ClockService> {
    let counter = Counter::select();
    match card.map(Phc::open).transpose()? {
        Some(nic) => ClockService::start_with_nic(counter, nic).context("cannot follow the clocks"),
        None => ClockService::start(counter).context("cannot calibrate the counter"),
    }
}
