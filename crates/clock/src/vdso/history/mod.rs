//! The kernel's lines of the last seconds, as pieces of a timeline.
//!
//! The kernel replaces its line at each tick, usually by one that continues it: both are one segment here. At a change
//! of rate or a step a new segment begins. When exactly it began is not published: between the last observation of the
//! old line and the first one of the new line lies a *gap*.
//!
//! # Errors
//!
//! In a segment the time is the kernel's own, up to the rounding to nanoseconds: [`EXACT`]. In a gap the kernel
//! changed from the old line to the new one, at an unknown time. The time is that of the old line, with the largest
//! distance of the two in the gap as its error. The kernel may have used further lines in between, which were not observed.
//! It then alternates between two neighbouring factors, whose mean is the rate that a time daemon asked for
//! (`timekeeping_adjust` of kernel/time/timekeeping.c). So the error includes one unit of the factor over the gap.

mod inverse;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::line::KernelLine;
use crate::piece::Piece;
use crate::ratio::Ratio;
use crate::{Span, Time};
pub(crate) use inverse::LineInverse;
pub(crate) use lines::{CounterAt, INVERSE_ERROR, Lines};

/// Error within a segment: the time at its beginning and the product with its slope are rounded to a nanosecond each.
pub(crate) const EXACT: Span = Span::from_nanos(2);

/// Max age of stamps for which a time that the clock showed twice is uncertain. An older stamp counts as one of the
/// newer line.
const RECENT: Span = Span::from_nanos(5_000_000_000);

/// Max number of segments: with a change at each observation, those of the last seconds.
const CAPACITY: usize = 1_024;

/// A range of counter values that one line of the kernel converts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// First counter value; the segment ends at the start of the next one.
    start: u64,
    /// The newest of the lines, which are one function of the counter.
    line: KernelLine,
    error: Span,
}

/// A time up to which the clock repeats times, because it was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SetBack {
    /// The latest time that it showed before.
    shown: i64,
    /// Counter value at which the new line was observed.
    at: u64,
}

/// How a line relates to those observed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It continues them.
    None,
    /// There are none yet, or the counter was set back: the history begins anew.
    Began,
    /// It begins a new segment, this far from the last one.
    By(Span),
}

/// The lines observed so far, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineHistory {
    segments: VecDeque<Segment>,
    /// Counter value up to which the last segment is known to apply.
    until: u64,
    set_back: Option<SetBack>,
}

impl SetBack {
    /// This one and an `earlier` one.
    fn after(self, earlier: Option<Self>) -> Self {
        let shown = earlier.map_or(self.shown, |earlier| self.shown.max(earlier.shown));
        Self { shown, ..self }
    }
}

impl Segment {
    /// The gap from `self`, which applied until `until`, to `line`, observed at `now`; and its largest distance.
    pub(crate) fn gap(&self, until: u64, line: &KernelLine, now: u64) -> (Self, Span) {
        let distance =
            |raw| Span::from_nanos(self.line.nanos(raw).saturating_sub(line.nanos(raw))).abs();
        let distance = distance(until).max(distance(now));
        let unit = KernelLine { mult: 1, ..*line }.slope().unwrap_or(Ratio::ZERO);
        let alternation = Span::from_nanos(unit.scale(now.saturating_sub(until)).cast_signed());
        let error = EXACT + distance + alternation + Span::from_nanos(1);
        (Self { start: until, line: self.line, error }, distance)
    }

    /// By how much, if at all, the clock was set back between this segment and `line`, observed at `now`.
    fn set_back(&self, line: &KernelLine, now: u64) -> Option<SetBack> {
        let shown = self.line.nanos(now);
        let back = shown.saturating_sub(line.nanos(now));
        (back > INVERSE_ERROR.as_nanos()).then_some(SetBack { shown, at: now })
    }

