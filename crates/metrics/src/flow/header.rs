//! What of an RTP packet its stream looks at, and what beside it.

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::FlowKey;
use wirestamp_packet::rtp::Rtp;

use super::config::FlowConfig;
use super::signalling::Announcements;

/// What is kept of an RTP packet until it is known whether it is one.
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

/// What a stream has to know of the rest.
#[derive(Clone, Copy)]
pub(super) struct StreamContext<'a> {
    pub(super) config: &'a FlowConfig,
    pub(super) announced: &'a Announcements,
    pub(super) flow: &'a FlowKey,
}
