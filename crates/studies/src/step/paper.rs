//! Set-up and results of the paper.

pub(crate) use crate::reception::PAPER;

/// The frame size of Figure 2; the paper does not state that of Figure 3.
pub(super) const FRAME_BYTES: u16 = 256;

/// "A very distinct increase of roughly 88 ns": what 18 m of copper add.
pub(super) const STEP_NS: u32 = 88;

/// "Software timestamps fluctuate in intervals of roughly 40 us", in nanoseconds.
pub(super) const SOFTWARE_INTERVAL_NS: f64 = 40_000.0;
/// "A measurement error of roughly ±16 ns" of hardware stamps.
pub(super) const HARDWARE_ERROR_NS: f64 = 16.0;
