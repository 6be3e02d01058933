//! Combines the anchors of a file into one timeline.
//!
//! A part is a range of rows without a disruption or a gap. Each part has its own history, like that of a calibrator
//! without a limit. The concatenated pieces of all parts are the timeline.

use super::format::{AnchorRow, MAX_GAP};
use crate::history::History;
use crate::piece::Piece;
use crate::{Domain, Span, Timeline};

/// Error: the clock passed the same values twice, the second time from this row on.
#[derive(Debug)]
pub(super) struct RepeatedValues {
    pub(super) row: usize,
}

struct Part {
    /// First row of the part.
    row: usize,
    history: History,
}

/// The timeline of `rows`, which ascend in time and are not empty.
pub(super) fn replay(domain: Domain, rows: &[AnchorRow]) -> Result<Timeline, RepeatedValues> {
    let mut parts = parts(domain, rows);
    let breaks = u32::try_from(parts.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let steps = parts.iter().map(|part| part.history.steps()).fold(breaks, u32::saturating_add);
    let newest = parts.last().map(|part| (part.row, part.history.difference()));
    let (newest, difference) = newest.expect("the rows are not empty");
    let entries = parts.iter().flat_map(|part| part.history.entries.iter().copied()).collect();
    parts.sort_by_key(|part| part.first());
    if let Some(pair) = parts.windows(2).find(|pair| pair[0].last() >= pair[1].first()) {
        return Err(RepeatedValues { row: pair[0].row.max(pair[1].row) });
    }
    // Times before the file are known only if no step precedes its first row.
    let known_before = rows.first().is_some_and(|row| row.epoch == 0);
    let pieces = join(&mut parts, known_before, newest);
    Ok(Timeline::new(domain, pieces, difference, steps, entries))
}

impl Part {
    fn first(&self) -> u64 {
        self.history.entries.front().map_or(0, |entry| entry.anchor.raw)
    }

    fn last(&self) -> u64 {
        self.history.entries.back().map_or(0, |entry| entry.anchor.raw)
    }
}

/// The parts in the order of time.
fn parts(domain: Domain, rows: &[AnchorRow]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut before: Option<&AnchorRow> = None;
    for (index, row) in rows.iter().enumerate() {
        let follows = |history: &History, before: &AnchorRow| {
            let gap = row.anchor.monotonic_raw - before.anchor.monotonic_raw;
            gap <= MAX_GAP && history.continues_with(&row.anchor, row.epoch != before.epoch)
        };
        match (parts.last_mut(), before) {
            (Some(part), Some(before)) if follows(&part.history, before) => {
                part.history.push(row.anchor);
            }
            _ => {
                let &AnchorRow { anchor, rate, granularity, .. } = row;
                let history =
                    History::new(domain, anchor, rate, granularity).with_unlimited_capacity();
                parts.push(Part { row: index, history });
            }
        }
        before = Some(row);
    }
    parts
}

/// The pieces of all parts, which are in the order of raw values and do not overlap. Outside them the clock is known
/// before the first part in time, if `known_before`, and after the part that begins with row `newest`.
fn join(parts: &mut [Part], known_before: bool, newest: usize) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for part in parts {
        part.history.disrupted = part.row != 0 || !joined.is_empty() || !known_before;
        let mut pieces = part.history.pieces();
        if let (Some(before), Some(beyond)) = (pieces.first_mut(), joined.pop()) {
            before.start = beyond.start;
        }
        if let Some(beyond) = pieces.last_mut().filter(|_| part.row != newest) {
            beyond.error = Span::MAX;
        }
        joined.append(&mut pieces);
    }
    joined
}
