//! Snapshots of the kernel's lines, and the inverse conversion: from a time of the kernel to the counter.

use std::sync::Arc;

use super::{KernelLine, LineInverse, RECENT, Segment, SetBack};
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
    /// The last time that the clock was set back.
    pub(super) set_back: Option<SetBack>,
}

/// A segment in which the clock showed a time.
struct Match<'a> {
    segment: &'a Segment,
    /// Counter value at which the segment ends.
    end: u64,
    counter: CounterAt,
}

/// The counter value at which a clock of the kernel showed a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CounterAt {
    /// This value, within [`INVERSE_ERROR`]; within 1 ns and one tick outside of gaps.
    Value(u64),
    /// Uncertain, because the clock was stepped or slewed at this time, or showed it twice; with the error of the time.
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
        let set_back = self.newest.set_back(line, now).map(|it| it.after(self.set_back));
        let set_back = set_back.or(self.set_back);
        let newest = Segment::beginning(*line, now);
        Some(Self { older, changed: Some([self.newest, gap]), newest, until: now, set_back })
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

    /// The inverse of the newest line, from its observation or the last second on, without times that the clock
    /// repeats. It is correct until the kernel replaces the line.
    pub(crate) fn newest_inverse(&self) -> LineInverse {
        let Segment { start, line, .. } = &self.newest;
        let start = (*start).max(line.cycle_last.saturating_sub(INVERTED_BEFORE));
        let repeated =
            self.repeated_until().and_then(|shown| line.counter(shown.saturating_add(1)));
        LineInverse::new(line, repeated.map_or(start, |end| start.max(end)))
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

    /// The segments that show `nanos`, newest first. The newest line is in force up to the counter value `now`.
    fn matches(&self, nanos: i64, now: u64) -> impl Iterator<Item = Match<'_>> {
        let mut end = self.until.max(now);
        let mut later: Option<&KernelLine> = None;
        self.segments().filter_map(move |segment| {
            let counter = segment.counter_at(nanos, end, later);
            let found = counter.map(|counter| Match { segment, end, counter });
            (end, later) = (segment.start, Some(&segment.line));
            found
        })
    }

    /// The counter value at which the clock showed `nanos`, the inverse of the conversion. A time that the clock showed
    /// twice, because it was set back, is taken as the later one.
    pub(crate) fn latest_counter_at(&self, nanos: i64) -> CounterAt {
        self.matches(nanos, self.until).next().map_or(CounterAt::Unknown, |it| it.counter)
    }

    /// As [`Self::latest_counter_at`], for a stamp that was taken before the counter value `now`, up to which the
    /// newest line is in force. A time that the clock showed twice in the last seconds is uncertain.
    pub(crate) fn counter_at(&self, nanos: i64, now: u64) -> CounterAt {
        let mut matches = self.matches(nanos, now);
        let Some(latest) = matches.next() else { return CounterAt::Unknown };
        if self.repeated_until().is_none_or(|shown| nanos > shown) {
            return latest.counter;
        }
        let recent = self.recent(now);
        let distances = matches.filter_map(|earlier| match earlier.counter {
            CounterAt::Value(value) if value >= recent => Some(latest.distance(nanos, value)),
            CounterAt::Uncertain(error) if earlier.end >= recent => Some(error),
            _ => None,
        });
        match (latest.counter, distances.max()) {
            (CounterAt::Uncertain(error), Some(distance)) => {
                CounterAt::Uncertain(error.max(distance))
            }
            (CounterAt::Value(_), Some(distance)) if distance > INVERSE_ERROR => {
                CounterAt::Uncertain(distance)
            }
            (counter, _) => counter,
        }
    }

    /// The time up to which the clock repeats times that it showed in the last seconds, because it was set back.
    fn repeated_until(&self) -> Option<i64> {
        let set_back = self.set_back.filter(|set_back| set_back.at >= self.recent(self.until))?;
        Some(set_back.shown)
    }

    /// The counter value [`RECENT`] before `now`.
    fn recent(&self, now: u64) -> u64 {
        let line = &self.newest.line;
        line.counter(line.nanos(now).saturating_sub(RECENT.as_nanos())).unwrap_or(0)
    }
}

impl Match<'_> {
    /// How far the line's time at the counter value `earlier`, when the clock showed `nanos` before, is from `nanos`.
    fn distance(&self, nanos: i64, earlier: u64) -> Span {
        Span::from_nanos(nanos.saturating_sub(self.segment.line.nanos(earlier))).abs()
    }
}
