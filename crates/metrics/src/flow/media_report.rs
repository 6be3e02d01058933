//! Report of an RTP stream.

use serde::{Deserialize, Serialize};
use wirestamp_clock::Span;

use super::config::FlowConfig;
use super::encoding::Encoding;
use super::impairment::{Impairment, LossSeverity};
use super::series::IntervalCodec;
use super::stream::Stream;
use super::unknown_mos::UnknownMos;
use super::video::{Video, VideoReport};
use crate::emodel::{Codecs, Rating, Scale};
use crate::numeric::nanos_to_f64;

/// Quality of an RTP stream. Unknown values are null.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Burst ratio of lost and late packets (ITU-T G.107 section 7.5), without late ones where [`Self::late`] is null;
    /// 1 for random loss.
    pub burst_ratio: f64,
    /// The interarrival jitter (RFC 3550 section 6.4.1) at the last packet; null below two packets.
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
    /// buffer, and the assumed delay. Null for codecs without published values: see [`Self::mos_unknown`]. MOS of
    /// different [`Self::r_scale`] are not comparable.
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
    /// Max jitter in milliseconds; null for intervals without packets of a known clock rate. Empty where the clock rate
    /// is unknown.
    pub jitter_ms_over_time: Vec<Option<f64>>,
    /// Media delivery index of a video.
    pub media_delivery: Option<VideoReport>,
    /// Codecs that the rating is for, with the speech mode of AMR-WB; a stream that changes its codec has the mean R of all
    /// its packets. Null if they are not rated.
    #[serde(default)]
    pub rated_codecs: Option<Codecs>,
    /// Scale of `r_factor` and `mos`.
    #[serde(default)]
    pub r_scale: Option<Scale>,
    /// Digits dialled during the call (DTMF as telephone events, RFC 4733), at most 64; null without any.
    #[serde(default)]
    pub dtmf: Option<String>,
}

impl RtpReport {
    pub(super) fn of(stream: &Stream, config: &FlowConfig) -> Self {
        let encoding = stream.medium.encoding.as_ref();
        let (sequence, tshark) = (stream.rtp.sequence, stream.rtp.wireshark);
        let is_timed = encoding.and_then(Encoding::jitter_rate).is_some();
        let timed = |value: f64| is_timed.then_some(value / 1e6);
        let skew = stream.rtp.skew;
        let rater = CodecRater::new(stream, config);
        let rating = rater.rating(&stream.total);
        let [mos_highest, mos_lowest] = rater.bounds(stream);
        let intervals = &stream.series.intervals;
        let late = stream.late();
        Self {
            ssrc: stream.ssrc,
            payload_type: stream.medium.number,
            codec: encoding.map(|it| it.name.to_string()),
            clock_rate_hz: encoding.map(|it| it.clock_rate.get()),
            expected: stream.total.expected,
            cumulative_lost: sequence.lost(),
            capture_lost: stream.capture_lost,
            lost_uncertainty: stream.uncertainty.lost.max(),
            late,
            stray: sequence.stray,
            restarts: sequence.restarts,
            loss_periods: stream.total.periods,
            burst_ratio: match late {
                Some(_) => stream.total.burst_ratio(),
                None => Impairment { late: 0, late_periods: 0, ..stream.total }.burst_ratio(),
            },
            jitter_ms: stream.rtp.jitter.known_nanos().and_then(timed),
            mean_jitter_ms: timed(tshark.mean_jitter),
            max_jitter_ms: timed(tshark.max_jitter),
            max_delta_ms: millis(tshark.max_delta),
            skew_ms: timed(nanos_to_f64(skew.now().as_nanos())),
            max_skew_ms: timed(nanos_to_f64(skew.max().as_nanos())),
            mos: rating.map(|rating| rating.mos()),
            mos_unknown: rater.unknown(rating).filter(|_| stream.video.is_none()),
            mos_lowest,
            mos_highest,
            r_factor: rating.map(|rating| rating.r_factor()),
            interval_ms: millis(stream.series.interval),
            mos_over_time: intervals
                .iter()
                .map(|it| rater.rating_with(it.codec, &it.impairment).map(|rating| rating.mos()))
                .collect(),
            loss_over_time: intervals
                .iter()
                .map(|it| Impairment { late: 0, ..it.impairment }.ratio())
                .collect(),
            jitter_ms_over_time: if is_timed {
                intervals.iter().map(|it| it.jitter.and_then(timed)).collect()
            } else {
                Vec::new()
            },
            media_delivery: stream.video.as_deref().and_then(Video::report),
            rated_codecs: rater.codecs.clone().ok(),
            r_scale: rating.map(|rating| rating.scale),
            dtmf: Some(stream.digits.text.clone()).filter(|digits| !digits.is_empty()),
        }
    }
}

