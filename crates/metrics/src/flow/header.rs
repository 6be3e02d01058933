//! Fields of an RTP packet that a stream needs, and the context of the stream.

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::FlowKey;
use wirestamp_packet::rtp::{Rtp, amr_wb_mode};
use wirestamp_packet::video::{VIDEO_HEADER_BYTES, VideoCodec, VideoPayload, is_aggregate};

use super::config::FlowConfig;
use super::digits::Event;
use super::signalling::Announcements;

/// Bytes of the payload that are kept: the headers of video, and the descriptions of up to 15 AMR-WB frames.
const KEPT: usize = VIDEO_HEADER_BYTES;

/// Payload of a telephone event (RFC 4733 section 2.3).
pub(super) const EVENT_BYTES: u32 = 4;

/// Fields of an RTP packet, kept until it is recognised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) ssrc: u32,
    pub(super) sequence: u16,
    pub(super) timestamp: u32,
    pub(super) payload_type: u8,
    pub(super) marker: bool,
    /// Bytes of payload, and of the frame on the wire.
    pub(super) payload: u32,
    pub(super) length: u32,
    pub(super) time: Time<Utc>,
    /// First bytes of the payload, and how many of them were captured.
    start: [u8; KEPT],
    captured: u8,
    /// If the payload begins as an aggregate of NAL units: what these show, with the codec.
    aggregate: Option<(VideoCodec, Option<VideoPayload>)>,
}

impl Header {
    pub(super) fn of(rtp: &Rtp<'_>, length: u32, time: Time<Utc>) -> Self {
        let payload = rtp.payload_range().map_or(0, |range| range.len());
        let (mut start, mut captured) = ([0; KEPT], 0);
        for (kept, byte) in start.iter_mut().zip(rtp.payload()) {
            *kept = *byte;
            captured += 1;
        }
        let codec = rtp.payload().first().copied().and_then(is_aggregate);
        let aggregate = codec.map(|codec| (codec, codec.parse(rtp.payload(), payload)));
        Self {
            ssrc: rtp.ssrc(),
            sequence: rtp.sequence(),
            timestamp: rtp.timestamp(),
            payload_type: rtp.payload_type(),
            marker: rtp.marker(),
            payload: u32::try_from(payload).unwrap_or(u32::MAX),
            length,
            time,
            start,
            captured,
            aggregate,
        }
    }

    /// What a payload of this codec shows of its frame; none if it is unreadable.
    pub(super) fn video(&self, codec: VideoCodec) -> Option<VideoPayload> {
        match self.aggregate {
            Some((of, found)) if of == codec => found,
            _ => codec.parse(self.captured_start(), usize::try_from(self.payload).ok()?),
        }
    }

    /// Whether the payload begins as one with units of several frames.
    pub(super) fn is_multi_time(&self, codec: VideoCodec) -> bool {
        self.captured_start().first().is_some_and(|first| codec.is_multi_time(*first))
    }

    /// Event of a payload of telephone events (RFC 4733 section 2.3); none if it is too short.
    pub(super) fn event(&self) -> Option<Event> {
        let (code, rest) = self.captured_start().split_first()?;
        let duration = rest.get(1..3).and_then(<[u8]>::first_chunk).copied();
        (self.payload >= EVENT_BYTES).then_some(Event {
            code: *code,
            marker: self.marker,
            timestamp: self.timestamp,
            duration: duration.map_or(0, u16::from_be_bytes),
        })
    }

    /// Speech mode of a payload of AMR-WB; none without speech, and for layouts that are not supported.
    pub(super) fn amr_wb_mode(&self) -> Option<u8> {
        amr_wb_mode(self.captured_start(), usize::try_from(self.payload).ok()?)
    }

    fn captured_start(&self) -> &[u8] {
        &self.start[..usize::from(self.captured)]
    }
}

/// Data outside of a stream that it depends on.
#[derive(Clone, Copy)]
pub(super) struct StreamContext<'a> {
    pub(super) config: &'a FlowConfig,
    pub(super) announced: &'a Announcements,
    pub(super) flow: &'a FlowKey,
}
