//! An RTP stream of a flow.

use std::num::NonZeroU32;

use wirestamp_clock::{Span, Time, Utc};

use super::codec_parts::CodecParts;
use super::config::FlowConfig;
use super::digits::Digits;
use super::encoding::Encoding;
use super::gap::Gap;
use super::gap_losses::LossChange;
use super::gaps::Gaps;
use super::header::{EVENT_BYTES, Header, StreamContext};
use super::impairment::Impairment;
use super::missed::CaptureLosses;
use super::numbers::{ArrivalKind, Numbers};
use super::pacing::{Pacing, PacketTiming};
use super::payload::Payload;
use super::rtcp::StreamRtcp;
use super::series::{ImpairmentSeries, IntervalCodec};
use super::uncertainty::ImpairmentUncertainty;
use super::video::{Video, VideoPacket};
use super::video_frames::{FramePacket, VideoFrames};
use super::volume::Volume;
use crate::jitter_buffer::{Playout, Timeliness};
use crate::rtp;

/// Encoding name of MPEG transport streams (RFC 3551 table 5).
const TRANSPORT_STREAM: &str = "MP2T";

/// Change of the transit time from one packet to the next beyond which the playout restarts, as a receiver's does: the
/// sender's timestamps jumped, or it paused them. At the begin of a talk spurt a receiver can adjust to smaller ones.
const TIMESTAMP_JUMP: Span = Span::from_secs(5);
const TALK_SPURT_JUMP: Span = Span::from_millis(200);

/// State of an RTP stream, at most a few kilobytes.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) ssrc: u32,
    pub(super) volume: Volume,
    pub(super) rtp: rtp::Stream,
    pub(super) total: Impairment,
    pub(super) series: ImpairmentSeries,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    /// Packets assigned to the capture.
    pub(super) capture_lost: u64,
    /// Uncertainty of the total.
    pub(super) uncertainty: ImpairmentUncertainty,
    /// Payload type of the media, not of events or comfort noise.
    pub(super) medium: Payload,
    pub(super) video: Option<Box<Video>>,
    /// Frames of a video; none for other media, and for transport streams.
    pub(super) frames: Option<Box<VideoFrames>>,
    pub(super) codecs: CodecParts,
    pub(super) digits: Digits,
    /// Reports on it; none without RTCP.
    pub(super) rtcp: Option<Box<StreamRtcp>>,
    /// Whether it is one of the ended streams, whose MOS is counted.
    pub(super) is_counted: bool,
    payload: Payload,
    numbers: Numbers,
    pacing: Pacing,
    /// Gaps that the capture may have caused.
    pub(super) gaps: Gaps,
    pub(super) playout: Playout,
    /// Of the last packet, from an unknown zero.
    transit: Option<Span>,
}

impl Stream {
    /// A stream that begins with this packet, which is not recorded yet.
    pub(super) fn new(first: &Header, context: StreamContext<'_>) -> Self {
        let payload = Payload::of(first.payload_type, context);
        let is_video = payload.encoding.as_ref().is_some_and(|it| it.video);
        Self {
            ssrc: first.ssrc,
            volume: Volume::default(),
            rtp: rtp::Stream::default(),
            total: Impairment::default(),
            series: ImpairmentSeries::default(),
            duplicated: 0,
            reordered: 0,
            capture_lost: 0,
            uncertainty: ImpairmentUncertainty::default(),
            medium: payload.clone(),
            video: is_video.then(Box::default),
            frames: None,
            codecs: CodecParts::default(),
            digits: Digits::default(),
            rtcp: None,
            is_counted: false,
            payload,
            numbers: Numbers::default(),
            pacing: Pacing::default(),
            gaps: Gaps::default(),
            playout: Playout::default(),
            transit: None,
        }
    }

