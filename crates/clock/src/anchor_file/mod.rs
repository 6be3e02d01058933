//! Anchors in a file, so that raw stamps can be converted again later, and better.
//!
//! While a packet is fresh, its stamp can only be extrapolated from the anchors before it. Who
//! keeps the raw values and the anchors can convert again when all is over: then each stamp lies
//! between two anchors, half as far from the nearer one, and slews and steps are known that were
//! not known yet.
//!
//! # The file
//!
//! CSV with a header, that pandas and `DuckDB` read without options: one line for each anchor, in
//! the order in which they were taken. `clock` and `boot_id` are the same in all lines.
//!
//! | column | what it is |
//! |---|---|
//! | `raw_ticks` | [`Anchor::raw`](crate::Anchor::raw) |
//! | `utc_ns` | [`Anchor::utc`](crate::Anchor::utc), since 1970 |
//! | `monotonic_raw_ns` | [`Anchor::monotonic_raw`](crate::Anchor::monotonic_raw), since boot |
//! | `error_ns` | [`Anchor::error`](crate::Anchor::error) |
//! | `epoch` | steps and disruptions that were counted before this anchor |
//! | `clock` | the calibrated clock by its name: `tsc`, `CLOCK_MONOTONIC`, `phc0` |
//! | `boot_id` | the boot of the machine, empty if unknown |
//! | `granularity_ns` | the smallest usual step of the clock, as known when this was written |
//! | `frequency_hz` | its frequency against `CLOCK_MONOTONIC_RAW`, as known then |
//! | `rate_error_ppm` | how far that can be off |
//!
//! # Disruptions
//!
//! Unlike a [`crate::Calibrator`], which has to look ahead, a file keeps what it knew before the
//! clock was disrupted (by a suspend or a migration). Only stamps between the last anchor before
//! and the first one after a disruption have an unbounded error, and so have those in a gap of more
//! than half a minute, where anchors are missing.

mod read;
mod replay;
#[cfg(test)]
mod tests;
mod write;

pub use read::{AnchorFile, AnchorFileError};
pub use write::AnchorWriter;

use crate::Span;
use crate::anchor::Anchor;
use crate::rate::Rate;

/// The first line.
const HEADER: &str = "raw_ticks,utc_ns,monotonic_raw_ns,error_ns,epoch,clock,boot_id,\
                      granularity_ns,frequency_hz,rate_error_ppm";

/// Anchors farther apart than this are no neighbours: some between them are missing. A calibrator
/// takes four in a second.
const LONGEST_GAP: Span = Span::from_secs(30);

/// The clock whose readings need a domain of their own, by its name.
const MONOTONIC: &str = "CLOCK_MONOTONIC";

/// What differs from line to line.
#[derive(Clone, Copy, Debug)]
struct Row {
    anchor: Anchor,
    epoch: u32,
    rate: Rate,
    granularity: Span,
}
