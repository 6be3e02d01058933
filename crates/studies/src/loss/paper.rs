//! Set-up of the paper.

pub(crate) use crate::overhead::PAPER;

/// "20,000 packets were transmitted each time" (section V.B).
pub(super) const PACKETS: u64 = 20_000;
