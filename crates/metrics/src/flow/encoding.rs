//! Meaning of payload types: by RFC 3551 or by signalling.

use std::num::NonZeroU32;
use std::sync::Arc;

use wirestamp_packet::rtp::{Medium, StaticPayloadType};
use wirestamp_packet::sdp;
use wirestamp_packet::video::VideoCodec;

use crate::emodel::Codec;

/// Codec and clock rate of a payload type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) name: Arc<str>,
    pub(super) clock_rate: NonZeroU32,
    pub(super) video: bool,
    /// The session description states a profile of SRTP.
    pub(super) encrypted: bool,
}

/// How the frames of a video are recognised: by RTP timestamps and markers, and by the payload if it is readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameFormat {
    /// The payload of this codec shows more.
    Readable(VideoCodec),
    /// The payload is encrypted.
    Encrypted,
    /// The payload of the encoding is not read.
    Unsupported,
}

/// Encodings of video whose packets of one frame have one timestamp, and whose payload is not read.
const UNREAD_VIDEO: [&str; 8] =
    ["CelB", "H261", "H263", "H263-1998", "H263-2000", "JPEG", "MP4V-ES", "MPV"];

impl Encoding {
    /// Encoding that RFC 3551 assigns to a payload type.
    pub(super) fn fixed(payload_type: u8) -> Option<Self> {
        let StaticPayloadType { name, medium, clock_rate_hz, .. } =
            StaticPayloadType::of(payload_type)?;
        let clock_rate = NonZeroU32::new(clock_rate_hz)?;
        let video = medium != Medium::Audio;
        Some(Self { name: name.into(), clock_rate, video, encrypted: false })
    }

    /// Encoding from a session description, of a medium of this kind, and whether it is encrypted.
    pub(super) fn announced(
        kind: &str,
        encoding: &sdp::Encoding<'_>,
        encrypted: bool,
    ) -> Option<Self> {
        let clock_rate = NonZeroU32::new(encoding.clock_rate_hz)?;
        let video = kind == "video" || encoding.name.eq_ignore_ascii_case("MP2T");
        Some(Self { name: encoding.name.into(), clock_rate, video, encrypted })
    }

    /// How its frames are recognised; none for encodings that are no video in frames, such as transport streams, and for
    /// repair packets (RTX, FEC).
    pub(super) fn frame_format(&self) -> Option<FrameFormat> {
        let is_unread = || UNREAD_VIDEO.iter().any(|it| it.eq_ignore_ascii_case(&self.name));
        match VideoCodec::of_encoding(&self.name) {
            _ if !self.video => None,
            Some(_) if self.encrypted => Some(FrameFormat::Encrypted),
            Some(codec) => Some(FrameFormat::Readable(codec)),
            None => is_unread().then_some(FrameFormat::Unsupported),
        }
    }

    /// Whether the packets carry no media: telephone events, whose timestamps do not advance (RFC 4733 sections 2.2.1
    /// and 4), or comfort noise.
    pub(super) fn is_auxiliary(&self) -> bool {
        self.is_event() || self.name.eq_ignore_ascii_case("CN")
    }

    /// Whether the packets are the digits of a telephone, and other events (RFC 4733 section 2).
    pub(super) fn is_telephone_event(&self) -> bool {
        self.name.eq_ignore_ascii_case("telephone-event")
    }

    fn is_event(&self) -> bool {
        self.is_telephone_event() || self.name.eq_ignore_ascii_case("tone")
    }

    /// Clock rate for jitter; none where timestamps do not advance.
    pub(super) fn jitter_rate(&self) -> Option<NonZeroU32> {
        (!self.is_event()).then_some(self.clock_rate)
    }

    /// Whether the codec depends on the payload.
    pub(super) fn is_amr_wb(&self) -> bool {
        self.name.eq_ignore_ascii_case("AMR-WB")
    }

    /// The rated codec; none for AMR-WB, which has one for each mode.
    pub(super) fn codec(&self) -> Option<Codec> {
        codec_of(&self.name)
    }

    /// Whether it is the encoding of a codec.
    pub(super) fn is_of(&self, codec: Codec) -> bool {
        codec.encodings().iter().any(|it| it.eq_ignore_ascii_case(&self.name))
    }
}

/// Codec of an encoding name, where ITU-T G.113 has values. G.711 is taken with loss concealment, as in phones; G.729
/// and G.723.1 as the variants whose robustness is published.
fn codec_of(encoding: &str) -> Option<Codec> {
    const CODECS: [(&str, Codec); 6] = [
        ("PCMU", Codec::G711Concealing),
        ("PCMA", Codec::G711Concealing),
        ("G729", Codec::G729A),
        ("G723", Codec::G7231High),
        ("GSM", Codec::GsmFullRate),
        ("GSM-EFR", Codec::GsmEnhancedFullRate),
    ];
    let known = CODECS.iter().find(|(name, _)| encoding.eq_ignore_ascii_case(name));
    known.map(|(_, codec)| *codec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voice_has_a_codec_and_events_have_no_jitter() {
        let codec = |payload_type| Encoding::fixed(payload_type).and_then(|it| it.codec());
        assert_eq!([0, 8, 18].map(codec).map(|it| it.is_some()), [true; 3]);
        assert_eq!([9, 13, 33].map(codec), [None; 3]);
        let encoding = |name| sdp::Encoding { name, clock_rate_hz: 8000 };
        let event =
            Encoding::announced("audio", &encoding("Telephone-Event"), false).expect("an encoding");
        assert!(event.is_auxiliary() && event.jitter_rate().is_none());
        let voice = Encoding::announced("audio", &encoding("pcmu"), false).expect("an encoding");
        assert!(!voice.is_auxiliary() && voice.codec() == Some(Codec::G711Concealing));
    }

    #[test]
    fn only_video_in_frames_has_a_frame_format() {
        let format = |kind, name, encrypted| {
            let encoding = sdp::Encoding { name, clock_rate_hz: 90_000 };
            Encoding::announced(kind, &encoding, encrypted).and_then(|it| it.frame_format())
        };
        let vp8 = Some(FrameFormat::Readable(VideoCodec::Vp8));
        assert_eq!(format("video", "vp8", false), vp8);
        assert_eq!(format("video", "VP8", true), Some(FrameFormat::Encrypted));
        assert_eq!(format("video", "H263-1998", false), Some(FrameFormat::Unsupported));
        for (kind, name) in [("video", "rtx"), ("video", "MP2T"), ("audio", "opus")] {
            assert_eq!(format(kind, name, false), None, "{name}");
        }
    }
}
