//! Payloads of video, whole and cut off by a capture.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::video::{FrameBegin, VideoCodec, is_aggregate};

fuzz_target!(|input: (u16, &[u8])| {
    let (length, payload) = input;
    let codecs = [VideoCodec::H264, VideoCodec::H265, VideoCodec::Vp8, VideoCodec::Vp9, VideoCodec::Av1];
    for (codec, length) in codecs.into_iter().flat_map(|codec| [(codec, payload.len()), (codec, length.into())]) {
        let Some(found) = codec.parse(payload, length) else { continue };
        assert!(!payload.is_empty());
        // Only units that are aggregated can be cut off, and a key frame that was found needs no more headers.
        assert!(!(found.is_cut && found.is_key));
        assert!(!found.is_cut || payload.len() < length);
        if matches!(codec, VideoCodec::Vp8 | VideoCodec::Vp9 | VideoCodec::Av1) {
            assert!(!found.is_cut && (!found.is_key || found.begin == FrameBegin::First));
        }
    }
    let _ = payload.first().copied().and_then(is_aggregate);
});
