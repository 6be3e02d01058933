//! Fields of an RTP packet that a stream needs, and the context of the stream.

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::FlowKey;
use wirestamp_packet::rtp::Rtp;

use super::config::FlowConfig;
use super::signalling::Announcements;

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

/// Data outside of a stream that it depends on.
#[derive(Clone, Copy)]
pub(super) struct StreamContext<'a> {
    pub(super) config: &'a FlowConfig,
    pub(super) announced: &'a Announcements,
    pub(super) flow: &'a FlowKey,
}
