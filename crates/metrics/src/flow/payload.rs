//! Payload type of an RTP stream, with its encoding, and the kind of a packet's payload.

use super::encoding::{Encoding, FrameFormat};
use super::header::{EVENT_BYTES, Header, StreamContext};
use super::video_frames::{FramePart, UnknownVideoValue};

/// A payload type and its encoding.
#[derive(Clone, Debug)]
pub(super) struct Payload {
    pub(super) number: u8,
    pub(super) encoding: Option<Encoding>,
    /// How the frames of a video are recognised; none for other media.
    frame_format: Option<FrameFormat>,
    /// Generation of the announcements used for the encoding.
    generation: u32,
}

impl Payload {
    pub(super) fn of(number: u8, context: StreamContext<'_>) -> Self {
        let stated = context.config.rtp_map.encoding(number);
        let encoding = stated.or_else(|| context.announced.encoding(context.flow, number));
        let frame_format = encoding.as_ref().and_then(Encoding::frame_format);
        Self { number, encoding, frame_format, generation: context.announced.generation }
    }

    /// Whether it is of this number, by the present announcements.
    pub(super) fn is_current(&self, number: u8, context: StreamContext<'_>) -> bool {
        self.number == number && self.generation == context.announced.generation
    }

    /// Changes it to this number, by the present announcements.
    pub(super) fn update(&mut self, number: u8, context: StreamContext<'_>) {
        let before = std::mem::replace(self, Self::of(number, context));
        if before.number == number && self.encoding.is_none() {
            // Its announcement was evicted.
            self.encoding = before.encoding;
            self.frame_format = before.frame_format;
        }
    }

    /// Whether a packet of this payload type carries no media; of an unknown encoding by its length.
    pub(super) fn is_auxiliary(&self, header: &Header) -> bool {
        self.encoding.as_ref().map_or(header.payload == EVENT_BYTES, Encoding::is_auxiliary)
    }

    /// Whether it is of a video whose frames are recognised.
    pub(super) fn has_frames(&self) -> bool {
        self.frame_format.is_some()
    }

    /// The part of a video's frame in a packet of this payload type.
    pub(super) fn frame_part(&self, header: &Header) -> FramePart {
        match self.frame_format.filter(|_| header.payload > 0) {
            None => FramePart::Other,
            Some(FrameFormat::Encrypted) => {
                FramePart::Unreadable(UnknownVideoValue::EncryptedPayload)
            }
            Some(FrameFormat::Unsupported) => {
                FramePart::Unreadable(UnknownVideoValue::UnsupportedCodec)
            }
            Some(FrameFormat::Readable(codec)) => header.video(codec).map_or(
                FramePart::Unreadable(if header.is_multi_time(codec) {
                    UnknownVideoValue::InterleavedPayload
                } else {
                    UnknownVideoValue::UnreadablePayload
                }),
                FramePart::Readable,
            ),
        }
    }
}