/// Conversational MOS of a stream; none if it cannot be rated.
pub(super) fn mos(stream: &Stream, config: &FlowConfig) -> Option<f64> {
    CodecRater::new(stream, config).rating(&stream.total).map(|rating| rating.mos())
}

fn millis(span: Span) -> f64 {
    nanos_to_f64(span.as_nanos()) / 1e6
}

/// Rates the codecs of a stream over an assumed delay. The rating without impairment is computed once.
struct CodecRater {
    codecs: Result<Codecs, UnknownMos>,
    delay: Span,
    unimpaired: Option<Rating>,
}

impl CodecRater {
    /// The buffer adds what packets waited on average.
    fn new(stream: &Stream, config: &FlowConfig) -> Self {
        let wait = stream.playout.mean_wait().or(config.buffer.fixed()).unwrap_or(Span::ZERO);
        let delay = Span::from_nanos(config.delay.as_nanos().saturating_add(wait.as_nanos()));
        let codecs = stream.codecs.codecs();
        let unimpaired = codecs.as_ref().ok().and_then(|codecs| codecs.rating(delay, 0.0, 1.0));
        Self { codecs, delay, unimpaired }
    }

    /// Why there is no rating.
    fn unknown(&self, rating: Option<Rating>) -> Option<UnknownMos> {
        match (rating, &self.codecs) {
            (Some(_), _) => None,
            (None, Err(reason)) => Some(*reason),
            (None, Ok(_)) => Some(UnknownMos::NoLossRobustness),
        }
    }

    /// Rating; none without packets, and where the impairment cannot be rated.
    fn rating(&self, impairment: &Impairment) -> Option<Rating> {
        self.rating_of(severity(impairment)?)
    }

    fn rating_of(&self, severity: LossSeverity) -> Option<Rating> {
        match severity.ratio {
            0.0 => self.unimpaired,
            ratio => self.codecs.as_ref().ok()?.rating(self.delay, ratio, severity.burst_ratio),
        }
    }

    /// Rating of an interval; one with several codecs, or without a rated one, has those of the whole stream.
    fn rating_with(&self, codec: IntervalCodec, impairment: &Impairment) -> Option<Rating> {
        self.codecs.as_ref().ok()?;
        let IntervalCodec::One(codec) = codec else { return self.rating(impairment) };
        let LossSeverity { ratio, burst_ratio } = severity(impairment)?;
        Codecs::from(codec).rating(self.delay, ratio, burst_ratio)
    }

    /// Max and min MOS within the uncertainty.
    fn bounds(&self, stream: &Stream) -> [Option<f64>; 2] {
        let severities = stream.total.bounds(stream.uncertainty);
        let mos = |severity| self.rating_of(severity).map(|rating| rating.mos());
        severities.map_or([None; 2], |severities| severities.map(mos))
    }
}

/// None without packets.
fn severity(impairment: &Impairment) -> Option<LossSeverity> {
    Some(LossSeverity { ratio: impairment.ratio()?, burst_ratio: impairment.burst_ratio() })
}
