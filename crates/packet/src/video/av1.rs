//! AV1: RTP Payload Format For AV1 (v1.0.0, Alliance for Open Media), section 4.

use super::{FrameBegin, VideoPayload};

/// Bits of the aggregation header (section 4.4): the first element continues an open bitstream unit (OBU), the last one
/// continues in the next packet, and a coded video sequence begins.
const CONTINUES: u8 = 0x80;
const IS_CONTINUED: u8 = 0x40;
const NEW_SEQUENCE: u8 = 0x08;
const RESERVED: u8 = 0x07;

/// OBU types (AV1 Bitstream & Decoding Process Specification section 6.2.2) that follow a frame header.
const TILE_GROUP: u8 = 4;
const REPEATED_FRAME_HEADER: u8 = 7;

/// Max bytes of a length (section 4.10.5 there).
const MAX_LENGTH_BYTES: usize = 8;

pub(super) fn parse(payload: &[u8]) -> Option<VideoPayload> {
    let (header, elements) = payload.split_first()?;
    let (continues, is_key) = (header & CONTINUES != 0, header & NEW_SEQUENCE != 0);
    // Section 4.4: a sequence does not begin with a continuation.
    if header & RESERVED != 0 || (continues && is_key) {
        return None;
    }
    let begin = if continues {
        FrameBegin::Continues
    } else {
        let unit = first_unit(*header >> 4 & 3, elements)?;
        match unit >> 3 & 0x0f {
            _ if unit & 0x80 != 0 => return None, // the forbidden bit
            _ if is_key => FrameBegin::First,
            TILE_GROUP | REPEATED_FRAME_HEADER => FrameBegin::Continues,
            _ => FrameBegin::Possible,
        }
    };
    let end = (header & IS_CONTINUED != 0).then_some(false);
    Some(VideoPayload { begin, end, is_key, is_cut: false })
}

/// The first byte of the first element. Each element has its length before it, except the last one if their number is
/// known.
fn first_unit(count: u8, elements: &[u8]) -> Option<u8> {
    if count == 1 {
        return elements.first().copied();
    }
    let last = elements.iter().take(MAX_LENGTH_BYTES).position(|byte| byte & 0x80 == 0)?;
    elements.get(last + 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(payload: &[u8]) -> Option<(FrameBegin, Option<bool>, bool)> {
        parse(payload).map(|it| (it.begin, it.end, it.is_key))
    }

    #[test]
    fn temporal_units_are_parsed() {
        // Sequence header and the begin of a frame, its continuation, its end.
        let key = [0x68, 11, 0x08, 0, 0, 0];
        assert_eq!(found(&key), Some((FrameBegin::First, Some(false), true)));
        assert_eq!(found(&[0xd0, 1, 2]), Some((FrameBegin::Continues, Some(false), false)));
        assert_eq!(found(&[0x90, 1, 2]), Some((FrameBegin::Continues, None, false)));
        // A frame; a frame with a length of two bytes; a tile group.
        assert_eq!(found(&[0x10, 0x30, 1]), Some((FrameBegin::Possible, None, false)));
        assert_eq!(found(&[0x00, 0x80, 1, 0x30]), Some((FrameBegin::Possible, None, false)));
        assert_eq!(found(&[0x10, 0x20, 1]), Some((FrameBegin::Continues, None, false)));
    }

    #[test]
    fn other_payloads_are_none() {
        // Reserved bits, the begin of a sequence that continues, the forbidden bit, nothing, and a length without an end.
        let endless = [&[0x00][..], &[0xff; 9]].concat();
        for payload in [&[0x11, 0x30][..], &[0x98, 0x08], &[0x10, 0xb0], &[0x10], &endless] {
            assert_eq!(found(payload), None, "{payload:x?}");
        }
    }
}
