//! Snapshots of the kernel's lines, and the inverse conversion: from a time of the kernel to the counter.

use std::sync::Arc;

use super::{KernelLine, LineInverse, Segment};
use crate::Span;

/// Max error of a counter value in a gap with which a stamp still counts as exactly inverted: the factors that the
/// kernel alternates between, over the 4 ms between two observations.
pub(crate) const INVERSE_ERROR: Span = Span::from_nanos(5);

/// Ticks before the newest line's beginning that its inverse covers: the last second or so.
const INVERTED_BEFORE: u64 = 1 << 32;

/// An immutable snapshot of the kernel's lines, up to one counter value. A clone allocates no memory.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// The segments before `changed` and `newest`, oldest first.
    pub(super) older: Arc<[Segment]>,
    /// The former newest segment and the gap after it, if the line changed after the last observation.
    pub(super) changed: Option<[Segment; 2]>,
    pub(super) newest: Segment,
    /// Counter value up to which the newest segment is known to apply.
    pub(super) until: u64,
}

/// The counter value at which a clock of the kernel showed a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CounterAt {
    /// This value, within [`INVERSE_ERROR`]; within 1 ns and one tick outside of gaps.
    Value(u64),
    /// Uncertain, because the clock was being stepped or slewed; with the error of the time in nanoseconds.
    Uncertain(Span),
    /// The snapshot does not cover this time.
    Unknown,
}

impl Lines {
    /// These lines, and the one that is in force at the counter value `now`. None if the counter was set back.
    pub(crate) fn extended(&self, line: &KernelLine, now: u64) -> Option<Self> {
        if now < self.until {
            return None;
        }
        if self.newest.is_continued_by(line) {
            let newest = Segment { line: *line, ..self.newest };
            return Some(Self { newest, until: now, ..self.clone() });
        }
        let older = match &self.changed {
            None => Arc::clone(&self.older),
            Some(_) => self.older().copied().collect(),
        };
        let (gap, _) = self.newest.gap(self.until, line, now);
        let newest = Segment::beginning(*line, now);
        Some(Self { older, changed: Some([self.newest, gap]), newest, until: now })
    }

    /// First counter value that the lines convert.
    pub(crate) fn first(&self) -> u64 {
        self.segments().last().map_or(self.newest.start(), |oldest| oldest.start())
    }

    /// The newest segment.
    pub(crate) const fn newest(&self) -> &Segment {
        &self.newest
    }

    /// Counter value up to which the newest segment is known to apply.
    pub(crate) const fn until(&self) -> u64 {
        self.until
    }

    /// The gap before the newest segment, if the line changed after the last observation.
    pub(crate) fn new_gap(&self) -> Option<&Segment> {
        self.changed.as_ref().map(|[_, gap]| gap)
    }

    /// The inverse of the newest line, from its observation or the last second on. It is correct until the kernel
    /// replaces the line.
    pub(crate) fn newest_inverse(&self) -> LineInverse {
        let Segment { start, line, .. } = &self.newest;
        LineInverse::new(line, (*start).max(line.cycle_last.saturating_sub(INVERTED_BEFORE)))
    }

    /// All segments but the newest, oldest first.
    pub(crate) fn older(&self) -> impl Iterator<Item = &Segment> {
        self.older.iter().chain(self.changed.iter().flatten())
    }

    /// All segments, newest first.
    fn segments(&self) -> impl Iterator<Item = &Segment> {
        let newer = [&self.newest].into_iter().chain(self.changed.iter().flatten().rev());
        newer.chain(self.older.iter().rev())
    }

    /// The counter value at which the clock showed `nanos`, the inverse of the conversion. A time that the clock showed
    /// twice, because it was set back, is taken as the later one.
    pub(crate) fn counter_at(&self, nanos: i64) -> CounterAt {
        let mut end = self.until;
        let mut later: Option<&KernelLine> = None;
        for segment in self.segments() {
            let (first, last) = (segment.line.nanos(segment.start), segment.line.nanos(end));
            let is_on_line = (first..=last).contains(&nanos);
            if segment.is_gap() && segment.error > INVERSE_ERROR {
                // The old line or the new one applied.
                let is_on_later = later.is_some_and(|line| {
                    (line.nanos(segment.start)..=line.nanos(end)).contains(&nanos)
                });
                if is_on_line || is_on_later {
                    return CounterAt::Uncertain(segment.error);
                }
            } else if is_on_line {
                let value = segment.line.counter(nanos);
                return value.map_or(CounterAt::Unknown, |value| {
                    CounterAt::Value(value.clamp(segment.start, end))
                });
            }
            (end, later) = (segment.start, Some(&segment.line));
        }
        CounterAt::Unknown
    }
}
