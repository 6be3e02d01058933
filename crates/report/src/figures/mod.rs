//! Figures as SVG to be put into a page: what they have in common, and those of a stream.
//!
//! Colours are written into the SVG as on paper. The style sheet of the page replaces them one by
//! one in dark mode, so it must know every colour named here.

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
