//! One RTP stream of a flow.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::FlowKey;
use wirestamp_packet::rtp::Rtp;

use super::encoding::Encoding;
use super::impairment::Impairment;
use super::missed::MissedTimes;
use super::monitor::FlowConfig;
use super::numbers::{Numbers, Seen};
use super::playout::{Playout, Timeliness};
use super::series::Series;
use super::signalling::Announced;
use super::video::{Video, VideoPacket};
use super::volume::Volume;
use crate::rtp;

/// The payload type of MPEG transport streams (RFC 3551 table 5).
const TRANSPORT_STREAM: &str = "MP2T";

/// What is kept of an RTP packet until it is known whether it is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) ssrc: u32,
    pub(super) sequence: u16,
    timestamp: u32,
    payload_type: u8,
    marker: bool,
    /// Bytes of payload, and of the frame on the wire.
    payload: u32,
    pub(super) length: u32,
    pub(super) time: Time<Utc>,
}

impl Header {
    pub(super) fn of(rtp: &Rtp<'_>, length: u32, time: Time<Utc>) -> Self {
        let payload = rtp.payload_range().map_or(0, |range| range.len());
        Self {
            ssrc: rtp.ssrc(),
            sequence: rtp.sequence(),
            timestamp: rtp.timestamp(),
            payload_type: rtp.payload_type(),
            marker: rtp.marker(),
            payload: u32::try_from(payload).unwrap_or(u32::MAX),
            length,
            time,
        }
    }
}

/// What a stream has to know of the rest.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) config: &'a FlowConfig,
    pub(super) announced: &'a Announced,
    pub(super) flow: &'a FlowKey,
}

/// A payload type and what it means.
#[derive(Clone, Debug)]
pub(super) struct Payload {
    pub(super) number: u8,
    pub(super) encoding: Option<Encoding>,
    /// The announcements by which that was found out.
    generation: u32,
}

/// All that is known of an RTP stream, in a few kilobytes at the most.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) ssrc: u32,
    pub(super) volume: Volume,
    pub(super) rtp: rtp::Stream,
    pub(super) total: Impairment,
    pub(super) series: Series,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    /// Packets that the capture lost.
    pub(super) capture_lost: u64,
    /// The payload of the medium, not of what stands beside it.
    pub(super) medium: Payload,
    pub(super) video: Option<Box<Video>>,
    payload: Payload,
    numbers: Numbers,
    playout: Playout,
    first_arrival: Time<Utc>,
}

impl Stream {
    /// A stream that begins with this packet, which is yet to be recorded.
    pub(super) fn new(first: &Header, around: Surroundings<'_>) -> Self {
        let payload = Payload::of(first.payload_type, around);
        let is_video = payload.encoding.as_ref().is_some_and(|it| it.video);
        Self {
            ssrc: first.ssrc,
            volume: Volume::default(),
            rtp: rtp::Stream::new(),
            total: Impairment::default(),
            series: Series::default(),
            duplicated: 0,
            reordered: 0,
            capture_lost: 0,
            medium: payload.clone(),
            video: is_video.then(Box::default),
            payload,
            numbers: Numbers::default(),
            playout: Playout::default(),
            first_arrival: first.time,
        }
    }

