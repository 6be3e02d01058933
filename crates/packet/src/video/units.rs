//! NAL units of H.264 and H.265 in one payload.

use super::{FrameBegin, VideoPayload};

/// Bytes of the size before each unit.
const SIZE: usize = 2;
/// Max bytes of the header of a unit.
const MAX_HEADER: usize = 2;

impl VideoPayload {
    /// A NAL unit.
    pub(super) const fn of_unit(begin: FrameBegin, is_key: bool) -> Self {
        Self { begin, end: None, is_key, is_cut: false }
    }

    /// With a unit after it in the same payload.
    const fn with(self, after: Self) -> Self {
        Self { is_key: self.is_key || after.is_key, ..self }
    }
}

/// The units of an aggregation, each after its size in two bytes: the captured bytes after the header of the payload, and
/// their length on the wire. `parse_unit` parses a whole unit or its captured part.
///
/// `None` if there are no units, if their sizes do not add up to the length, or if one cannot be parsed.
pub(super) fn aggregation(
    captured: &[u8],
    length: usize,
    parse_unit: impl Fn(&[u8]) -> Option<VideoPayload>,
) -> Option<VideoPayload> {
    let (mut rest, mut left) = (captured, length);
    let mut found: Option<VideoPayload> = None;
    while left > 0 {
        let Some((size, units)) = rest.split_first_chunk::<SIZE>() else { break };
        let size = usize::from(u16::from_be_bytes(*size));
        left = left.checked_sub(SIZE + size).filter(|_| size > 0)?;
        let (unit, after) = units.split_at_checked(size).unwrap_or((units, &[]));
        if unit.len() < size.min(MAX_HEADER) {
            left = left.max(1); // the header of this unit was not captured
            break;
        }
        let unit = parse_unit(unit)?;
        found = Some(found.map_or(unit, |before| before.with(unit)));
        rest = after;
    }
    let is_cut = left > 0;
    if is_cut && captured.len() >= length {
        return None;
    }
    let found = found?;
    Some(VideoPayload { is_cut: is_cut && !found.is_key, ..found })
}

/// Flags of a fragment of a unit: begin and end (RFC 6184 section 5.8, RFC 7798 section 4.4.3).
const START: u8 = 0x80;
const END: u8 = 0x40;

/// A fragment of a unit: its header of one byte, and the unit as it begins in this fragment. `None` if it is both the begin
/// and the end, which is not allowed.
pub(super) fn fragment(header: u8, unit: VideoPayload) -> Option<VideoPayload> {
    let (starts, ends) = (header & START != 0, header & END != 0);
    let begin = if starts { unit.begin } else { FrameBegin::Continues };
    let end = if ends { None } else { Some(false) };
    (!(starts && ends)).then_some(VideoPayload { begin, end, ..unit })
}
