//! The result of `delay`, and its JSON document.

use serde_json::{Value, json};
use wirestamp_metrics::emodel::{Codec, Rating};
use wirestamp_metrics::{FlowTable, Quality, Sampling, SequenceMetrics};
use wirestamp_packet::{FlowKey, MatchRule, Segmentation};
use wirestamp_session::{PointState, TapReport};

use super::clocks::{ClockError, Clocks};
use super::round_trip::{RoundTrip, RoundTrips};
use super::rtp::{RatedCodec, RtpStreams};
use super::unknown_loss::UnknownLoss;
use crate::layers;

/// The result of a delay measurement, from files or interfaces.
pub(super) struct DelayResult {
    pub(super) flows: FlowTable,
    pub(super) clocks: Clocks,
    /// Codec of `--codec`: rates every flow.
    pub(super) codec: Option<Codec>,
    /// RTP streams of the flows.
    pub(super) media: RtpStreams,
    pub(super) round_trips: RoundTrips,
    /// Packet sampling; none if all packets were measured.
    pub(super) sampling: Option<Sampling>,
    /// Final states of A and B.
    pub(super) points: [PointState; 2],
    /// Lost packets that left A before the first or after the last packet observed at B.
    pub(super) lost_outside_capture: u64,
    /// Packets lost by the captures themselves at each point, which are never network losses; none if a capture does not
    /// say it.
    pub(super) capture_dropped: [Option<u64>; 2],
    /// The part of `capture_dropped` whose time is unknown.
    pub(super) undated: [u64; 2],
    /// Reports of live captures; empty for files.
    pub(super) taps: Vec<TapReport>,
    /// Time in the layers behind B, with `--layers`.
    pub(super) layers: Option<layers::Document>,
    pub(super) remarks: Vec<String>,
    /// Why the loss between the points is unknown; none if it is known.
    pub(super) unknown_loss: Option<UnknownLoss>,
    /// Why the rows of packets were not written; none if they were, or if none were requested.
    pub(super) rows_error: Option<wirestamp_results::Error>,
}

impl DelayResult {
    pub(super) fn document(&self) -> anyhow::Result<Value> {
        let mut document = self.quality(None, &self.flows.total())?;
        let buffer = self.flows.jitter_buffer();
        let flows: anyhow::Result<Vec<_>> = self
            .flows
            .flows()
            .into_iter()
            .map(|(flow, quality)| self.flow(&flow, quality))
            .collect();
        let rest = json!({
            "match_rule": self.rule().name(),
            "lost_reason": self.unknown_loss.map(|reason| reason.to_string()),
            "clock_error_reason": self.clocks.reason(),
            "sample_share": self.sampling.as_ref().map_or(1.0, |it| it.share),
            "not_sampled": self.points.each_ref().map(|point_state| point_state.not_chosen),
            "unidentified": self.unidentified(),
            "lost_beyond_capture": self.lost_outside_capture,
            "capture_dropped": self.capture_dropped,
            "capture_dropped_undated": self.undated,
            "segments_divided": self.divided().map(|of| of.divided),
            "segments_divided_into": self.divided().map(|of| of.parts),
            "segments_divided_by_assumption": self.divided().map(|of| of.assumed),
            "taps": self.taps,
            "assumed_jitter_buffer": buffer.to_string(),
            "assumed_jitter_buffer_ms": buffer.fixed().map(|length| length.as_nanos() / 1_000_000),
            "flows": flows?,
            "other_flows": self.quality(None, &self.flows.others)?,
        });
        if let Some(layers) = &self.layers {
            merge(&mut document, json!({"layers": layers}));
        }
        merge(&mut document, self.clocks());
        merge(&mut document, rest);
        Ok(document)
    }

    /// The rule by which packets were recognised.
    pub(super) const fn rule(&self) -> MatchRule {
        self.points[0].rule()
    }

    /// TCP segments of both points that were longer than the network carries.
    pub(super) fn divided(&self) -> [&Segmentation; 2] {
        self.points.each_ref().map(|point| &point.segmentation)
    }

    /// Whether the loss of a flow is unknown; `flow` is none for all or several flows.
    pub(super) fn is_loss_unknown(&self, flow: Option<&FlowKey>, quality: &Quality) -> bool {
        self.unknown_loss.is_some_and(|reason| reason.includes(flow, quality, &self.flows))
    }

    /// Whether any packet was observed at both points.
    pub(super) fn has_matches(&self) -> bool {
        self.flows.total().counts().matched > 0
    }

    /// Packets of both points that could not be identified.
    pub(super) fn unidentified(&self) -> u64 {
        self.points.iter().map(|point_state| point_state.unidentified).sum()
    }

