//! Files of anchors, for a later and tighter conversion of raw stamps.
//!
//! A fresh stamp is extrapolated from the anchors before it. If raw values and anchors are stored, it can be converted
//! again later. Then it lies between two anchors, half as far from the nearer one. Slews and steps that were unknown at
//! first are then known. Where the kernel's own lines convert ([`crate::vdso`]), the file has these too, and a stamp is
//! converted again with the same error.
//!
//! # Format
//!
//! CSV with a header, which pandas and `DuckDB` read without options: one row per anchor or line of the kernel, in
//! their order. `clock` and `boot_id` are the same in all rows.
//!
//! | column | value |
//! |---|---|
//! | `raw_ticks` | [`Anchor::raw`](crate::Anchor::raw) |
//! | `utc_ns` | [`Anchor::utc`](crate::Anchor::utc), since 1970 |
//! | `monotonic_raw_ns` | [`Anchor::monotonic_raw`](crate::Anchor::monotonic_raw), since boot |
//! | `error_ns` | [`Anchor::error`](crate::Anchor::error) |
//! | `epoch` | number of steps and disruptions before this anchor |
//! | `clock` | name of the calibrated clock: `tsc`, `CLOCK_MONOTONIC`, `phc0` |
//! | `boot_id` | the boot of the machine, empty if unknown |
//! | `granularity_ns` | smallest usual step of the clock, as estimated at the time of writing |
//! | `frequency_hz` | frequency against `CLOCK_MONOTONIC_RAW`, as estimated at the time of writing |
//! | `rate_error_ppm` | error bound of the frequency |
//! | `row` | `anchor`; or `line`: a line of the kernel begins here; or `first-line`: it does not continue the line before |
//! | `line_ns_per_tick` | slope of the kernel's line that is in force at the row; empty without one |
//! | `line_error_ns` | error of that line; larger where the kernel changed its line at an unknown time |
//!
//! A row of a line has the line's time in `utc_ns`. The line applies up to the next row that has a slope. Files of earlier
//! versions have no such rows and lack the last three columns.
//!
//! # Disruptions
//!
//! A [`crate::Calibrator`] extrapolates, so it discards its anchors after a disruption (a suspend or a migration); a
//! file keeps them. Only two kinds of stamps have an unbounded error: those between the last anchor before and the
//! first one after a disruption, and those in a gap of more than half a minute without anchors.

mod format;
mod lines;
mod read;
mod replay;
#[cfg(test)]
mod tests;
mod write;

pub use read::{AnchorFile, AnchorFileError};
pub use write::AnchorWriter;