    /// Takes the next packet, in the order of capture.
    pub(super) fn record(
        &mut self,
        header: &Header,
        around: Surroundings<'_>,
        missed: &mut MissedTimes,
    ) {
        let since = self.volume.previous.unwrap_or(header.time);
        self.volume.record(header.length, header.time, around.config.train_gap);
        self.follow_payload(header.payload_type, around);
        let clock_rate = self.payload.encoding.as_ref().and_then(Encoding::jitter_rate);
        let step = self.rtp.record(&rtp::Packet {
            sequence: header.sequence,
            timestamp: header.timestamp,
            marker: header.marker,
            payload_type: header.payload_type,
            clock_rate,
            arrival: header.time,
        });
        let seen = self.numbers.record(step);
        let by_capture = |skipped| missed.take(skipped, since, header.time);
        let skipped = self.count(seen, header.time, by_capture);
        if clock_rate.is_none() || seen == Seen::Stray {
            return;
        }
        if seen == Seen::Restarted {
            self.begin_anew(header);
        }
        // The skew is the time that the timestamps went on less the time that passed.
        let skew = self.rtp.skew().now();
        let transit = Span::from_nanos(skew.as_nanos().saturating_neg());
        if seen != Seen::Copy
            && let Timeliness::Late { again } = self.playout.record(transit, around.config.buffer)
        {
            self.total.be_late(again);
            self.series.at(header.time).impairment.be_late(again);
        }
        let jitter = self.rtp.jitter().as_nanos();
        let interval = self.series.at(header.time);
        interval.jitter = interval.jitter.max(jitter);
        self.watch(header, seen, skipped, skew);
    }

    /// Counts what a packet's number says; how many were seen to be lost before it. `by_capture` says
    /// how many of the packets that are missing before it the capture lost.
    fn count(&mut self, seen: Seen, time: Time<Utc>, by_capture: impl FnOnce(u64) -> u64) -> u64 {
        let interval = &mut self.series.at(time).impairment;
        let mut come = |lost: u64, packets: u64| {
            for impairment in [&mut self.total, &mut *interval] {
                impairment.lose(lost);
                impairment.expected += packets;
            }
            lost
        };
        match seen {
            Seen::Ahead { skipped: 0 } => come(0, 1),
            Seen::Ahead { skipped } => {
                let by_capture = by_capture(skipped);
                self.capture_lost += by_capture;
                come(skipped - by_capture, 1)
            }
            Seen::Early { skipped } => {
                self.reordered += 1;
                come(skipped, 1)
            }
            Seen::Restarted => come(0, 2),
            Seen::Late { missing_neighbours } => {
                self.reordered += 1;
                self.total.recover(missing_neighbours);
                self.series.recover(missing_neighbours);
                0
            }
            Seen::Copy => {
                self.duplicated += 1;
                0
            }
            Seen::Stray => 0,
        }
    }

    /// The sender's numbers and timestamps have nothing to do with those before.
    fn begin_anew(&mut self, header: &Header) {
        self.playout = Playout::default();
        self.first_arrival = header.time;
        if let Some(video) = &mut self.video {
            **video = Video::default();
        }
    }

    fn follow_payload(&mut self, number: u8, around: Surroundings<'_>) {
        if self.payload.number == number && self.payload.generation == around.announced.generation()
        {
            return;
        }
        self.payload = Payload::of(number, around);
        let encoding = self.payload.encoding.as_ref();
        if !encoding.is_some_and(Encoding::is_beside_the_medium) {
            if encoding.is_some_and(|it| it.video) && self.video.is_none() {
                self.video = Some(Box::default());
            }
            self.medium = self.payload.clone();
        }
    }

    fn watch(&mut self, header: &Header, seen: Seen, skipped: u64, skew: Span) {
        let Some(video) = &mut self.video else { return };
        let out_of_order = u64::from(matches!(seen, Seen::Late { .. } | Seen::Early { .. }));
        let elapsed = header.time - self.first_arrival;
        video.record(&VideoPacket {
            arrival: header.time,
            bytes: header.payload,
            lost: skipped + out_of_order,
            transport_stream: self
                .payload
                .encoding
                .as_ref()
                .is_some_and(|it| it.name.eq_ignore_ascii_case(TRANSPORT_STREAM)),
            elapsed: Span::from_nanos(elapsed.as_nanos().saturating_add(skew.as_nanos())),
        });
    }
}

impl Payload {
    fn of(number: u8, around: Surroundings<'_>) -> Self {
        let encoding = around.announced.encoding(around.flow, number);
        Self { number, encoding, generation: around.announced.generation() }
    }
}
