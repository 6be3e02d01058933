//! Correlator of observation points, and RFC metrics based on it.
//!
//! A packet captured at a point is an [`Observation`]. The [`Correlator`] takes the observations of two points and
//! reports an [`Outcome`] for each. A [`Chain`] correlates more points. [`Quality`] computes the metrics of one or several flows from
//! outcomes; a [`FlowTable`] holds one `Quality` per flow. A [`TwoWayTest`] measures both directions of a test with
//! returned packets. [`InterArrival`] needs one point only. A [`Distribution`] holds values in constant memory.
//!
//! | metric | defined in | here |
//! |---|---|---|
//! | one-way delay | RFC 7679 section 3.4 | [`Outcome::Matched`], [`Quality::delay`] |
//! | delay variation (IPDV) | RFC 3393 section 2.4 | [`Outcome::Matched`], [`Quality::variation`] |
//! | delay variation above the min (PDV) | RFC 5481 section 4.2 | [`Summary::above_minimum`] |
//! | loss | RFC 7680 section 2.4 | [`Outcome::Lost`], [`Counts::lost`] |
//! | duplication | RFC 5560 sections 3 and 5 | [`Outcome::Duplicated`], [`Counts::duplicated`], [`Duplication`] |
//! | reordering | RFC 4737 section 3.3 | [`Outcome::Matched`], [`Counts::reordered`] |
//! | reordering extent, late time and byte offset, gaps, free runs, n-reordering | RFC 4737 sections 4.2 to 4.6, 5.3 | [`reordering`], [`SequenceMetrics::reordering`] |
//! | loss distance, loss periods, burst ratio | RFC 3357 sections 5 and 6, ITU-T G.107 section 7.5 | [`LossPattern`], [`SequenceMetrics::loss_pattern`] |
//! | R-factor, MOS | ITU-T G.107 section 7 and Annex B, G.113 Appendix I | [`emodel`], [`JitterBuffer`], [`Quality::as_call`], [`Quality::as_call_over_time`] |
//! | jitter, loss and skew of RTP | RFC 3550 section 6.4.1, appendices A.1, A.3 and A.8 | [`rtp`] |
//! | jitter and loss of iperf3 | its `src/iperf_udp.c` | [`iperf3`] |
//! | gaps of packet trains, before and after the network | | [`TrainGaps`] |
//! | skew between the clocks of the points | Moon, Skelly and Towsley 1999 | [`ClockSkew`] |
//! | media delivery index | RFC 4445 section 3 | [`flow::VideoReport`], [`flow::TransportDeliveryReport`] |
//!
//! The RFCs on IP performance (all but 3550 and 4445) define these metrics for test traffic; here they apply to all
//! packets that pass both points.
//!
//! Losses of the *capture* are separated from losses of the network where the capture reports the time and number of
//! its losses ([`Correlator::missed`]): such packets are undetermined, not lost. Otherwise, a packet dropped by the
//! capture at point B is indistinguishable from one dropped by the network. The drop counts of the capture must then
//! be zero for a valid loss figure.

#![forbid(unsafe_code)]

mod chain;
mod clock_skew;
mod compact_histogram;
mod correlator;
mod count_distribution;
mod distribution;
mod duplication;
pub mod emodel;
pub mod flow;
mod flow_differences;
mod flow_table;
mod histogram;
mod interarrival;
pub mod iperf3;
mod jitter_buffer;
mod loss_pattern;
mod moments;
pub mod numeric;
mod observation;
mod outcome;
mod quality;
pub mod reordering;
pub mod rtp;
mod sampling;
mod series;
mod train;
mod two_way;
mod values;

pub use chain::{Chain, Segment};
pub use clock_skew::{ClockSkew, SkewEstimate};
pub use compact_histogram::{Bucket, CompactHistogram, MalformedHistogram};
pub use correlator::{Config, Correlator};
pub use count_distribution::{CountDistribution, CountSummary};
pub use distribution::{Distribution, Summary};
pub use duplication::Duplication;
pub use flow_differences::{Differences, FlowDifferences};
pub use flow_table::FlowTable;
pub use interarrival::InterArrival;
pub use jitter_buffer::JitterBuffer;
pub use loss_pattern::LossPattern;
pub use observation::{Observation, Point};
pub use outcome::{Outcome, UndeterminedReason};
pub use quality::{CallOverTime, ClockError, Counts, Quality, SequenceMetrics};
pub use sampling::{InvalidShare, Sampling};
pub use series::{Series, Slot};
pub use train::{MatchedPacket, TrainGaps};
pub use two_way::{Reply, ReplyKind, TwoWayCounts, TwoWayResult, TwoWayTest};
pub use wirestamp_packet::CaptureLoss;
