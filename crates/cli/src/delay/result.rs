//! The result of `delay`.

use std::collections::HashMap;

use wirestamp_metrics::emodel::{Codec, Rating};
use wirestamp_metrics::{FlowTable, Quality, Sampling, SequenceMetrics};
use wirestamp_packet::{FlowKey, MatchRule, Segmentation};
use wirestamp_session::{PointState, TapReport};

use super::arguments::Arguments;
use super::clocks::{ClockError, Clocks};
use super::document::{ClockMembers, FlowDocument, KnownQuality, PairDocument, RatedMembers};
use super::packet_rows::PacketRows;
use super::round_trip::{RoundTrip, RoundTrips};
use super::rtp::{RatedCodec, RtpStreams};
use super::seconds::{Seconds, SecondsDocument};
use super::unknown_loss::{ChangedFlows, UnknownLoss};
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
    /// Packets of files that stand after packets with later stamps, at each point.
    pub(super) stamped_earlier: [u64; 2],
    /// Reports of live captures; empty for files.
    pub(super) taps: Vec<TapReport>,
    /// Time in the layers behind B, with `--layers`.
    pub(super) layers: Option<layers::Document>,
    pub(super) remarks: Vec<String>,
    /// Why the loss between the points is unknown; none if it is known.
    pub(super) unknown_loss: Option<UnknownLoss>,
    /// Flows whose packets were changed on the path; none if these are no considerable part of the traffic.
    pub(super) changed_flows: Option<ChangedFlows>,
    /// Whether the rules that may recognise the packets were tried without success.
    pub(super) has_tried_rules: bool,
    /// Why the rows of packets were not written; none if they were, or if none were requested.
    pub(super) rows_error: Option<wirestamp_results::Error>,
    /// With `--per-second`.
    pub(super) seconds: Option<Seconds>,
}

