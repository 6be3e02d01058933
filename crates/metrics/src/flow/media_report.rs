//! Report of an RTP stream.

use std::fmt;

use serde::{Deserialize, Serialize};
use wirestamp_clock::Span;

use super::config::FlowConfig;
use super::encoding::{Encoding, codec_of};
use super::impairment::{Impairment, LossSeverity};
use super::stream::Stream;
use super::video::{Video, VideoReport};
use crate::emodel::{Codec, Parameters, Rating};
use crate::numeric::nanos_to_f64;

/// Quality of an RTP stream. Unknown values are null.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct RtpReport {
    /// The synchronisation source.
    pub ssrc: u32,
    /// Payload type; of several, the newest that is neither an event nor comfort noise.
    pub payload_type: u8,
    /// Encoding name, from RFC 3551 or SIP.
    pub codec: Option<String>,
    /// Clock rate of the timestamps. Without it there is no jitter, skew or MOS.
    pub clock_rate_hz: Option<u32>,
    /// Packets sent, by sequence numbers. Includes packets lost by the capture, because the network delivered them.
    pub expected: u64,
    /// Packets expected minus packets received, as RFC 3550 appendix A.3 and tshark count losses. Duplicates hide
    /// losses; may be negative.
    pub cumulative_lost: i64,
    /// Packets lost by the capture. Included in [`Self::cumulative_lost`] and in no other loss figure.
    pub capture_lost: u64,
    /// Uncertainty of `lost`: the network may have lost this many more or fewer, and the capture fewer or more. Above
    /// 0 where both lost packets at the same time, or where the capture may have lost packets of no stream.
    pub lost_uncertainty: u64,
    /// Packets later than the assumed de-jitter buffer waits. Null for video, whose packets of one frame have one
    /// timestamp, and where the clock rate is unknown.
    pub late: Option<u64>,
    /// Packets with a sequence number far from all others.
    pub stray: u64,
    /// Restarts of the sender's sequence numbers.
    pub restarts: u64,
    /// Runs of lost packets (loss periods, RFC 3357 section 4).
    pub loss_periods: u64,
    /// Burst ratio of lost and late packets (ITU-T G.107 section 7.5); 1 for random loss.
    pub burst_ratio: f64,
    /// The interarrival jitter (RFC 3550 section 6.4.1) at the last packet.
    pub jitter_ms: Option<f64>,
    /// Mean of the jitter over the packets, as tshark computes it.
    pub mean_jitter_ms: Option<f64>,
    /// Max jitter, as tshark computes it.
    pub max_jitter_ms: Option<f64>,
    /// Max time between two packets within a talk spurt, as tshark computes it.
    pub max_delta_ms: f64,
    /// Advance of the timestamps over the arrivals since the first packet.
    pub skew_ms: Option<f64>,
    /// Max skew by magnitude.
    pub max_skew_ms: Option<f64>,
    /// Conversational MOS, MOS-CQE (ITU-T G.107 Annex B), 1 to 4.5: from the losses, the packets too late for the
    /// buffer, and the assumed delay. Null for codecs without values in ITU-T G.113: see [`Self::mos_unknown`].
    pub mos: Option<f64>,
    /// Why the MOS of a voice stream is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mos_unknown: Option<UnknownMos>,
    /// Lower bound of the MOS if the cause of a loss is uncertain ([`Self::lost_uncertainty`]); otherwise equals `mos`.
    /// Packets lost by the capture count as on time. Null where the worst case cannot be rated.
    pub mos_lowest: Option<f64>,
    /// Upper bound of the MOS. Null where the best case cannot be rated.
    pub mos_highest: Option<f64>,
    /// Rating that the MOS is computed from.
    pub r_factor: Option<f64>,
    /// Length of the intervals of the following series, from the first packet on. At most 60 intervals.
    pub interval_ms: f64,
    /// MOS; null for intervals without expected packets.
    pub mos_over_time: Vec<Option<f64>>,
    /// Share of losses, 0 to 1, without late packets.
    pub loss_over_time: Vec<Option<f64>>,
    /// Max jitter in milliseconds; empty where the clock rate is unknown.
    pub jitter_ms_over_time: Vec<f64>,
    /// Media delivery index of a video.
    pub media_delivery: Option<VideoReport>,
}

/// Why the MOS of a stream is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownMos {
    /// The payload type is dynamic (RFC 3551 section 3), and its session description was not captured.
    UnknownPayloadType,
    /// ITU-T G.113 Appendix I has no values of the codec.
    UnratedCodec,
    /// It has no packet-loss robustness factor of the codec, and packets were lost or late.
    NoLossRobustness,
}

impl UnknownMos {
    /// The value of the JSON key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownPayloadType => "unknown-payload-type",
            Self::UnratedCodec => "unrated-codec",
            Self::NoLossRobustness => "no-loss-robustness",
        }
    }
}

impl fmt::Display for UnknownMos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownPayloadType => {
                "no captured SIP announces the payload type; --rtp-map states it"
            }
            Self::UnratedCodec => "only narrowband codecs of ITU-T G.113 are rated",
            Self::NoLossRobustness => "ITU-T G.113 does not say how loss impairs the codec",
        })
    }
}

