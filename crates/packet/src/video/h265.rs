//! H.265: RFC 7798 section 4. Numbers of units: ITU-T H.265 table 7-1.

use std::ops::RangeInclusive;

use super::units::{aggregation, fragment};
use super::{FrameBegin, VideoPayload};

/// Slices of pictures, and of random access pictures (IRAP): BLA, IDR, CRA, and two reserved numbers.
const SLICES: RangeInclusive<u8> = 0..=31;
const RANDOM_ACCESS: RangeInclusive<u8> = 16..=23;
/// Video parameters and the delimiter, which are first.
const VIDEO_PARAMETERS: u8 = 32;
const DELIMITER: u8 = 35;
/// Ends of the sequence and of the bitstream, filler data, and SEI after the picture.
const AFTER_PICTURE: [u8; 4] = [36, 37, 38, 40];
/// Numbers that are reserved. Senders do not use them (table 7-1): such a payload is something else.
const RESERVED: [RangeInclusive<u8>; 3] = [10..=15, 24..=31, 41..=47];
/// The last number of a unit; the higher ones are those of RFC 7798.
const LAST_UNIT: u8 = 47;

/// Payload structures (section 4.4).
const AGGREGATION: u8 = 48;
const FRAGMENT: u8 = 49;
const WITH_CONTROL_INFORMATION: u8 = 50;

/// Bytes of the header of a unit and of a payload (section 1.1.4).
const HEADER: usize = 2;

pub(super) fn parse(payload: &[u8], length: usize) -> Option<VideoPayload> {
    let kind = kind(payload)?;
    let (rest, length) = (payload.get(HEADER..)?, length.checked_sub(HEADER)?);
    if kind == WITH_CONTROL_INFORMATION {
        // Section 4.4.4: A, type (6 bits), size of the information (5 bits), 4 flags.
        let (control, content) = rest.split_first_chunk::<2>()?;
        let word = u16::from_be_bytes(*control);
        let (kind, size) = (control[0] >> 1 & 0x3f, usize::from(word >> 4 & 0x1f));
        let length = length.checked_sub(control.len() + size)?;
        return of_content(kind, content.get(size..)?, length);
    }
    of_content(kind, rest, length)
}

/// The content after the header.
fn of_content(kind: u8, content: &[u8], length: usize) -> Option<VideoPayload> {
    match kind {
        0..=LAST_UNIT => of_unit(kind, content),
        AGGREGATION => aggregation(content, length, parse_unit),
        FRAGMENT => {
            let (header, content) = content.split_first()?;
            fragment(*header, of_unit(header & 0x3f, content)?)
        }
        _ => None,
    }
}

/// The number in the header; none with the forbidden bit, and with a temporal identifier of 0, which is forbidden, too.
fn kind(bytes: &[u8]) -> Option<u8> {
    let [high, low, ..] = *bytes else { return None };
    (high & 0x80 == 0 && low & 0x07 != 0).then_some(high >> 1)
}

/// A unit, or its first bytes.
fn parse_unit(unit: &[u8]) -> Option<VideoPayload> {
    of_unit(kind(unit)?, unit.get(HEADER..).unwrap_or_default())
}

fn of_unit(kind: u8, content: &[u8]) -> Option<VideoPayload> {
    if kind > LAST_UNIT || RESERVED.iter().any(|range| range.contains(&kind)) {
        return None;
    }
    // The first bit of a slice: `first_slice_segment_in_pic_flag` (H.265 section 7.3.6.1).
    let is_later_slice =
        SLICES.contains(&kind) && content.first().is_some_and(|byte| byte & 0x80 == 0);
    let begin = match kind {
        VIDEO_PARAMETERS | DELIMITER => FrameBegin::First,
        _ if is_later_slice || AFTER_PICTURE.contains(&kind) => FrameBegin::Continues,
        _ => FrameBegin::Possible,
    };
    Some(VideoPayload::of_unit(begin, RANDOM_ACCESS.contains(&kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(payload: &[u8]) -> Option<(FrameBegin, Option<bool>, bool)> {
        parse(payload, payload.len()).map(|it| (it.begin, it.end, it.is_key))
    }

    /// A header of a unit.
    fn head(kind: u8) -> [u8; 2] {
        [kind << 1, 1]
    }

    fn unit(kind: u8, content: &[u8]) -> Vec<u8> {
        [&head(kind)[..], content].concat()
    }

    #[test]
    fn single_units_are_parsed() {
        assert_eq!(found(&unit(32, &[0x0c])), Some((FrameBegin::First, None, false)));
        assert_eq!(found(&unit(19, &[0x80])), Some((FrameBegin::Possible, None, true)));
        assert_eq!(found(&unit(21, &[0x80])), Some((FrameBegin::Possible, None, true)));
        assert_eq!(found(&unit(1, &[0x80])), Some((FrameBegin::Possible, None, false)));
        assert_eq!(found(&unit(1, &[0x20])), Some((FrameBegin::Continues, None, false)));
        assert_eq!(found(&unit(40, &[1])), Some((FrameBegin::Continues, None, false)));
    }

    #[test]
    fn fragments_show_their_unit() {
        let fragment = |header, content| found(&unit(49, &[header, content]));
        assert_eq!(fragment(0x80 | 19, 0x80), Some((FrameBegin::Possible, Some(false), true)));
        assert_eq!(fragment(19, 0x80), Some((FrameBegin::Continues, Some(false), true)));
        assert_eq!(fragment(0x40 | 1, 0), Some((FrameBegin::Continues, None, false)));
        assert_eq!(fragment(0xc0 | 1, 0), None);
        assert_eq!(fragment(0x80 | 48, 0), None);
    }

    #[test]
    fn aggregated_key_frame_is_found_after_parameter_sets() {
        let units = [&[0, 3], &unit(33, &[1])[..], &[0, 3], &unit(20, &[0x80])[..]].concat();
        assert_eq!(found(&unit(48, &units)), Some((FrameBegin::Possible, None, true)));
        assert_eq!(found(&unit(48, &units[..8])), None);
        let bytes = unit(48, &units);
        assert!(parse(&bytes[..8], bytes.len()).is_some_and(|it| it.is_cut && !it.is_key));
    }

    #[test]
    fn control_information_is_skipped() {
        // An IDR slice after three bytes of information.
        let bytes = unit(50, &[19 << 1, 3 << 4, 7, 7, 7, 0x80]);
        assert_eq!(found(&bytes), Some((FrameBegin::Possible, None, true)));
        assert_eq!(found(&bytes[..5]), None);
    }

    #[test]
    fn other_payloads_are_none() {
        // The forbidden bit, no temporal identifier, an unknown structure, a reserved unit, and one byte.
        let payloads =
            [&[0x82, 1, 0x80][..], &[2, 0, 0x80], &[51 << 1, 1, 0], &[46 << 1, 1, 0x80], &[2]];
        for payload in payloads {
            assert_eq!(found(payload), None, "{payload:x?}");
        }
    }
}