    /// The JSON members about the clocks.
    fn clocks(&self) -> Value {
        let Clocks { skew, correction, .. } = &self.clocks;
        json!({
            "owd_reason": self.clocks.relative(),
            "offset_removed_ns": correction.offset.as_nanos(),
            "skew_ppm": skew.ok().map(|skew| skew.ppm),
            "skew_error_ppm": skew.ok().map(|skew| skew.error_ppm),
            "skew_reason": skew.err(),
            "skew_removed_ppm": correction.skew.map_or(0.0, |skew| skew.ppm),
        })
    }

    fn flow(&self, flow: &FlowKey, quality: &Quality) -> anyhow::Result<Value> {
        let mut row = json!({
            "src": flow.source.ip(),
            "dst": flow.destination.ip(),
            "sport": flow.source.port(),
            "dport": flow.destination.port(),
            "protocol": flow.protocol,
        });
        merge(&mut row, self.quality(Some(flow), quality)?);
        merge(&mut row, self.rated(flow, quality));
        merge(&mut row, self.round_trips.of(flow).map_or_else(|| json!({}), RoundTrip::document));
        Ok(row)
    }

    /// The JSON members about a flow's RTP streams and rating.
    fn rated(&self, flow: &FlowKey, quality: &Quality) -> Value {
        let (streams, voice) = (self.media.streams(flow), self.voice(flow));
        if streams.is_empty() && voice.is_none() {
            return json!({});
        }
        let rating = voice.as_ref().and_then(|voice| self.call(flow, voice, quality));
        let over_time = rating
            .zip(voice.as_ref())
            .and_then(|(_, voice)| quality.as_call_over_time(&voice.codecs));
        let mos = |interval: &Option<Rating>| interval.map(|rating| rating.mos());
        json!({
            "rtp_streams": streams,
            "codec": voice.as_ref().and_then(|voice| Some(voice.codecs.iter().next()?.0.name())),
            "rated_codecs": voice.as_ref().filter(|_| self.codec.is_none()).map(|voice| &voice.codecs),
            "codec_reason": voice.map(|voice| voice.reason),
            "r_factor": rating.map(|rating| rating.r_factor()),
            "late": quality.sequence_metrics().map(SequenceMetrics::late),
            "mos": rating.map(|rating| rating.mos()),
            "mos_unknown": self.unknown_rating(flow, quality),
            "r_scale": rating.map(|rating| rating.scale.name()),
            "extrapolated": rating.map(|rating| rating.is_extrapolated),
            "mos_interval_ms": over_time.as_ref().map(|it| it.interval.as_nanos() / 1_000_000),
            "mos_over_time":
                over_time.map(|it| it.intervals.iter().map(mos).collect::<Vec<_>>()),
        })
    }

    /// The codecs for rating a flow: the requested one, else those of its RTP.
    pub(super) fn voice(&self, flow: &FlowKey) -> Option<RatedCodec> {
        self.codec.map(RatedCodec::requested).or_else(|| self.media.voice(flow))
    }

    /// The rating of a flow by the E-model. None if its one-way delay or its loss is unknown.
    pub(super) fn call(
        &self,
        flow: &FlowKey,
        voice: &RatedCodec,
        quality: &Quality,
    ) -> Option<Rating> {
        let is_known =
            self.clocks.relative().is_none() && !self.is_loss_unknown(Some(flow), quality);
        is_known.then(|| quality.as_call(&voice.codecs))?
    }

    /// Why a flow with a codec has no rating; none if it has one.
    pub(super) fn unknown_rating(&self, flow: &FlowKey, quality: &Quality) -> Option<&'static str> {
        let voice = self.voice(flow)?;
        if self.call(flow, &voice, quality).is_some() {
            None
        } else if self.clocks.relative().is_some() {
            Some("one-way delays are unknown")
        } else if self.is_loss_unknown(Some(flow), quality) {
            Some("loss is unknown")
        } else if quality.counts().matched == 0 {
            Some("no packet arrived")
        } else {
            Some("ITU-T G.113 has no packet-loss robustness factor of the codec")
        }
    }

    /// The JSON of a quality, with the clock error of this measurement.
    fn quality(&self, flow: Option<&FlowKey>, quality: &Quality) -> anyhow::Result<Value> {
        let mut value = serde_json::to_value(quality)?;
        if !matches!(self.clocks.error, ClockError::PerDelay) {
            let error = self.clocks.max_error(quality);
            merge(&mut value, json!({"clock_error_ns": error, "clock_error_mean_ns": null}));
        }
        if self.clocks.aligned {
            merge(&mut value, json!({"owd_ns": null}));
        }
        if self.is_loss_unknown(flow, quality) {
            merge(&mut value, json!({"lost": null, "loss_pattern": null}));
        }
        Ok(value)
    }
}

/// Adds the members of `more` to `object`; replaces those of the same name.
fn merge(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}
