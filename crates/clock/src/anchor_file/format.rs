//! Columns of anchor files.

use crate::Span;
use crate::anchor::Anchor;
use crate::ratio::Rate;

/// First line of a file.
pub(super) const HEADER: &str = "raw_ticks,utc_ns,monotonic_raw_ns,error_ns,epoch,clock,boot_id,\
                      granularity_ns,frequency_hz,rate_error_ppm";

/// Max distance of neighbouring anchors: beyond it some are missing. A calibrator takes four per second.
pub(super) const MAX_GAP: Span = Span::from_secs(30);

/// Name of the clock that has its own domain.
pub(super) const MONOTONIC: &str = "CLOCK_MONOTONIC";

/// The columns that differ from line to line.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnchorRow {
    pub(super) anchor: Anchor,
    pub(super) epoch: u32,
    pub(super) rate: Rate,
    pub(super) granularity: Span,
}
