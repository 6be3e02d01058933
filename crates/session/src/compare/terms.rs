//! Settings of a comparison.

use wirestamp_capture::Filter;
use wirestamp_metrics::Config;

use super::correction::Correction;
use crate::point_state::PointState;

/// Settings of a comparison of two files.
#[derive(Clone, Copy, Default)]
pub struct Terms<'a> {
    /// Settings of the correlator.
    pub correlation: Config,
    /// Whether to use a damaged file up to the damage.
    pub partial: bool,
    /// If set, only packets that pass it count. Packets lost by the captures may not pass it, so capture
    /// loss may hide network loss.
    pub filter: Option<&'a Filter>,
    /// Correction of the stamps of file B.
    pub correction: Correction,
    /// Initial state of both points; by default they observe every packet.
    pub state: Option<&'a PointState>,
}
