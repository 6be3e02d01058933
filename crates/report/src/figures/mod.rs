//! Figures as SVG to be put into a page: what they have in common, and those of a stream.
//!
//! The SVG contains the colours for white paper. In dark mode the style sheet of the page replaces each of them, so
//! it must list every colour named here.

pub mod density;
mod distribution;
mod frame;
mod lines;
mod mos;
mod over_time;
mod series;

pub(super) use distribution::{delay_histogram, interarrival, of_distribution};
pub use frame::{Chart, Drawn, FIRST_SERIES, Figure, Frame, INK, SERIES, letters, ticks};
pub use lines::{Line, lines};
pub(super) use mos::mos_over_time;
pub(super) use over_time::delay_over_time;
pub(super) use series::delay_series;

#[cfg(test)]
mod tests;
