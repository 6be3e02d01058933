//! The clock for converting a capture's stamps.

use anyhow::Context;
use wirestamp_clock::{ClockService, Counter, Phc};

/// Starts the clock service; with the network card's clock of this number for hardware stamps
/// ([`wirestamp_capture::capabilities::card_clock`]).
pub(crate) fn start(card: Option<u32>) -> anyhow::Result<ClockService> {
    let counter = Counter::select();
    match card.map(Phc::open).transpose()? {
        Some(nic) => {
            ClockService::start_with_nic(counter, nic).context("cannot start the clock service")
        }
        None => ClockService::start(counter).context("cannot calibrate the counter"),
    }
}
