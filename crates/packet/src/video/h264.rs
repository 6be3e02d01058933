//! H.264: RFC 6184 section 5. Numbers of units: ITU-T H.264 table 7-1.

use super::units::{aggregation, fragment};
use super::{FrameBegin, VideoPayload};

/// Slices of a picture, and of an IDR picture. Data partitions B and C (3 and 4) follow those of A.
const SLICE: u8 = 1;
const PARTITION_A: u8 = 2;
const IDR_SLICE: u8 = 5;
/// Supplemental enhancement information, parameter sets, and the delimiter that is always first.
const SEI: u8 = 6;
const SEQUENCE_PARAMETERS: u8 = 7;
const PICTURE_PARAMETERS: u8 = 8;
const DELIMITER: u8 = 9;
/// The last number of a unit; the higher ones are those of RFC 6184.
const LAST_UNIT: u8 = 23;

/// Payload structures (section 5.2). MTAP16 and MTAP24 have several timestamps and are not read.
const STAP_A: u8 = 24;
const STAP_B: u8 = 25;
const MTAP16: u8 = 26;
const MTAP24: u8 = 27;
const FU_A: u8 = 28;
const FU_B: u8 = 29;

/// Bytes of the decoding order number.
const ORDER_NUMBER: usize = 2;

pub(super) fn parse(payload: &[u8], length: usize) -> Option<VideoPayload> {
    let (header, rest) = payload.split_first()?;
    match kind(*header)? {
        STAP_A => aggregation(rest, length.checked_sub(1)?, parse_unit),
        STAP_B => {
            let length = length.checked_sub(1 + ORDER_NUMBER)?;
            aggregation(rest.get(ORDER_NUMBER..)?, length, parse_unit)
        }
        FU_A => parse_fragment(rest, 0),
        FU_B => parse_fragment(rest, ORDER_NUMBER),
        1..=LAST_UNIT => parse_unit(payload),
        _ => None,
    }
}

/// Whether a payload with this header is an MTAP.
pub(super) fn is_multi_time(header: u8) -> bool {
    matches!(kind(header), Some(MTAP16 | MTAP24))
}

/// The number in the first byte; none with the forbidden bit.
fn kind(header: u8) -> Option<u8> {
    (header & 0x80 == 0).then_some(header & 0x1f)
}

/// A unit, or its first bytes.
fn parse_unit(unit: &[u8]) -> Option<VideoPayload> {
    let (header, content) = unit.split_first()?;
    of_unit(kind(*header)?, content)
}

fn of_unit(kind: u8, content: &[u8]) -> Option<VideoPayload> {
    let begin = match kind {
        // Reserved: senders do not use them, so the payload is something else.
        17 | 18 | 22 | 23 => return None,
        // Before the sequence parameters is at most a delimiter, which decoders do not need (H.264 section 7.4.1.2.3).
        SEQUENCE_PARAMETERS | DELIMITER => FrameBegin::First,
        SLICE | PARTITION_A | IDR_SLICE if begins_with_another_macroblock(content) => {
            FrameBegin::Continues
        }
        SLICE | PARTITION_A | IDR_SLICE | SEI | PICTURE_PARAMETERS | 14..=16 | 20 | 21 => {
            FrameBegin::Possible
        }
        1..=LAST_UNIT => FrameBegin::Continues,
        _ => return None,
    };
    Some(VideoPayload::of_unit(begin, kind == IDR_SLICE))
}

/// Whether a slice does not begin with the first macroblock of the picture: `first_mb_in_slice` is an Exp-Golomb code, whose
/// first bit is 1 only for 0 (H.264 sections 7.3.3 and 9.1). Slices in arbitrary order, which the baseline profile allows,
/// are taken for continuations.
fn begins_with_another_macroblock(content: &[u8]) -> bool {
    content.first().is_some_and(|byte| byte & 0x80 == 0)
}

/// A fragment; `skipped` bytes are after its header.
fn parse_fragment(rest: &[u8], skipped: usize) -> Option<VideoPayload> {
    let (header, rest) = rest.split_first()?;
    let content = rest.get(skipped..)?;
    fragment(*header, of_unit(header & 0x1f, content)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(payload: &[u8]) -> Option<(FrameBegin, Option<bool>, bool)> {
        parse(payload, payload.len()).map(|it| (it.begin, it.end, it.is_key))
    }

    #[test]
    fn single_units_are_parsed() {
        assert_eq!(found(&[0x67, 0x42]), Some((FrameBegin::First, None, false)));
        assert_eq!(found(&[0x65, 0x88]), Some((FrameBegin::Possible, None, true)));
        assert_eq!(found(&[0x41, 0x9a]), Some((FrameBegin::Possible, None, false)));
        assert_eq!(found(&[0x41, 0x1a]), Some((FrameBegin::Continues, None, false)));
        assert_eq!(found(&[0x06, 5, 1]), Some((FrameBegin::Possible, None, false)));
    }

    #[test]
    fn fragments_show_their_unit() {
        // FU-A of an IDR slice: begin, middle, end.
        assert_eq!(found(&[0x7c, 0x85, 0x88]), Some((FrameBegin::Possible, Some(false), true)));
        assert_eq!(found(&[0x7c, 0x05, 0x88]), Some((FrameBegin::Continues, Some(false), true)));
        assert_eq!(found(&[0x7c, 0x45, 0x88]), Some((FrameBegin::Continues, None, true)));
        assert_eq!(found(&[0x7c, 0xc5, 0x88]), None);
        assert_eq!(
            found(&[0x7d, 0x81, 0, 7, 0x88]),
            Some((FrameBegin::Possible, Some(false), false))
        );
    }

    #[test]
    fn aggregated_key_frame_is_found_after_parameter_sets() {
        let units = [0x78, 0, 2, 0x67, 0x42, 0, 2, 0x68, 0xce, 0, 3, 0x65, 0x88, 1];
        assert_eq!(found(&units), Some((FrameBegin::First, None, true)));
        let cut = parse(&units[..8], units.len()).expect("a payload");
        assert!(cut.is_cut && !cut.is_key && cut.begin == FrameBegin::First);
        assert_eq!(found(&units[..12]), None, "a size beyond the end");
        assert_eq!(found(&[0x78]), None);
        assert_eq!(found(&[0x78, 0, 0]), None);
    }

    #[test]
    fn other_payloads_are_none() {
        // The forbidden bit, no unit, a reserved unit, and MTAP16.
        let payloads = [&[0xe5, 0x88][..], &[0x60, 1], &[0x77, 1], &[0x7a, 0, 0, 0, 1], &[0x7e, 1]];
        for payload in payloads {
            assert_eq!(found(payload), None, "{payload:x?}");
            assert_eq!(is_multi_time(payload[0]), payload[0] == 0x7a);
        }
    }
}