    /// The counter value at which the clock showed `nanos` in this segment, which ends at the counter value `end`
    /// with the line `later`; none if it did not show it.
    fn counter_at(&self, nanos: i64, end: u64, later: Option<&KernelLine>) -> Option<CounterAt> {
        let shows = |line: &KernelLine| (line.nanos(self.start)..=line.nanos(end)).contains(&nanos);
        if self.is_gap() && self.error > INVERSE_ERROR {
            // The old line or the new one applied.
            let is_shown = shows(&self.line) || later.is_some_and(shows);
            return is_shown.then_some(CounterAt::Uncertain(self.error));
        }
        shows(&self.line).then(|| {
            self.line
                .counter(nanos)
                .map_or(CounterAt::Unknown, |value| CounterAt::Value(value.clamp(self.start, end)))
        })
    }

    /// The segment of `line`, observed at `now`.
    pub(crate) const fn beginning(line: KernelLine, now: u64) -> Self {
        Self { start: now, line, error: EXACT }
    }

    /// First counter value.
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// The line.
    #[cfg(test)]
    pub(crate) const fn line(&self) -> KernelLine {
        self.line
    }

    /// Whether the kernel changed its line in this range.
    const fn is_gap(&self) -> bool {
        self.error.as_nanos() != EXACT.as_nanos()
    }

    /// Whether `line` continues this segment.
    pub(crate) fn is_continued_by(&self, line: &KernelLine) -> bool {
        !self.is_gap() && self.line.is_continued_by(line)
    }

    /// The segment as a piece of a timeline.
    pub(crate) fn piece(&self) -> Piece {
        Piece {
            start: self.start,
            origin: self.start,
            origin_utc: Time::from_nanos(self.line.nanos(self.start)),
            slope: self.line.slope().unwrap_or(Ratio::ZERO),
            length: None,
            error: self.error,
            error_slope: Ratio::ZERO,
        }
    }

    /// The segment from `start` on, as a piece of a timeline.
    pub(crate) fn piece_from(&self, start: u64) -> Piece {
        Self { start, ..*self }.piece()
    }

    /// The piece beyond `until`, where the line is not known to apply: its error grows by `error_slope`.
    pub(crate) fn piece_beyond(&self, until: u64, error_slope: Ratio) -> Piece {
        // The growth is rounded down.
        let error = EXACT + Span::from_nanos(1);
        Piece { error, error_slope, ..self.piece_from(until) }
    }
}

impl LineHistory {
    /// Adds the line that was in force at the counter's value `now`, which was read after it.
    pub(crate) fn observe(&mut self, line: KernelLine, now: u64) -> Change {
        let last = self.segments.back_mut().filter(|_| now >= self.until);
        let Some(last) = last else {
            self.clear();
            self.push(Segment::beginning(line, now));
            self.until = now;
            return Change::Began;
        };
        let until = std::mem::replace(&mut self.until, now);
        if last.is_continued_by(&line) {
            last.line = line;
            return Change::None;
        }
        let (gap, distance) = last.gap(until, &line, now);
        if let Some(set_back) = last.set_back(&line, now) {
            self.set_back = Some(set_back.after(self.set_back));
        }
        self.push(gap);
        self.push(Segment::beginning(line, now));
        Change::By(distance)
    }

    /// Forgets all lines.
    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        self.set_back = None;
    }

    /// A snapshot of the lines, if there are any.
    pub(crate) fn lines(&self) -> Option<Lines> {
        let newest = *self.segments.back()?;
        let older = self.segments.iter().take(self.segments.len() - 1).copied().collect();
        Some(Lines { older, changed: None, newest, until: self.until, set_back: self.set_back })
    }

    /// The pieces of all segments.
    #[cfg(test)]
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.segments.iter().map(Segment::piece)
    }

    fn push(&mut self, segment: Segment) {
        if self.segments.len() == CAPACITY {
            self.segments.pop_front();
        }
        self.segments.push_back(segment);
    }
}