    /// Records the next packet, in the order of capture.
    pub(super) fn record(
        &mut self,
        header: &Header,
        context: StreamContext<'_>,
        missed: &mut CaptureLosses,
    ) {
        self.volume.record(header.length, header.time, context.config.train_gap);
        self.follow_payload(header, context);
        let clock_rate = self.payload.encoding.as_ref().and_then(Encoding::jitter_rate);
        let step = self.rtp.record(&rtp::Packet {
            sequence: header.sequence,
            timestamp: header.timestamp,
            marker: header.marker,
            payload_type: header.payload_type,
            clock_rate,
            arrival: header.time,
        });
        if let Some(rtcp) = &mut self.rtcp {
            rtcp.record(step);
        }
        let seen = self.numbers.record(step);
        if seen != ArrivalKind::Duplicate {
            self.count_codec(header, context.config);
        }
        let skipped = self.count(seen, header.time);
        self.record_frame(seen, step, header);
        self.follow_gaps(seen, step, header, clock_rate, missed);
        if clock_rate.is_none() || seen == ArrivalKind::Stray {
            return;
        }
        if seen == ArrivalKind::Restarted {
            self.restart();
        }
        // The skew is the advance of the timestamps minus the time elapsed.
        let skew = self.rtp.skew.now();
        let transit = Span::from_nanos(skew.as_nanos().saturating_neg());
        if matches!(seen, ArrivalKind::Ahead { .. } | ArrivalKind::Restarted) {
            self.follow_timestamps(transit, header.marker);
        }
        if seen != ArrivalKind::Duplicate
            && let Timeliness::Late { again } = self.playout.record(transit, context.config.buffer)
        {
            self.total.record_too_late(again);
            self.series.at(header.time).impairment.record_too_late(again);
        }
        if let Some(jitter) = self.rtp.jitter.known_nanos() {
            let interval = self.series.at(header.time);
            interval.jitter = Some(interval.jitter.map_or(jitter, |max| max.max(jitter)));
        }
        self.watch(header, seen, skipped, skew);
    }

    /// Packets later than the assumed de-jitter buffer waits; none for video, whose packets of one frame have one timestamp,
    /// and where the clock rate is unknown.
    pub(super) fn late(&self) -> Option<u64> {
        let rate = self.medium.encoding.as_ref().and_then(Encoding::jitter_rate);
        (self.video.is_none() && rate.is_some()).then_some(self.total.late)
    }

    /// The reports on it, which begin with this call.
    pub(super) fn rtcp(&mut self) -> &mut StreamRtcp {
        let highest = self.rtp.sequence.highest().unwrap_or(0);
        self.rtcp.get_or_insert_with(|| Box::new(StreamRtcp::new(self.ssrc, highest)))
    }

    /// Counts a packet; returns how many are missing before it.
    fn count(&mut self, seen: ArrivalKind, time: Time<Utc>) -> u64 {
        let interval = &mut self.series.at(time).impairment;
        let mut come = |lost: u64, packets: u64| {
            for impairment in [&mut self.total, &mut *interval] {
                impairment.lose(lost);
                impairment.expected += packets;
            }
            lost
        };
        match seen {
            ArrivalKind::Ahead { skipped } => come(skipped, 1),
            ArrivalKind::Early { skipped } => {
                self.reordered += 1;
                come(skipped, 1)
            }
            ArrivalKind::Restarted => come(0, 2),
            ArrivalKind::Late { .. } => {
                self.reordered += 1;
                0
            }
            ArrivalKind::Duplicate => {
                self.duplicated += 1;
                0
            }
            ArrivalKind::Stray => 0,
        }
    }

    /// Updates the gaps.
    fn follow_gaps(
        &mut self,
        seen: ArrivalKind,
        step: rtp::Step,
        header: &Header,
        clock_rate: Option<NonZeroU32>,
        missed: &mut CaptureLosses,
    ) {
        let (rtp::Step::Ahead(number) | rtp::Step::Behind(number) | rtp::Step::Restarted(number)) =
            step
        else {
            return;
        };
        let timing = PacketTiming { number, timestamp: header.timestamp, arrival: header.time };
        match seen {
            ArrivalKind::Ahead { skipped } => {
                let jitter = self.rtp.jitter.nanos;
                let gap_timing = self.pacing.record(timing, clock_rate, jitter);
                if let Some(gap_timing) = gap_timing.filter(|_| skipped > 0) {
                    let times = (gap_timing.since, header.time);
                    let gap = Gap::before(number, skipped, times, gap_timing.reach);
                    self.gaps.push(gap, missed);
                }
            }
            ArrivalKind::Late { missing_neighbours } => match self.gaps.arrived(number) {
                Some(change) => self.correct(&change),
                None => {
                    self.total.recover(missing_neighbours);
                    self.series.recover(missing_neighbours);
                }
            },
            ArrivalKind::Restarted => {
                self.gaps.clear(missed);
                self.pacing.interrupt();
                self.pacing.record(timing, clock_rate, 0.0);
            }
            ArrivalKind::Early { .. } | ArrivalKind::Duplicate | ArrivalKind::Stray => {}
        }
    }