impl DelayResult {
    /// The members of the JSON document.
    pub(super) fn document(&self) -> anyhow::Result<PairDocument<'_>> {
        let buffer = self.flows.jitter_buffer();
        let flows = self.flows.flows().into_iter();
        let flows: anyhow::Result<Vec<_>> =
            flows.map(|(flow, quality)| self.flow(&flow, quality)).collect();
        Ok(PairDocument {
            quality: self.quality(None, &self.flows.total())?,
            clocks: self.clocks(),
            match_rule: self.rule(),
            lost_reason: self.lost_reason(),
            sample_share: self.sampling.as_ref().map_or(1.0, |it| it.share),
            not_sampled: self.points.each_ref().map(|point_state| point_state.not_chosen),
            unidentified: self.unidentified(),
            lost_beyond_capture: self.lost_outside_capture,
            capture_dropped: self.capture_dropped,
            capture_dropped_undated: self.undated,
            segments_divided: self.divided().map(|of| of.divided),
            segments_divided_into: self.divided().map(|of| of.parts),
            segments_divided_by_assumption: self.divided().map(|of| of.assumed),
            taps: &self.taps,
            assumed_jitter_buffer: buffer.to_string(),
            assumed_jitter_buffer_ms: buffer.fixed().map(|length| length.as_nanos() / 1_000_000),
            flows: flows?,
            other_flows: self.quality(None, &self.flows.others)?,
            layers: self.layers.as_ref(),
            per_second: self.seconds(),
        })
    }

    fn seconds(&self) -> Option<SecondsDocument> {
        let knows_delays = !self.clocks.aligned && self.clocks.relative().is_none();
        Some(self.seconds.as_ref()?.document(self.unknown_loss.is_none(), knows_delays))
    }

    /// The rule by which packets were recognised.
    pub(super) const fn rule(&self) -> MatchRule {
        self.points[0].rule()
    }

    /// TCP segments of both points that were longer than the network carries.
    pub(super) fn divided(&self) -> [&Segmentation; 2] {
        self.points.each_ref().map(|point| &point.segmentation)
    }

    /// Sets that the loss is unknown if B, an interface, captured no packet and its direction was not given.
    pub(super) fn suspect_direction(&mut self, arguments: &Arguments) {
        let total = self.flows.total();
        let is_nothing_at_b = total.counts().received == 0 && self.points[1].not_chosen == 0;
        if is_nothing_at_b && total.counts().lost > 0 && arguments.live.direction.is_none() {
            self.unknown_loss = Some(UnknownLoss::NothingAtB(arguments.live.method()));
        }
    }

    /// Sets why the loss is unknown, and of which flows. A reason that the packets do not show is kept.
    pub(super) fn set_unknown_loss(&mut self) {
        let [a, b] = &self.points;
        self.changed_flows = ChangedFlows::of(&self.flows, [a, b]);
        self.unknown_loss = UnknownLoss::of(&self.flows, &self.points).or(self.unknown_loss);
    }

    /// Why the loss is unknown, with the remedy; none if it is known.
    pub(super) fn lost_reason(&self) -> Option<String> {
        let reason = self.unknown_loss?;
        let others = reason.rules().iter().filter(|rule| **rule != self.rule());
        let others: Vec<_> = others.map(|rule| rule.name()).collect();
        let text = reason.to_string();
        Some(if self.has_tried_rules || others.is_empty() || text.ends_with('?') {
            text
        } else {
            format!("{text}; or add --match {}", others.join(" or "))
        })
    }

    /// Completes the files of `--csv` and `--parquet`, once the loss is known or not.
    pub(super) fn finish_rows(&mut self, rows: PacketRows) {
        let others = self.is_loss_unknown(None, &self.flows.others);
        let flows = self.flows.flows().into_iter();
        let is_unknown: HashMap<_, _> = flows
            .map(|(flow, quality)| (flow, self.is_loss_unknown(Some(&flow), quality)))
            .collect();
        let finished = rows.finish(|flow| is_unknown.get(flow).copied().unwrap_or(others));
        self.rows_error = finished.err();
    }

    /// Whether the loss of a flow is unknown; `flow` is none for all or several flows.
    pub(super) fn is_loss_unknown(&self, flow: Option<&FlowKey>, quality: &Quality) -> bool {
        let is_changed = |changed: &ChangedFlows| flow.is_none_or(|flow| changed.contains(flow));
        self.changed_flows.as_ref().is_some_and(is_changed)
            || self.unknown_loss.is_some_and(|reason| reason.includes(flow, quality, &self.flows))
    }

    /// [`Self::is_loss_unknown`] of a flow, or of the further flows if it is not in the table.
    pub(super) fn is_flow_loss_unknown(&self, flow: &FlowKey) -> bool {
        match self.flows.get(flow) {
            Some(quality) => self.is_loss_unknown(Some(flow), quality),
            None => self.is_loss_unknown(None, &self.flows.others),
        }
    }

    /// Packets observed at both points.
    pub(super) fn matched(&self) -> u64 {
        self.flows.total().counts().matched
    }

    /// Packets of both points that could not be identified.
    pub(super) fn unidentified(&self) -> u64 {
        self.points.iter().map(|point_state| point_state.unidentified).sum()
    }

    fn clocks(&self) -> ClockMembers<'_> {
        let Clocks { skew, correction, .. } = &self.clocks;
        ClockMembers {
            clock_error_reason: self.clocks.reason(),
            owd_reason: self.clocks.relative(),
            offset_removed_ns: correction.offset.as_nanos(),
            skew_ppm: skew.ok().map(|skew| skew.ppm),
            skew_error_ppm: skew.ok().map(|skew| skew.error_ppm),
            skew_reason: skew.err(),
            skew_removed_ppm: correction.skew.map_or(0.0, |skew| skew.ppm),
        }
    }

    fn flow(&self, flow: &FlowKey, quality: &Quality) -> anyhow::Result<FlowDocument<'_>> {
        Ok(FlowDocument {
            src: flow.source.ip(),
            dst: flow.destination.ip(),
            sport: flow.source.port(),
            dport: flow.destination.port(),
            protocol: flow.protocol,
            quality: self.quality(Some(flow), quality)?,
            rated: self.rated(flow, quality),
            round_trip: self.round_trips.of(flow).map(RoundTrip::members),
        })
    }

    /// A flow's RTP streams and rating; none for other flows.
    fn rated(&self, flow: &FlowKey, quality: &Quality) -> Option<RatedMembers<'_>> {
        let (streams, voice) = (self.media.streams(flow), self.voice(flow));
        if streams.is_empty() && voice.is_none() {
            return None;
        }
        let rating = voice.as_ref().and_then(|voice| self.call(flow, voice, quality));
        let over_time = rating
            .zip(voice.as_ref())
            .and_then(|(_, voice)| quality.as_call_over_time(&voice.codecs));
        let mos = |interval: &Option<Rating>| interval.map(|rating| rating.mos());
        let codecs = voice.as_ref().map(|voice| &voice.codecs);
        Some(RatedMembers {
            rtp_streams: streams,
            codec: codecs.and_then(|codecs| Some(codecs.iter().next()?.0.name())),
            rated_codecs: codecs.filter(|_| self.codec.is_none()).cloned(),
            codec_reason: voice.map(|voice| voice.reason),
            r_factor: rating.map(|rating| rating.r_factor()),
            late: quality.sequence_metrics().map(SequenceMetrics::late),
            mos: rating.map(|rating| rating.mos()),
            mos_unknown: self.unknown_rating(flow, quality),
            r_scale: rating.map(|rating| rating.scale),
            extrapolated: rating.map(|rating| rating.is_extrapolated),
            mos_interval_ms: over_time.as_ref().map(|it| it.interval.as_nanos() / 1_000_000),
            mos_over_time: over_time.map(|it| it.intervals.iter().map(mos).collect()),
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

    /// A quality with the clock error of this measurement, and null for what is unknown.
    fn quality(&self, flow: Option<&FlowKey>, quality: &Quality) -> anyhow::Result<KnownQuality> {
        let mut unknown = Vec::new();
        let has_one_error = !matches!(self.clocks.error, ClockError::PerDelay);
        if has_one_error {
            unknown.push("clock_error_mean_ns");
        }
        if self.clocks.aligned {
            unknown.push("owd_ns");
        }
        if self.is_loss_unknown(flow, quality) {
            unknown.extend(["lost", "loss_pattern"]);
        }
        let mut known = KnownQuality::of(quality, &unknown)?;
        if has_one_error {
            known.set_clock_error(self.clocks.max_error(quality));
        }
        Ok(known)
    }
}
