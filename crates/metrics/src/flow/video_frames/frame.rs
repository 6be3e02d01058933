//! A video frame while its packets arrive.

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::video::{FrameBegin, VideoPayload};

use super::unknown::UnknownVideoValue;

/// A packet of a video stream.
#[derive(Clone, Copy, Debug)]
pub(in crate::flow) struct FramePacket {
    /// Extended sequence number.
    pub(in crate::flow) number: u64,
    pub(in crate::flow) timestamp: u32,
    pub(in crate::flow) marker: bool,
    /// Bytes of payload.
    pub(in crate::flow) bytes: u32,
    pub(in crate::flow) arrival: Time<Utc>,
    pub(in crate::flow) part: FramePart,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::flow) enum FramePart {
    /// Part of a frame, with what the payload shows.
    Readable(VideoPayload),
    /// Part of a frame; the payload is not readable.
    Unreadable(UnknownVideoValue),
    /// Not video: padding without payload, or another payload type such as repair packets.
    Other,
}

impl FramePacket {
    /// Whether the frame ends with it.
    pub(super) fn ends(&self) -> bool {
        match self.part {
            FramePart::Readable(payload) => self.marker || payload.end == Some(true),
            FramePart::Unreadable(_) => self.marker,
            FramePart::Other => false,
        }
    }
}

impl FramePart {
    pub(super) const fn is_media(self) -> bool {
        !matches!(self, Self::Other)
    }
}

/// A frame, or packets between frames that are not video.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) timestamp: u32,
    pub(super) is_media: bool,
    /// Lowest and highest number.
    pub(super) first: u64,
    pub(super) last: u64,
    /// Packets received, without duplicates.
    packets: u64,
    /// Bytes of payload received.
    pub(super) bytes: u64,
    /// What the first packet shows of the begin.
    pub(super) begin: FrameBegin,
    /// Number of the packet that ends the frame.
    end: Option<u64>,
    /// Latest arrival of its packets.
    pub(super) completed: Time<Utc>,
    pub(super) is_key: bool,
    /// Headers that may show a key frame were not captured.
    pub(super) is_cut: bool,
    /// Why a payload was not readable.
    pub(super) unreadable: Option<UnknownVideoValue>,
}

impl Frame {
    pub(super) fn new(packet: &FramePacket) -> Self {
        let mut frame = Self {
            timestamp: packet.timestamp,
            is_media: packet.part.is_media(),
            first: packet.number,
            last: packet.number,
            packets: 0,
            bytes: 0,
            begin: FrameBegin::Possible,
            end: None,
            completed: packet.arrival,
            is_key: false,
            is_cut: false,
            unreadable: None,
        };
        frame.add(packet);
        frame
    }

    /// Whether a packet belongs to it. Packets that are not video belong to a frame that they interrupt.
    pub(super) fn takes(&self, packet: &FramePacket) -> bool {
        let interrupts = self.first < packet.number
            && (packet.number < self.last
                || (self.end.is_none() && self.last.checked_add(1) == Some(packet.number)));
        self.timestamp == packet.timestamp
            && match (self.is_media, packet.part.is_media()) {
                (true, false) => interrupts,
                (one, other) => one == other,
            }
    }

    pub(super) fn add(&mut self, packet: &FramePacket) {
        self.packets += 1;
        self.last = self.last.max(packet.number);
        let is_first = packet.number <= self.first;
        self.first = self.first.min(packet.number);
        if !packet.part.is_media() {
            return;
        }
        self.bytes += u64::from(packet.bytes);
        self.completed = self.completed.max(packet.arrival);
        match packet.part {
            FramePart::Readable(payload) => {
                if is_first {
                    self.begin = payload.begin;
                }
                self.is_key |= payload.is_key;
                self.is_cut |= payload.is_cut;
            }
            FramePart::Unreadable(reason) => {
                if is_first {
                    self.begin = FrameBegin::Possible;
                }
                self.unreadable.get_or_insert(reason);
            }
            FramePart::Other => {}
        }
        if packet.ends() {
            self.end = self.end.max(Some(packet.number));
        }
    }

    /// Whether the packet that ends it arrived.
    pub(super) fn has_end(&self) -> bool {
        self.end == Some(self.last)
    }

    /// Whether packets between its first and last are missing.
    pub(super) const fn has_gap(&self) -> bool {
        self.packets <= self.last - self.first
    }

    /// Numbers missing between another frame and this one.
    pub(super) const fn missing_after(&self, before: &Self) -> u64 {
        self.first.saturating_sub(before.last).saturating_sub(1)
    }
}
