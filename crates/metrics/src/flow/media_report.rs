//! What is told of an RTP stream.

use serde::{Deserialize, Serialize};
use wirestamp_clock::Span;

use super::config::FlowConfig;
use super::encoding::{Encoding, codec_of};
use super::impairment::{Impairment, LossSeverity};
use super::stream::Stream;
use super::video::{Video, VideoReport};
use crate::emodel::{Codec, Parameters, Rating};
use crate::numeric::nanos_to_f64;

/// The quality of an RTP stream; what cannot be known is null.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct RtpReport {
    /// The synchronisation source.
    pub ssrc: u32,
    /// The payload type, of several the newest that is no event and no comfort noise.
    pub payload_type: u8,
    /// What that stands for, in the words of RFC 3551 or of SIP.
    pub codec: Option<String>,
    /// The rate of its timestamps. Where it is not known, nothing is told of jitter, skew and opinion.
    pub clock_rate_hz: Option<u32>,
    /// Packets that were sent, by their numbers; those that the capture lost too, because the network
    /// did not.
    pub expected: u64,
    /// Packets expected less packets received, as RFC 3550 appendix A.3 and tshark count losses:
    /// copies hide losses, and it may be negative.
    pub cumulative_lost: i64,
    /// Packets that are missing because the capture lost them; [`Self::cumulative_lost`] has them too,
    /// and no other figure of loss.
    pub capture_lost: u64,
    /// How many more or fewer than `lost` the network may have lost, and the capture fewer or more:
    /// where both lost packets at the same time, or the capture some that may be of no stream.
    pub lost_uncertainty: u64,
    /// Packets that came later than the assumed de-jitter buffer waits.
    pub late: u64,
    /// Packets far from all others in number.
    pub stray: u64,
    /// How often the sender has begun its numbers anew.
    pub restarts: u64,
    /// Runs of lost packets (loss periods, RFC 3357 section 4).
    pub loss_periods: u64,
    /// The burst ratio of what was lost or late (ITU-T G.107 section 7.5); 1 for random loss.
    pub burst_ratio: f64,
    /// The interarrival jitter (RFC 3550 section 6.4.1) at the last packet.
    pub jitter_ms: Option<f64>,
    /// The mean of that jitter over the packets, as tshark has it.
    pub mean_jitter_ms: Option<f64>,
    /// The greatest, as tshark has it.
    pub max_jitter_ms: Option<f64>,
    /// The longest time from one packet to the next within a talk spurt, as tshark has it.
    pub max_delta_ms: f64,
    /// How far the timestamps have run ahead of the arrivals since the first packet.
    pub skew_ms: Option<f64>,
    /// The greatest skew by magnitude.
    pub max_skew_ms: Option<f64>,
    /// The opinion score of a conversation, MOS-CQE (ITU-T G.107 Annex B), 1 to 4.5: from the losses,
    /// the packets too late for the buffer, and the assumed delay. Null for codecs of which ITU-T
    /// G.113 has no values.
    pub mos: Option<f64>,
    /// GapTiming which and [`Self::mos_highest`] the opinion lies where it cannot be known who lost a packet
    /// ([`Self::lost_uncertainty`]); the same as `mos` where it can. Packets that the capture lost are
    /// taken to have come in time. Null where the worst case cannot be judged.
    pub mos_lowest: Option<f64>,
    /// Null where the best case cannot be judged.
    pub mos_highest: Option<f64>,
    /// The rating that it comes from.
    pub r_factor: Option<f64>,
    /// The opinion score, the share of losses (0 to 1), and the greatest jitter, of intervals of
    /// this length from the first packet on. At the most 60.
    pub interval_ms: f64,
    /// Null where nothing was expected.
    pub mos_over_time: Vec<Option<f64>>,
    /// Without late packets.
    pub loss_over_time: Vec<Option<f64>>,
    /// In milliseconds; empty where the clock rate is not known.
    pub jitter_ms_over_time: Vec<f64>,
    /// The media delivery index of a video.
    pub media_delivery: Option<VideoReport>,
}

impl RtpReport {
    /// The codec that an opinion of this stream is for; none where ITU-T G.113 has no values of it.
    #[must_use]
    pub fn voice(&self) -> Option<Codec> {
        codec_of(self.codec.as_deref()?)
    }

    pub(super) fn of(stream: &Stream, config: &FlowConfig) -> Self {
        let encoding = stream.medium.encoding.as_ref();
        let (sequence, theirs) = (stream.rtp.sequence(), stream.rtp.wireshark());
        let timed = |value: f64| encoding.and_then(Encoding::jitter_rate).map(|_| value / 1e6);
        let skew = stream.rtp.skew();
        let voice = Voice::new(encoding.and_then(Encoding::codec), config);
        let rating = voice.rating(&stream.total);
        let [mos_highest, mos_lowest] = voice.bounds(stream);
        let intervals = stream.series.intervals();
        Self {
            ssrc: stream.ssrc,
            payload_type: stream.medium.number,
            codec: encoding.map(|it| it.name.to_string()),
            clock_rate_hz: encoding.map(|it| it.clock_rate.get()),
            expected: stream.total.expected,
            cumulative_lost: sequence.lost(),
            capture_lost: stream.capture_lost,
            lost_uncertainty: stream.uncertainty.lost.greatest(),
            late: stream.total.late,
            stray: sequence.stray(),
            restarts: sequence.restarts(),
            loss_periods: stream.total.periods,
            burst_ratio: stream.total.burst_ratio(),
            jitter_ms: timed(stream.rtp.jitter().as_nanos()),
            mean_jitter_ms: timed(theirs.mean_jitter()),
            max_jitter_ms: timed(theirs.max_jitter()),
            max_delta_ms: millis(theirs.max_delta()),
            skew_ms: timed(nanos_to_f64(skew.now().as_nanos())),
            max_skew_ms: timed(nanos_to_f64(skew.greatest().as_nanos())),
            mos: rating.map(|rating| rating.mos()),
            mos_lowest,
            mos_highest,
            r_factor: rating.map(|rating| rating.r_factor()),
            interval_ms: millis(stream.series.interval()),
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

/// A codec over an assumed delay. The rating without impairment is computed once.
struct Voice {
    codec: Option<Codec>,
    delay: Span,
    unimpaired: Option<Rating>,
}

impl Voice {
    fn new(codec: Option<Codec>, config: &FlowConfig) -> Self {
        let delay =
            Span::from_nanos(config.delay.as_nanos().saturating_add(config.buffer.as_nanos()));
        let mut voice = Self { codec, delay, unimpaired: None };
        voice.unimpaired = voice.rated(0.0, 1.0);
        voice
    }

    fn rated(&self, ratio: f64, burst_ratio: f64) -> Option<Rating> {
        let parameters = Parameters::of_call(self.codec?, self.delay, ratio, burst_ratio)?;
        Some(parameters.rating())
    }

    /// None without packets, and where the impairment cannot be judged.
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

    /// The highest and the lowest opinion that there may be.
    fn bounds(&self, stream: &Stream) -> [Option<f64>; 2] {
        let severities = stream.total.bounds(stream.uncertainty);
        let opinion = |severity| self.rating_of(severity).map(|rating| rating.mos());
        severities.map_or([None; 2], |severities| severities.map(opinion))
    }
}
