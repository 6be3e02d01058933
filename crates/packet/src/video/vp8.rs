//! VP8: RFC 7741 section 4.

use super::{FrameBegin, VideoPayload};

/// Bits of the first byte (section 4.2).
const EXTENDED: u8 = 0x80;
const RESERVED: u8 = 0x48;
const PARTITION_START: u8 = 0x10;
const PARTITION: u8 = 0x07;

/// Bits of the extension.
const PICTURE_ID: u8 = 0x80;
const LEVEL_INDEX: u8 = 0x40;
const LAYER_OR_KEY_INDEX: u8 = 0x30;
/// The picture identifier has two bytes.
const LONG: u8 = 0x80;

/// Bytes 4 to 6 of a key frame (RFC 6386 section 9.1).
const KEY_FRAME_CODE: [u8; 3] = [0x9d, 0x01, 0x2a];

pub(super) fn parse(payload: &[u8]) -> Option<VideoPayload> {
    let first = *payload.first()?;
    if first & RESERVED != 0 {
        return None;
    }
    let content = payload.get(descriptor_length(payload)?..)?;
    let head = *content.first()?;
    let is_first = first & PARTITION_START != 0 && first & PARTITION == 0;
    // Section 4.3: P is 0 in key frames.
    let is_key = is_first && head & 1 == 0;
    if is_key && content.get(3..6).is_some_and(|code| code != KEY_FRAME_CODE) {
        return None;
    }
    let begin = if is_first { FrameBegin::First } else { FrameBegin::Continues };
    Some(VideoPayload { begin, end: None, is_key, is_cut: false })
}

/// Bytes before the content.
fn descriptor_length(payload: &[u8]) -> Option<usize> {
    if payload.first()? & EXTENDED == 0 {
        return Some(1);
    }
    let extension = payload.get(1)?;
    let mut length = 2;
    if extension & PICTURE_ID != 0 {
        length += if payload.get(length)? & LONG != 0 { 2 } else { 1 };
    }
    length += usize::from(extension & LEVEL_INDEX != 0);
    length += usize::from(extension & LAYER_OR_KEY_INDEX != 0);
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(payload: &[u8]) -> Option<(FrameBegin, bool)> {
        parse(payload).map(|it| (it.begin, it.is_key))
    }

    #[test]
    fn frames_are_parsed() {
        let key = [0x10, 0x50, 0x2a, 0x05, 0x9d, 0x01, 0x2a, 0x40];
        assert_eq!(found(&key), Some((FrameBegin::First, true)));
        assert_eq!(found(&[0x10, 0x51, 1, 2]), Some((FrameBegin::First, false)));
        // A packet inside of the first partition, and the begin of the second.
        assert_eq!(found(&[0x00, 0x50]), Some((FrameBegin::Continues, false)));
        assert_eq!(found(&[0x11, 0x50]), Some((FrameBegin::Continues, false)));
    }

    #[test]
    fn descriptor_is_skipped() {
        // Picture identifier of 7 and of 15 bits, level, layer and key index.
        assert_eq!(found(&[0x90, 0x80, 0x11, 0x51]), Some((FrameBegin::First, false)));
        let key = [0x90, 0xf0, 0x81, 0x11, 7, 0x20, 0x50, 0, 0, 0x9d, 0x01, 0x2a];
        assert_eq!(found(&key), Some((FrameBegin::First, true)));
        assert_eq!(found(&key[..6]), None, "nothing after the descriptor");
    }

    #[test]
    fn other_payloads_are_none() {
        let wrong_code = [0x10, 0x50, 0x2a, 0x05, 0x9d, 0x01, 0x2b];
        for payload in [&wrong_code[..], &[0x50, 0x51], &[0x18, 0x51], &[0x10], &[0x90, 0x80]] {
            assert_eq!(found(payload), None, "{payload:x?}");
        }
    }
}
