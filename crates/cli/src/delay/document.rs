//! The JSON document of `delay`.

use std::borrow::Cow;
use std::net::IpAddr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;
use wirestamp_metrics::Quality;
use wirestamp_metrics::emodel::{Codecs, Scale};
use wirestamp_packet::MatchRule;
use wirestamp_session::TapReport;

use super::round_trip::RoundTripMembers;
use super::rtp::Stream;
use super::seconds::SecondsDocument;
use crate::{layers, quality};

/// Delay, loss, reordering and duplicates between two points, or between more points in a row. Times are in nanoseconds
/// unless the key has another unit. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Document<'a> {
    /// Two points, A and B.
    Pair(PairDocument<'a>),
    /// More than two points.
    Chain(ChainDocument<'a>),
}

/// More than two points in a row: the sub-paths (RFC 6049) between neighbours, and the complete path.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Chain")]
pub(crate) struct ChainDocument<'a> {
    /// From each point to the next.
    pub(super) subpaths: Vec<SubpathDocument<'a>>,
    /// From the first point to the last.
    pub(super) complete_path: SubpathDocument<'a>,
}

/// The measurement between two of several points.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Subpath")]
pub(crate) struct SubpathDocument<'a> {
    /// The first point: a capture file.
    pub(super) from: &'a str,
    /// The second point: a capture file.
    pub(super) to: &'a str,
    #[serde(flatten)]
    pub(super) result: PairDocument<'a>,
}

/// The measurement between two points, A and B. The figures are those of all flows together.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pair")]
pub(crate) struct PairDocument<'a> {
    #[serde(flatten)]
    pub(super) quality: KnownQuality,
    #[serde(flatten)]
    pub(super) clocks: ClockMembers<'a>,
    /// The rule by which packets of A and B are recognised as the same (`--match`).
    pub(super) match_rule: MatchRule,
    /// Why the loss is unknown. Null if it is known.
    pub(super) lost_reason: Option<String>,
    /// Share of the packets that were measured, 0 to 1; 1 without `--sample`.
    pub(super) sample_share: f64,
    /// Packets that `--sample` left out, at A and at B.
    pub(super) not_sampled: [u64; 2],
    /// Packets of both points with no identity: not IP, or cut too short. They are excluded.
    pub(super) unidentified: u64,
    /// Packets of `lost` that left A before the first or after the last packet observed at B.
    pub(super) lost_beyond_capture: u64,
    /// Packets lost by the captures themselves, at A and at B, which are never network losses. Null if a capture does
    /// not contain the number.
    pub(super) capture_dropped: [Option<u64>; 2],
    /// The part of `capture_dropped` whose time is unknown, at A and at B.
    pub(super) capture_dropped_undated: [u64; 2],
    /// TCP segments that were longer than the network carries and were divided, at A and at B.
    pub(super) segments_divided: [u64; 2],
    /// The parts into which they were divided, at A and at B.
    pub(super) segments_divided_into: [u64; 2],
    /// Segments that were divided for an MTU of 1500 bytes, because their SYN segments were not observed; at A and at B.
    pub(super) segments_divided_by_assumption: [u64; 2],
    /// The live captures; empty for files.
    pub(super) taps: &'a [TapReport],
    /// De-jitter buffer assumed for rating voice, in words.
    pub(super) assumed_jitter_buffer: String,
    /// The same buffer in milliseconds. Null if it is adaptive.
    pub(super) assumed_jitter_buffer_ms: Option<i64>,
    /// The flows.
    pub(super) flows: Vec<FlowDocument<'a>>,
    /// The flows beyond the max number of flows, together.
    pub(super) other_flows: KnownQuality,
    /// Time in the layers of this host behind B. Only with `--layers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) layers: Option<&'a layers::Document>,
    /// Packets and delays of each second. Only with `--per-second`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per_second: Option<SecondsDocument>,
}

