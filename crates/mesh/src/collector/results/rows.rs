//! Rows of results: windows, counts, sums.

use serde::{Deserialize, Serialize};
use strum::AsRefStr;
use utoipa::ToSchema;
use wirestamp_metrics::Counts;

use super::Spread;
use super::counts_schema::CountsSchema;
use crate::collector::NotSynchronised;

/// Results of a window.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Measured {
    /// Begin of the window, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// Packet counts.
    #[serde(flatten)]
    #[schema(value_type = CountsSchema)]
    pub counts: Counts,
    /// One-way delay; none without packets seen at both points, or if the clocks are not synchronised.
    #[schema(required)]
    pub delay_ns: Option<Spread>,
    /// Delay above the min of the window, independent of the clocks.
    #[schema(required)]
    pub above_minimum_ns: Option<Spread>,
    /// Delay variation from packet to packet (IPDV, RFC 3393).
    #[schema(required)]
    pub variation_ns: Option<Spread>,
    /// Max error of the delays.
    #[schema(required)]
    pub error_ns: Option<i64>,
    /// Why the error is not known.
    #[schema(required)]
    pub not_synchronised: Option<NotSynchronised>,
    /// Whether a negative delay contradicts the stated clock errors.
    pub contradicts_the_clocks: bool,
    /// Whether `lost` and `unexpected` are lower bounds, and the undetermined packets upper bounds: the task has several
    /// shards, and the packets that a capture missed may count as undetermined in each of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_are_bounds: bool,
    /// MOS of a call with the codec of the task, 1 to 4.5 (ITU-T G.107). If the task names a codec,
    /// either this or `no_mos` is present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// Why the MOS is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_mos: Option<MosUnavailable>,
    /// Round trips and the return path of an active test. In the results of an active test, either this or
    /// `no_return_path` is present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_path: Option<MeasuredReturn>,
    /// Why round trips and the return path are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_return_path: Option<NotReported>,
}

/// Why there is no MOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema, AsRefStr)]
#[serde(rename_all = "kebab-case")]
#[schema(as = NoOpinion)]
#[strum(serialize_all = "kebab-case")]
pub enum MosUnavailable {
    /// No packet was seen at both points.
    NoDelay,
    /// The clocks are not synchronised, so the delay has no bound.
    NotSynchronised,
    /// A negative delay contradicts the clock errors.
    ContradictsTheClocks,
    /// ITU-T G.113 has no loss parameters for the codec, and there were losses.
    Codec,
}

/// Round trips and the return path of an active test (STAMP, RFC 8762), of the packets that the first point sent in the
/// window.
///
/// Packets seen at both points are answered, lost on the way back, or undetermined. The reflector states the time at
/// which its program sends an answer. So round trips and delays are overestimated by the duration of the system call,
/// which is part of the errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct MeasuredReturn {
    /// Packets seen at both points whose answer reached the sender within 800 ms.
    pub answered: u64,
    /// Packets seen at both points whose answer did not: lost on the way back, or not sent by the reflector.
    pub lost: u64,
    /// Packets seen at both points of which the answer is unknown: the sender did not observe or report it, or its
    /// socket dropped datagrams.
    pub undetermined: u64,
    /// Round-trip time without the time at the reflector. It does not depend on the offset of the clocks.
    #[schema(required)]
    pub round_trip_ns: Option<Spread>,
    /// Max error of the round-trip times, if no clock was set or slewed during a round trip.
    #[schema(required)]
    pub round_trip_error_ns: Option<i64>,
    /// One-way delay from the second point to the first; none without answers, or if the clocks are not synchronised
    /// (`not_synchronised`).
    #[schema(required)]
    pub delay_ns: Option<Spread>,
    /// Max error of the delays from the second point to the first.
    #[schema(required)]
    pub error_ns: Option<i64>,
    /// Why there are no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_times: Option<NoTimes>,
    /// Why the errors are not known, although there are times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_error: Option<NotReported>,
    /// Whether a negative delay from the second point to the first contradicts the stated clock errors.
    pub contradicts_the_clocks: bool,
}

/// Why there are no round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema, AsRefStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NoTimes {
    /// No answer reached the sender.
    NoAnswer,
    /// The times of the answers are not valid: a clock was set.
    NotValid,
}

/// Why a value of an active test is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema, AsRefStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NotReported {
    /// The probe did not report it: it is of an earlier version, or did not observe.
    NotReported,
}

/// Counts of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct Counted {
    /// Begin of the interval, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire, with the link header, without the frame check sequence.
    pub bytes: u64,
    /// Packets lost by the capture, of any kind.
    pub missed: u64,
    /// Observed part of the interval, in nanoseconds.
    pub watched_ns: i64,
}

/// Sum of all intervals, at most 2^62 each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Sum {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire, with the link header, without the frame check sequence.
    pub bytes: u64,
    /// Packets lost by the capture, of any kind.
    pub missed: u64,
    /// Observed time, in nanoseconds.
    pub watched_ns: u64,
}
