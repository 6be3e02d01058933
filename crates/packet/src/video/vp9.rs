//! VP9: RFC 9628 section 4.

use super::{FrameBegin, VideoPayload};

/// Bits of the first byte (section 4.2).
const PICTURE_ID: u8 = 0x80;
const INTER_PREDICTED: u8 = 0x40;
const LAYERS: u8 = 0x20;
const FLEXIBLE: u8 = 0x10;
const START: u8 = 0x08;
const END: u8 = 0x04;
const STRUCTURE: u8 = 0x02;

/// The picture identifier has two bytes.
const LONG: u8 = 0x80;
/// Max references of a picture in flexible mode, and the bit that another one follows.
const MAX_REFERENCES: usize = 3;
const ANOTHER_REFERENCE: u8 = 1;

pub(super) fn parse(payload: &[u8]) -> Option<VideoPayload> {
    let descriptor = Descriptor::parse(payload)?;
    let Descriptor { first, spatial_layer, length } = descriptor;
    let (starts, ends) = (first & START != 0, first & END != 0);
    let begin = match (starts, spatial_layer) {
        (true, None | Some(0)) => FrameBegin::First,
        (true, Some(_)) => FrameBegin::Possible,
        (false, _) => FrameBegin::Continues,
    };
    // The end of a layer's frame is the end of the picture only without layers.
    let end = if ends { spatial_layer.is_none().then_some(true) } else { Some(false) };
    let mut is_key = begin == FrameBegin::First && first & INTER_PREDICTED == 0;
    if let Some(head) = payload.get(length).filter(|_| begin == FrameBegin::First) {
        // The descriptor is not sufficient: pictures without inter-picture prediction may be intra-only, and ffmpeg's
        // packets never have the bit for prediction.
        is_key &= is_key_frame(*head)?;
    }
    Some(VideoPayload { begin, end, is_key, is_cut: false })
}

/// Whether the uncompressed header that begins with this byte is that of a key frame (VP9 Bitstream Specification section
/// 6.2). None if it does not begin with the marker, as each frame does.
fn is_key_frame(head: u8) -> Option<bool> {
    let has_reserved_bit = head & 0x30 == 0x30; // profile 3
    let flags = if has_reserved_bit { head << 1 } else { head };
    let shows_existing = flags & 0x08 != 0;
    let is_key = flags & 0x04 == 0;
    (head >> 6 == 2).then_some(!shows_existing && is_key)
}

/// The payload descriptor.
struct Descriptor {
    /// Flags.
    first: u8,
    /// Spatial layer; none without layers.
    spatial_layer: Option<u8>,
    /// Bytes of the descriptor.
    length: usize,
}

impl Descriptor {
    /// Parses it. If the scalability structure was not captured completely, the length is beyond the captured bytes.
    fn parse(payload: &[u8]) -> Option<Self> {
        let first = *payload.first()?;
        let is_flexible = first & FLEXIBLE != 0;
        if is_flexible && first & PICTURE_ID == 0 {
            return None; // section 4.2: flexible mode requires the picture identifier
        }
        let mut length = 1;
        if first & PICTURE_ID != 0 {
            length += if payload.get(length)? & LONG != 0 { 2 } else { 1 };
        }
        let mut spatial_layer = None;
        if first & LAYERS != 0 {
            spatial_layer = Some(payload.get(length)? >> 1 & 7);
            length += if is_flexible { 1 } else { 2 };
        }
        if is_flexible && first & INTER_PREDICTED != 0 {
            length += references(payload.get(length..)?)?;
        }
        if first & STRUCTURE != 0 {
            length = length.saturating_add(structure(payload.get(length..)?).unwrap_or(usize::MAX));
        }
        Some(Self { first, spatial_layer, length })
    }
}

/// Bytes of the references of flexible mode; none if there are more than allowed.
fn references(bytes: &[u8]) -> Option<usize> {
    let last = bytes.iter().take(MAX_REFERENCES).position(|byte| byte & ANOTHER_REFERENCE == 0)?;
    Some(last + 1)
}

/// Bytes of the scalability structure (section 4.2.1); none if it is longer than `bytes`.
fn structure(bytes: &[u8]) -> Option<usize> {
    let flags = *bytes.first()?;
    let layers = usize::from(flags >> 5) + 1;
    let mut length = 1;
    if flags & 0x10 != 0 {
        length += 4 * layers; // width and height
    }
    if flags & 0x08 != 0 {
        let pictures = *bytes.get(length)?;
        length += 1;
        for _ in 0..pictures {
            length += 1 + usize::from(*bytes.get(length)? >> 2 & 3);
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(payload: &[u8]) -> Option<(FrameBegin, Option<bool>, bool)> {
        parse(payload).map(|it| (it.begin, it.end, it.is_key))
    }

    #[test]
    fn frames_without_layers_are_parsed() {
        // As ffmpeg sends them: a key frame and another one in one packet each, begin and end of a third.
        assert_eq!(found(&[0x0c, 0x82, 0x49]), Some((FrameBegin::First, Some(true), true)));
        assert_eq!(found(&[0x0c, 0x86, 0]), Some((FrameBegin::First, Some(true), false)));
        assert_eq!(found(&[0x08, 0x86, 0]), Some((FrameBegin::First, Some(false), false)));
        assert_eq!(found(&[0x04, 0x12]), Some((FrameBegin::Continues, Some(true), false)));
        // With prediction by the descriptor, and a frame that is shown again.
        assert_eq!(found(&[0xc8, 0x11, 0x82]), Some((FrameBegin::First, Some(false), false)));
        assert_eq!(found(&[0x0c, 0x88]), Some((FrameBegin::First, Some(true), false)));
        // Profile 3 has one more bit.
        assert_eq!(found(&[0x0c, 0xb0]), Some((FrameBegin::First, Some(true), true)));
        assert_eq!(found(&[0x0c, 0xb2]), Some((FrameBegin::First, Some(true), false)));
    }

    #[test]
    fn layers_and_structure_are_skipped() {
        // Identifier of 15 bits, layers, structure of two layers with sizes and a group of two pictures.
        let structure = [0x38, 1, 64, 0, 180, 2, 128, 1, 104, 2, 0x04, 1, 0x08, 1, 2];
        let key = [&[0xaa, 0x80, 1, 0, 0][..], &structure, &[0x82, 0x49]].concat();
        assert_eq!(found(&key), Some((FrameBegin::First, Some(false), true)));
        let other = [&key[..20], &[0x86]].concat();
        assert_eq!(found(&other), Some((FrameBegin::First, Some(false), false)));
        assert_eq!(found(&key[..12]), Some((FrameBegin::First, Some(false), true)), "cut off");
        // The second layer of the same picture.
        let second = [0xac, 0x80, 1, 0x03, 0, 0x86];
        assert_eq!(found(&second), Some((FrameBegin::Possible, None, false)));
    }

    #[test]
    fn references_of_flexible_mode_are_skipped() {
        let three = [0xd8, 5, 3, 3, 2, 0x86];
        assert_eq!(found(&three), Some((FrameBegin::First, Some(false), false)));
        assert_eq!(found(&[0xd8, 5, 3, 3, 3, 2, 0x86]), None);
    }

    #[test]
    fn other_payloads_are_none() {
        for payload in [&[0x0c, 0x42][..], &[0x18, 0x82], &[0x80], &[0xa8, 1]] {
            assert_eq!(found(payload), None, "{payload:x?}");
        }
    }
}
