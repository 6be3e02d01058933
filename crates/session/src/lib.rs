//! Observation points of one process, from the capture to the correlator.
//!
//! [`Recording`] counts and writes the packets of a capture. [`PairSession`] correlates the captures of two
//! points, and [`compare()`] those of two capture files. [`flows`] follows the flows of one point.

#![forbid(unsafe_code)]

mod compare;
mod figures;
mod flow_counts;
pub mod flows;
mod identity_sample;
mod live;
mod outcome_recorder;
mod pair_session;
mod point_state;
mod recording;
mod rule_trial;

pub use compare::{
    ChainCorrections, ChainPacket, Comparison, Correction, Fate, HopDelay, PipeReport, PointStamp,
    Survey, Terms, compare, compare_chain, survey,
};
pub use figures::{AnchorCount, Figures};
pub use flow_counts::FlowCounts;
pub use live::{Glance, LiveFigures};
pub use outcome_recorder::OutcomeRecorder;
pub use pair_session::{PairSession, TapReport};
pub use point_state::PointState;
pub use recording::Recording;
pub use rule_trial::{RuleChoice, RuleMatches};
