//! Columns of anchor files.

use std::str::FromStr;

use crate::Span;
use crate::anchor::Anchor;
use crate::ratio::Rate;

/// First line of a file.
pub(super) const HEADER: &str = "raw_ticks,utc_ns,monotonic_raw_ns,error_ns,epoch,clock,boot_id,\
                      granularity_ns,frequency_hz,rate_error_ppm,row,line_ns_per_tick,line_error_ns";

/// First line of a file of earlier versions, which has only anchors.
pub(super) const HEADER_OF_ANCHORS: &str = "raw_ticks,utc_ns,monotonic_raw_ns,error_ns,epoch,clock,boot_id,\
                      granularity_ns,frequency_hz,rate_error_ppm";

/// Max distance of neighbouring anchors: beyond it some are missing. A calibrator takes four per second.
pub(super) const MAX_GAP: Span = Span::from_secs(30);

/// Name of the clock that has its own domain.
pub(super) const MONOTONIC: &str = "CLOCK_MONOTONIC";

/// Meaning of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// A joint read of the clocks.
    Anchor,
    /// A line of the kernel begins, the first one or the first after an interruption.
    FirstLine,
    /// A line of the kernel begins and ends the one before.
    Line,
}

impl RowKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Anchor => "anchor",
            Self::FirstLine => "first-line",
            Self::Line => "line",
        }
    }
}

impl FromStr for RowKind {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let kinds = [Self::Anchor, Self::FirstLine, Self::Line];
        kinds.into_iter().find(|kind| kind.name() == name).ok_or(())
    }
}

/// A line of the kernel, from the row's raw value and time on.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineColumns {
    pub(super) nanos_per_tick: f64,
    pub(super) error: Span,
}

/// The columns that differ from line to line.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnchorRow {
    /// Number of the line in the file, from 1.
    pub(super) number: u64,
    pub(super) kind: RowKind,
    /// The kernel's line in force at the row; none if stamps are not converted by it.
    pub(super) line: Option<LineColumns>,
    pub(super) anchor: Anchor,
    pub(super) epoch: u32,
    pub(super) rate: Rate,
    pub(super) granularity: Span,
}