impl RtpReport {
    /// Codec for the MOS of this stream; none for others than the narrowband codecs of ITU-T G.113.
    #[must_use]
    pub fn voice(&self) -> Option<Codec> {
        codec_of(self.codec.as_deref()?)
    }

    pub(super) fn of(stream: &Stream, config: &FlowConfig) -> Self {
        let encoding = stream.medium.encoding.as_ref();
        let (sequence, tshark) = (stream.rtp.sequence, stream.rtp.wireshark);
        let timed = |value: f64| encoding.and_then(Encoding::jitter_rate).map(|_| value / 1e6);
        let is_timed = stream.video.is_none() && timed(0.0).is_some();
        let skew = stream.rtp.skew;
        let voice = CodecRater::new(encoding.and_then(Encoding::codec), stream, config);
        let rating = voice.rating(&stream.total);
        let [mos_highest, mos_lowest] = voice.bounds(stream);
        let intervals = &stream.series.intervals;
        Self {
            ssrc: stream.ssrc,
            payload_type: stream.medium.number,
            codec: encoding.map(|it| it.name.to_string()),
            clock_rate_hz: encoding.map(|it| it.clock_rate.get()),
            expected: stream.total.expected,
            cumulative_lost: sequence.lost(),
            capture_lost: stream.capture_lost,
            lost_uncertainty: stream.uncertainty.lost.max(),
            late: is_timed.then_some(stream.total.late),
            stray: sequence.stray,
            restarts: sequence.restarts,
            loss_periods: stream.total.periods,
            burst_ratio: stream.total.burst_ratio(),
            jitter_ms: timed(stream.rtp.jitter.nanos),
            mean_jitter_ms: timed(tshark.mean_jitter),
            max_jitter_ms: timed(tshark.max_jitter),
            max_delta_ms: millis(tshark.max_delta),
            skew_ms: timed(nanos_to_f64(skew.now().as_nanos())),
            max_skew_ms: timed(nanos_to_f64(skew.max().as_nanos())),
            mos: rating.map(|rating| rating.mos()),
            mos_unknown: voice.unknown(rating, encoding).filter(|_| stream.video.is_none()),
            mos_lowest,
            mos_highest,
            r_factor: rating.map(|rating| rating.r_factor()),
            interval_ms: millis(stream.series.interval),
            mos_over_time: intervals
                .iter()
                .map(|it| voice.rating(&it.impairment).map(|rating| rating.mos()))
                .collect(),
            loss_over_time: intervals
                .iter()
                .map(|it| Impairment { late: 0, ..it.impairment }.ratio())
                .collect(),
            jitter_ms_over_time: intervals.iter().filter_map(|it| timed(it.jitter)).collect(),
            media_delivery: stream.video.as_deref().and_then(Video::report),
        }
    }
}

fn millis(span: Span) -> f64 {
    nanos_to_f64(span.as_nanos()) / 1e6
}

/// Rates a codec over an assumed delay. The rating without impairment is computed once.
struct CodecRater {
    codec: Option<Codec>,
    delay: Span,
    unimpaired: Option<Rating>,
}

impl CodecRater {
    /// The buffer adds what packets waited on average.
    fn new(codec: Option<Codec>, stream: &Stream, config: &FlowConfig) -> Self {
        let wait = stream.playout.mean_wait().or(config.buffer.fixed()).unwrap_or(Span::ZERO);
        let delay = Span::from_nanos(config.delay.as_nanos().saturating_add(wait.as_nanos()));
        let mut voice = Self { codec, delay, unimpaired: None };
        voice.unimpaired = voice.rated(0.0, 1.0);
        voice
    }

    /// Why there is no rating.
    fn unknown(&self, rating: Option<Rating>, encoding: Option<&Encoding>) -> Option<UnknownMos> {
        match (rating, encoding, self.codec) {
            (Some(_), ..) => None,
            (None, None, _) => Some(UnknownMos::UnknownPayloadType),
            (None, Some(_), None) => Some(UnknownMos::UnratedCodec),
            (None, Some(_), Some(_)) => Some(UnknownMos::NoLossRobustness),
        }
    }

    fn rated(&self, ratio: f64, burst_ratio: f64) -> Option<Rating> {
        let parameters = Parameters::of_call(self.codec?, self.delay, ratio, burst_ratio)?;
        Some(parameters.rating())
    }

    /// Rating; none without packets, and where the impairment cannot be rated.
    fn rating(&self, impairment: &Impairment) -> Option<Rating> {
        self.rating_of(LossSeverity {
            ratio: impairment.ratio()?,
            burst_ratio: impairment.burst_ratio(),
        })
    }

    fn rating_of(&self, severity: LossSeverity) -> Option<Rating> {
        match severity.ratio {
            0.0 => self.unimpaired,
            ratio => self.rated(ratio, severity.burst_ratio),
        }
    }

    /// Max and min MOS within the uncertainty.
    fn bounds(&self, stream: &Stream) -> [Option<f64>; 2] {
        let severities = stream.total.bounds(stream.uncertainty);
        let mos = |severity| self.rating_of(severity).map(|rating| rating.mos());
        severities.map_or([None; 2], |severities| severities.map(mos))
    }
}
