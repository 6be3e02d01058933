//! Payloads of video over RTP: where frames begin and end, and which are key frames.
//!
//! A frame is what the payload format sends with one RTP timestamp: an access unit (H.264, H.265), a frame (VP8), a
//! picture with all its layers (VP9), or a temporal unit (AV1). Only the headers of the payload are read. Of an encrypted
//! payload (SRTP) no header can be read: most parse as none, some by chance as another payload. Modes that interleave
//! frames are not supported (`packetization-mode=2` of RFC 6184, `sprop-max-don-diff` above 0 of RFC 7798).
//!
//! | file | payload format |
//! |---|---|
//! | `h264.rs` | RFC 6184 |
//! | `h265.rs` | RFC 7798 |
//! | `vp8.rs` | RFC 7741 |
//! | `vp9.rs` | RFC 9628 |
//! | `av1.rs` | RTP Payload Format For AV1, version 1.0 |
//! | `units.rs` | aggregation of NAL units, which H.264 and H.265 share |

mod av1;
mod h264;
mod h265;
mod units;
mod vp8;
mod vp9;

/// Bytes at the begin of a payload that are sufficient for [`VideoCodec::parse`], except for payloads that aggregate NAL
/// units ([`is_aggregate`]), and for scalability structures of VP9.
pub const VIDEO_HEADER_BYTES: usize = 16;

/// A codec whose payloads are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoCodec {
    /// H.264 (AVC).
    H264,
    /// H.265 (HEVC).
    H265,
    /// VP8.
    Vp8,
    /// VP9.
    Vp9,
    /// AV1.
    Av1,
}

/// What a payload shows of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoPayload {
    /// Whether the frame begins here.
    pub begin: FrameBegin,
    /// Whether the frame ends here; `None` if only the marker bit shows it.
    pub end: Option<bool>,
    /// The payload shows that the frame is a key frame: an IDR picture of H.264, an IRAP picture of H.265, a key frame of
    /// VP8 or VP9, or the begin of a coded video sequence of AV1. Not each payload of a key frame shows it.
    pub is_key: bool,
    /// Headers that may show a key frame were not captured.
    pub is_cut: bool,
}

/// Whether a frame begins with a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameBegin {
    /// No packet of the frame that a decoder needs is before this one.
    First,
    /// The frame may begin here. Headers of it, such as parameter sets, may be in packets before.
    Possible,
    /// A packet of the same frame is before this one.
    Continues,
}

impl VideoCodec {
    /// The codec of an encoding name of a session description (`H264`), without regard to case.
    #[must_use]
    pub fn of_encoding(name: &str) -> Option<Self> {
        const NAMES: [(&str, VideoCodec); 5] = [
            ("H264", VideoCodec::H264),
            ("H265", VideoCodec::H265),
            ("VP8", VideoCodec::Vp8),
            ("VP9", VideoCodec::Vp9),
            ("AV1", VideoCodec::Av1),
        ];
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map(|(_, codec)| *codec)
    }

    /// Whether a payload with this first byte has units of several frames: MTAP16 and MTAP24 of H.264 (RFC 6184 section
    /// 5.7.2). Such payloads are not read.
    #[must_use]
    pub fn is_multi_time(self, first: u8) -> bool {
        self == Self::H264 && h264::is_multi_time(first)
    }

    /// Parses the headers of a payload: its captured bytes, and its length on the wire.
    ///
    /// `None` if it is no payload of the codec, if it is encrypted, or if its first bytes were not captured. An empty
    /// payload is none.
    #[must_use]
    pub fn parse(self, payload: &[u8], length: usize) -> Option<VideoPayload> {
        match self {
            Self::H264 => h264::parse(payload, length),
            Self::H265 => h265::parse(payload, length),
            Self::Vp8 => vp8::parse(payload),
            Self::Vp9 => vp9::parse(payload),
            Self::Av1 => av1::parse(payload),
        }
    }
}

/// The codec whose payloads aggregate NAL units and begin with this byte: STAP-A of H.264 (RFC 6184 section 5.7.1) or AP
/// of H.265 (RFC 7798 section 4.4.2). All bytes of these are needed, because a key frame may be the last unit.
#[must_use]
pub const fn is_aggregate(first: u8) -> Option<VideoCodec> {
    match first {
        0x18 | 0x38 | 0x58 | 0x78 => Some(VideoCodec::H264),
        0x60 | 0x61 => Some(VideoCodec::H265),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CODECS: [VideoCodec; 5] =
        [VideoCodec::H264, VideoCodec::H265, VideoCodec::Vp8, VideoCodec::Vp9, VideoCodec::Av1];

    #[test]
    fn encoding_names_have_codecs() {
        assert_eq!(VideoCodec::of_encoding("h264"), Some(VideoCodec::H264));
        assert_eq!(VideoCodec::of_encoding("AV1"), Some(VideoCodec::Av1));
        assert_eq!(VideoCodec::of_encoding("H263"), None);
    }

    #[test]
    fn aggregates_are_recognised_by_their_first_byte() {
        assert_eq!(is_aggregate(0x78), Some(VideoCodec::H264));
        assert_eq!(is_aggregate(48 << 1), Some(VideoCodec::H265));
        assert_eq!(is_aggregate(0x7c), None);
    }

    #[test]
    fn empty_payload_is_none() {
        assert!(CODECS.iter().all(|codec| codec.parse(&[], 0).is_none()));
    }

    proptest! {
        #[test]
        fn any_payload_is_parsed_without_panic(
            payload in prop::collection::vec(any::<u8>(), 0..60), length in 0..80_usize,
        ) {
            for codec in CODECS {
                let found = codec.parse(&payload, length);
                prop_assert!(found.is_none() || !payload.is_empty());
            }
        }

        /// The first bytes show the same as all.
        #[test]
        fn kept_bytes_are_sufficient(payload in prop::collection::vec(any::<u8>(), 17..60)) {
            prop_assume!(payload.first().copied().and_then(is_aggregate).is_none());
            // The control information of H.265 may be longer.
            prop_assume!(payload[0] >> 1 != 50 && payload[0] & 0x1f != 25);
            let length = payload.len();
            for codec in [VideoCodec::H264, VideoCodec::H265, VideoCodec::Vp8, VideoCodec::Av1] {
                let kept = &payload[..VIDEO_HEADER_BYTES];
                let [all, kept] = [&payload[..], kept].map(|bytes| codec.parse(bytes, length));
                let is_cut = kept.is_some_and(|found| found.is_cut);
                prop_assert!(is_cut || all == kept, "{:?}: {:?} {:?}", codec, all, kept);
            }
        }
    }
}
