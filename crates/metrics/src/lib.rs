//! The correlator of observation points, and the RFC metrics on top of it.
//!
//! A packet seen at a point is an [`Observation`]. The [`Correlator`] takes the observations of
//! two points and says of each what became of it, as an [`Outcome`]; a [`Chain`] does so for more
//! points, [`Shards`] on more cores, and [`Lag`] tells of clocks too far apart for it. [`Quality`] counts outcomes
//! into the metrics of one flow or of all, and a [`FlowTable`] keeps one `Quality` for each flow.
//! A [`TwoWayTest`] measures both directions of a test whose packets are returned. [`InterArrival`] needs one point only. A [`Distribution`] holds the values of any of them in
//! constant memory.
//!
//! | metric | defined in | here |
//! |---|---|---|
//! | one-way delay | RFC 7679 section 3.4 | [`Outcome::Matched`], [`Quality::delay`] |
//! | delay variation (IPDV) | RFC 3393 section 2.4 | [`Outcome::Matched`], [`Quality::variation`] |
//! | delay variation from the least (PDV) | RFC 5481 section 4.2 | [`Summary::above_minimum`] |
//! | loss | RFC 7680 section 2.4 | [`Outcome::Lost`], [`Counts::lost`] |
//! | duplication | RFC 5560 sections 3 and 5 | [`Outcome::Duplicated`], [`Counts::duplicated`], [`Duplication`] |
//! | reordering | RFC 4737 section 3.3 | [`Outcome::Matched`], [`Counts::reordered`] |
//! | reordering extent, late time and byte offset, gaps, free runs, n-reordering | RFC 4737 sections 4.2 to 4.6, 5.3 | [`reordering`], [`SequenceMetrics::reordering`] |
//! | loss distance, loss periods, burst ratio | RFC 3357 sections 5 and 6, ITU-T G.107 section 7.5 | [`LossPattern`], [`SequenceMetrics::loss_pattern`] |
//! | R-factor, mean opinion score | ITU-T G.107 section 7 and Annex B, G.113 Appendix I | [`emodel`], [`Quality::as_call`], [`Quality::as_call_over_time`] |
//! | jitter, loss and skew of RTP | RFC 3550 section 6.4.1, appendices A.1, A.3 and A.8 | [`rtp`] |
//! | jitter and loss as iperf3 has them | its `src/iperf_udp.c` | [`iperf3`] |
//! | gaps of packet trains, before and behind | | [`TrainGaps`] |
//! | skew between the clocks of the points | Moon, Skelly and Towsley 1999 | [`ClockSkew`] |
//! | media delivery index | RFC 4445 section 3 | [`MediaDelivery`] |
//!
//! The RFCs on IP performance (all but 3550 and 4445) define these for test traffic; here they are
//! taken of whatever packets pass both points.
//!
//! What the *capture* lost is kept apart from what the network lost where the capture says when it
//! lost how many packets ([`Correlator::missed`]): such packets are given up, not lost. Otherwise a
//! packet that the capture at point B dropped is indistinguishable from one that the network
//! dropped, and the capture's own ledger of drops must read zero before a loss is believed.

#![forbid(unsafe_code)]

mod chain;
mod clock_skew;
mod compact_histogram;
mod correlator;
mod count_distribution;
mod delivery;
mod distribution;
mod duplication;
pub mod emodel;
pub mod flow;
mod flow_table;
mod histogram;
mod interarrival;
pub mod iperf3;
mod lag;
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
mod shards;
mod train;
mod two_way;
mod values;

pub use chain::{Chain, Segment};
pub use clock_skew::{ClockSkew, SkewEstimate};
pub use compact_histogram::{Bucket, CompactHistogram, MalformedHistogram};
pub use correlator::{Config, Correlator};
pub use count_distribution::{CountDistribution, CountSummary};
pub use delivery::{DeliveryIndex, MediaDelivery, MediaPacket, MediaRate};
pub use distribution::{Distribution, Summary};
pub use duplication::Duplication;
pub use flow_table::FlowTable;
pub use interarrival::InterArrival;
pub use lag::{Lag, LagEstimate};
pub use loss_pattern::{LossPattern, LossPoint};
pub use observation::{Observation, Point};
pub use outcome::{Outcome, UndeterminedReason};
pub use quality::{CallOverTime, ClockError, Counts, Quality, SequenceMetrics};
pub use sampling::Sampling;
pub use series::{Series, Slot};
pub use shards::Shards;
pub use train::{MatchedPacket, TrainGaps};
pub use two_way::{Reply, ReplyKind, TwoWayCounts, TwoWayResult, TwoWayTest};
pub use wirestamp_packet::CaptureLoss;
