//! The kernel's lines in an anchor file.

use super::format::{AnchorRow, RowKind};
use crate::Timeline;
use crate::piece::Piece;
use crate::ratio::Ratio;

/// Raw values that the kernel's lines convert without interruption.
#[derive(Debug)]
pub(super) struct LineRange {
    /// Never empty; ascending by `start`.
    pieces: Vec<Piece>,
    /// Raw value up to which the last line applies.
    pub(super) until: u64,
}

impl LineRange {
    /// Adds the line of `row`, if it has one, to the last range or begins a new one.
    pub(super) fn extend(ranges: &mut Vec<Self>, row: &AnchorRow) {
        let (Some(line), raw) = (row.line, row.anchor.raw) else { return };
        let last = ranges.last_mut().filter(|last| raw >= last.until);
        let piece = Piece {
            start: raw,
            origin: raw,
            origin_utc: row.anchor.utc,
            slope: Ratio::at_least(line.nanos_per_tick),
            length: None,
            error: line.error,
            error_slope: Ratio::ZERO,
        };
        match (row.kind, last) {
            (RowKind::Anchor, Some(last)) => last.until = raw,
            (RowKind::Anchor, None) => {}
            (RowKind::Line, Some(last)) => {
                last.pieces.push(piece);
                last.until = raw;
            }
            (RowKind::Line | RowKind::FirstLine, _) => {
                ranges.push(Self { pieces: vec![piece], until: raw });
            }
        }
    }

    /// First raw value.
    pub(super) fn first(&self) -> u64 {
        self.pieces[0].start
    }
}

/// `timeline` with the lines of `ranges` instead of lines between anchors. Ranges that do not ascend, because the
/// counter was set back, are not used.
pub(super) fn overlay(timeline: &Timeline, ranges: &[LineRange]) -> Timeline {
    if !ranges.is_sorted_by(|a, b| a.until < b.first()) {
        return timeline.clone();
    }
    let mut pieces = timeline.pieces();
    for range in ranges {
        let after = pieces.iter().rfind(|piece| piece.start <= range.until).copied();
        let tail: Vec<_> =
            pieces.iter().filter(|piece| piece.start > range.until).copied().collect();
        pieces.retain(|piece| piece.start < range.first());
        pieces.extend(&range.pieces);
        // Beyond the last value that a line is known for, the anchors convert.
        pieces.extend(after.map(|piece| Piece { start: range.until.saturating_add(1), ..piece }));
        pieces.extend(tail);
    }
    timeline.with_pieces(pieces)
}