    /// Records a part of a video's frame.
    fn record_frame(&mut self, seen: ArrivalKind, step: rtp::Step, header: &Header) {
        if self.payload.has_frames() && self.frames.is_none() {
            self.frames = Some(Box::default());
        }
        let Some(frames) = &mut self.frames else { return };
        let (rtp::Step::Ahead(number) | rtp::Step::Behind(number) | rtp::Step::Restarted(number)) =
            step
        else {
            return;
        };
        match seen {
            ArrivalKind::Duplicate | ArrivalKind::Stray => return,
            ArrivalKind::Restarted => frames.restart(),
            ArrivalKind::Ahead { .. } | ArrivalKind::Late { .. } | ArrivalKind::Early { .. } => {}
        }
        frames.record(&FramePacket {
            number,
            timestamp: header.timestamp,
            marker: header.marker,
            bytes: header.payload,
            arrival: header.time,
            part: self.payload.frame_part(header),
        });
    }

    /// Applies the latest assignment of losses.
    pub(super) fn apply_decisions(&mut self, missed: &mut CaptureLosses) {
        let mut changes = Vec::new();
        self.gaps.apply_decisions(missed, |change| changes.push(change));
        changes.iter().for_each(|change| self.correct(change));
    }

    fn correct(&mut self, change: &LossChange) {
        let LossChange { before, now, .. } = change;
        self.total.correct(change);
        self.series.correct(change);
        if let Some(video) = &mut self.video {
            video.correct(change);
        }
        self.capture_lost = (self.capture_lost + now.by_capture).saturating_sub(before.by_capture);
        self.uncertainty = self.uncertainty.plus(now.uncertainty).less(before.uncertainty);
    }

    /// Restarts the playout where the timestamps jumped: all later packets would count as late, or wait for as long.
    fn follow_timestamps(&mut self, transit: Span, marker: bool) {
        let is_spurt = marker && self.video.is_none();
        let jump = if is_spurt { TALK_SPURT_JUMP } else { TIMESTAMP_JUMP };
        let before = self.transit.replace(transit).unwrap_or(transit);
        if (transit - before).as_nanos().unsigned_abs() > jump.as_nanos().unsigned_abs() {
            self.playout.restart();
        }
    }

    /// Clears the state after a restart of the sender.
    fn restart(&mut self) {
        self.playout.restart();
        self.digits.restart();
        self.transit = None;
        if let Some(video) = &mut self.video {
            video.restart();
        }
    }

    fn follow_payload(&mut self, header: &Header, context: StreamContext<'_>) {
        let number = header.payload_type;
        let same = self.payload.is_current(number, context);
        // The first packet of an unknown payload type may look like an event: few codecs have frames as short, for silence.
        let may_be_medium = self.payload.encoding.is_none()
            && self.medium.number != number
            && header.payload != EVENT_BYTES;
        if same && !may_be_medium {
            return;
        }
        self.payload.update(number, context);
        if !self.payload.is_auxiliary(header) {
            let is_video = self.payload.encoding.as_ref().is_some_and(|it| it.video);
            if is_video && self.video.is_none() {
                self.video = Some(Box::default());
            }
            self.medium = self.payload.clone();
        }
    }

    /// Counts a media packet with its codec, or notes the digit of an event.
    fn count_codec(&mut self, header: &Header, config: &FlowConfig) {
        let encoding = self.payload.encoding.as_ref();
        if self.payload.is_auxiliary(header) {
            let is_digit = encoding.is_some_and(Encoding::is_telephone_event) && config.digits;
            if let Some(event) = header.event().filter(|_| is_digit) {
                self.digits.record(event);
            }
        } else if self.video.is_none()
            && let Some(codec) = self.codecs.record(header, encoding, &config.codecs)
        {
            let interval = self.series.at(header.time);
            interval.codec = interval.codec.plus(IntervalCodec::One(codec));
        }
    }

    fn watch(&mut self, header: &Header, seen: ArrivalKind, skipped: u64, skew: Span) {
        let Some(video) = &mut self.video else { return };
        let out_of_order =
            u64::from(matches!(seen, ArrivalKind::Late { .. } | ArrivalKind::Early { .. }));
        let known_before = matches!(seen, ArrivalKind::Late { .. } | ArrivalKind::Duplicate);
        video.record(&VideoPacket {
            arrival: header.time,
            bytes: header.payload,
            lost: skipped + out_of_order,
            sent: if known_before { 0 } else { skipped + 1 },
            transport_stream: self
                .payload
                .encoding
                .as_ref()
                .is_some_and(|it| it.name.eq_ignore_ascii_case(TRANSPORT_STREAM)),
            media_time: header.time + skew,
        });
    }
}
