//! Terms of a comparison.

use wirestamp_capture::Filter;
use wirestamp_metrics::Config;

use super::correction::Correction;
use crate::point_state::PointState;

/// How two files are compared.
#[derive(Clone, Copy, Default)]
pub struct Terms<'a> {
    /// What the correlator goes by.
    pub correlation: Config,
    /// Whether a damaged file counts up to the damage.
    pub partial: bool,
    /// If there is one, only the packets that pass it count, while what the captures lost is not known
    /// to pass it: then it may account for losses that are the network's.
    pub filter: Option<&'a Filter>,
    /// What is taken off the stamps of file B.
    pub correction: Correction,
    /// What both points see, as long as they have seen nothing: every packet, and nothing beside, if
    /// it is not said.
    pub sight: Option<&'a PointState>,
}