/// Clock error, skew and correction.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ClockMembers<'a> {
    /// Why `clock_error_ns` is null. Null if the clock error is known, and without delays.
    pub(super) clock_error_reason: Option<&'a str>,
    /// Why one-way delays are unknown. Null if they are known.
    pub(super) owd_reason: Option<&'static str>,
    /// Offset subtracted from the times of B, in nanoseconds (`--offset`, `--align`).
    pub(super) offset_removed_ns: i64,
    /// Rate of the clock of B relative to that of A, in parts per million. Null if it is unknown.
    pub(super) skew_ppm: Option<f64>,
    /// Uncertainty of `skew_ppm`, in parts per million.
    pub(super) skew_error_ppm: Option<f64>,
    /// Why `skew_ppm` is null. Null if it is known.
    pub(super) skew_reason: Option<&'static str>,
    /// Skew that was removed from the times of B, in parts per million (`--remove-skew`); 0 if none was.
    pub(super) skew_removed_ppm: f64,
}

/// A flow.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Flow")]
pub(crate) struct FlowDocument<'a> {
    /// Source address.
    pub(super) src: IpAddr,
    /// Destination address.
    pub(super) dst: IpAddr,
    /// Source port; 0 for protocols without ports.
    pub(super) sport: u16,
    /// Destination port; 0 for protocols without ports.
    pub(super) dport: u16,
    /// IP protocol number (IANA).
    pub(super) protocol: u8,
    #[serde(flatten)]
    pub(super) quality: KnownQuality,
    #[serde(flatten)]
    pub(super) rated: Option<RatedMembers<'a>>,
    #[serde(flatten)]
    pub(super) round_trip: Option<RoundTripMembers>,
}

/// RTP streams of a flow and its rating by the E-model. Absent for flows without RTP, unless `--codec` is given.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RatedMembers<'a> {
    /// RTP streams of the flow, as recognised at either point. Absent for flows without RTP, unless `--codec` is given; so
    /// are the other keys of the rating.
    pub(super) rtp_streams: &'a [Stream],
    /// The codec that the rating is for, that of most packets. Null if none is rated.
    pub(super) codec: Option<&'static str>,
    /// All codecs that the rating is for. Null with `--codec`, and if none is rated.
    pub(super) rated_codecs: Option<Codecs>,
    /// Source of the codecs, in words. Null if none is rated.
    pub(super) codec_reason: Option<String>,
    /// Rating R (ITU-T G.107). Null if it is unknown.
    pub(super) r_factor: Option<f64>,
    /// Packets too late for the de-jitter buffer. Null if the order of sending is unknown.
    pub(super) late: Option<u64>,
    /// Conversational MOS, MOS-CQE, 1 to 4.5. Null if it is unknown.
    pub(super) mos: Option<f64>,
    /// Why the MOS of a flow with a codec is null.
    pub(super) mos_unknown: Option<&'static str>,
    /// Scale of `r_factor` and `mos`. Null without a rating.
    pub(super) r_scale: Option<Scale>,
    /// Whether delay, loss or burst ratio are outside the range of the model. Null without a rating.
    pub(super) extrapolated: Option<bool>,
    /// Length of the intervals of `mos_over_time`, in milliseconds. Null without a rating.
    pub(super) mos_interval_ms: Option<i64>,
    /// MOS of each interval, from the first packet to the last; null where it is unknown. Null without a rating.
    pub(super) mos_over_time: Option<Vec<Option<f64>>>,
}

/// Members of a quality that a measurement may not know.
const NULLABLE: [&str; 5] =
    ["owd_ns", "clock_error_ns", "clock_error_mean_ns", "lost", "loss_pattern"];

/// A quality, with null for members that this measurement does not know.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct KnownQuality(Value);

impl KnownQuality {
    /// `unknown` are members of [`NULLABLE`].
    pub(super) fn of(quality: &Quality, unknown: &[&str]) -> serde_json::Result<Self> {
        debug_assert!(unknown.iter().all(|name| NULLABLE.contains(name)), "{unknown:?}");
        quality::without(quality, unknown).map(Self)
    }

    /// Sets the error of the clocks, in nanoseconds.
    pub(super) fn set_clock_error(&mut self, error: Option<i64>) {
        if let Some(members) = self.0.as_object_mut() {
            members.insert("clock_error_ns".to_owned(), error.into());
        }
    }
}

impl JsonSchema for KnownQuality {
    fn schema_name() -> Cow<'static, str> {
        Quality::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        quality::schema(generator, &NULLABLE)
    }
}
