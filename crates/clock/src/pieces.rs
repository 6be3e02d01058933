//! The pieces of a timeline: lines through anchors, and how far off they can be.
//!
//! # Errors
//!
//! Let `e` be the errors of two neighbouring anchors, `L` the ticks between them, `d` the distance
//! of a stamp from the nearer one, `r` the rate between them.
//!
//! - If the calibrated clock is linear against UTC, `r` is off by no more than
//!   `(e_a + e_b) / L`, and a line through both anchors by no more than the larger `e` in between.
//! - It is not quite linear: its oscillator wanders, and the system clock is slewed. A rate that
//!   differs by `c` from the mean rate of its segment moves the line by no more than `c * d`.
//!   What `c` can be is taken from the past: the largest change of rate seen between neighbouring
//!   segments of the history, and [`SLEW_LIMIT`] as long as none has been seen.
//!
//! So the error is `max(e_a, e_b) + d * ((e_a + e_b) / L + c)`, with the last segment's line and its
//! newer anchor for what lies beyond, and likewise at the old end.
//!
//! **The assumption** is the second one: that within a segment the rate does not change by more
//! than it was seen to change between segments. A slew that begins without precedent breaks it
//! for the stamps converted before two more anchors have shown the new rate, that is for half a
//! second; the anchors then bracket those stamps and a conversion repeated with them holds again.

use std::num::NonZeroU64;

use crate::anchor::Anchor;
use crate::difference::SLEW_LIMIT;
use crate::history::{Entry, History, Rate, nanos};
use crate::ratio::{Ratio, approx};
use crate::timeline::Piece;
use crate::{Domain, Span};

/// A pair of segments counts as well measured if its uncertainty is at most this many times that
/// of the best pair. It keeps the noise of the first, short segments and of a rare bad read from
/// passing for changes of rate.
pub(crate) const WELL_MEASURED: f64 = 4.0;

/// The line between two neighbouring anchors of one epoch.
#[derive(Clone, Copy, Debug)]
struct Slope {
    ratio: Ratio,
    rate: Rate,
}

impl Slope {
    fn between(a: &Entry, b: &Entry) -> Option<Self> {
        if a.epoch != b.epoch {
            return None;
        }
        let ticks = NonZeroU64::new(b.anchor.raw - a.anchor.raw)?;
        let elapsed = u64::try_from((b.anchor.utc - a.anchor.utc).as_nanos()).ok()?;
        let errors = nanos(a.anchor.error + b.anchor.error);
        let rate = Rate {
            nanos_per_tick: approx(elapsed) / approx(ticks.get()),
            error: errors / approx(ticks.get()),
        };
        Some(Self { ratio: Ratio::of(elapsed, ticks), rate })
    }

    fn exactly(nanos_per_tick: f64, error: f64) -> Self {
        Self { ratio: Ratio::at_least(nanos_per_tick), rate: Rate { nanos_per_tick, error } }
    }
}

/// The pieces of a timeline in the making.
struct Pieces<'a> {
    history: &'a History,
    /// One for each pair of neighbours, `None` across a step.
    slopes: Vec<Option<Slope>>,
    /// The `c` of the module's text.
    change: f64,
}

/// The pieces of the timeline that `history` gives.
pub(crate) fn pieces(history: &History) -> Vec<Piece> {
    Pieces::of(history).build()
}

impl<'a> Pieces<'a> {
    fn of(history: &'a History) -> Self {
        let slopes: Vec<_> = history.pairs().map(|(a, b)| Slope::between(a, b)).collect();
        let nominal = history.rate().nanos_per_tick;
        let change = largest_change(&slopes).unwrap_or(nominal * SLEW_LIMIT);
        Self { history, slopes, change }
    }

    fn build(&self) -> Vec<Piece> {
        let entries = &self.history.entries;
        let mut pieces = Vec::with_capacity(entries.len() + 1);
        if let Some(Entry { anchor: oldest, .. }) = entries.front() {
            let mut piece = self.beyond(0, oldest);
            piece.start = 0;
            if self.history.disrupted {
                piece.error = Span::MAX;
            }
            pieces.push(piece);
        }
        for (index, (a, b)) in self.history.pairs().enumerate() {
            pieces.push(match self.slopes[index] {
                Some(slope) => self.bracketed(&a.anchor, &b.anchor, slope),
                None => self.across_step(index, &a.anchor, &b.anchor),
            });
        }
        if let Some(Entry { anchor: newest, .. }) = entries.back() {
            pieces.push(self.beyond(self.slopes.len(), newest));
        }
        pieces
    }

    fn bracketed(&self, a: &Anchor, b: &Anchor, slope: Slope) -> Piece {
        Piece {
            start: a.raw,
            origin: a.raw,
            origin_utc: a.utc,
            slope: slope.ratio,
            length: NonZeroU64::new(b.raw - a.raw),
            error: a.error.max(b.error) + ROUNDING,
            error_slope: self.error_slope(slope.rate.error),
        }
    }

    /// One anchor's line, with the slope nearest to position `index` of the slopes.
    fn beyond(&self, index: usize, anchor: &Anchor) -> Piece {
        let slope = self.nearest(index);
        Piece {
            start: anchor.raw,
            origin: anchor.raw,
            origin_utc: anchor.utc,
            slope: slope.ratio,
            length: None,
            error: anchor.error + ROUNDING,
            error_slope: self.error_slope(slope.rate.error),
        }
    }

    /// From the last anchor before a step to the first after it. The old line is off by what lies
    /// between it and the new one wherever the step already was, and both drift over the gap.
    fn across_step(&self, index: usize, a: &Anchor, b: &Anchor) -> Piece {
        let old = self.beyond(index, a);
        let gap = b.raw - a.raw;
        let drift = i64::try_from(old.error_slope.scale_down(gap)).unwrap_or(i64::MAX);
        let step = b.utc - old.utc(b.raw);
        let error = a.error.max(b.error) + Span::from_nanos(drift) + step.abs() + ROUNDING;
        Piece { error, error_slope: Ratio::ZERO, ..old }
    }

    fn error_slope(&self, rate_error: f64) -> Ratio {
        match self.history.domain {
            // UTC and CLOCK_MONOTONIC differ by a constant between steps (clock_gettime(2)).
            Domain::Monotonic => Ratio::ZERO,
            Domain::Counter | Domain::Realtime => Ratio::at_least(rate_error + self.change),
        }
    }

    /// The last slope before `index`, or else the first after it, or else the nominal one.
    fn nearest(&self, index: usize) -> Slope {
        if self.history.domain == Domain::Monotonic {
            return Slope::exactly(1.0, 0.0);
        }
        let (before, after) = self.slopes.split_at(index);
        let measured = before.iter().rev().chain(after).find_map(|slope| *slope);
        let nominal = self.history.nominal;
        measured.unwrap_or_else(|| Slope::exactly(nominal.nanos_per_tick, nominal.error))
    }
}

/// A conversion is rounded to a nanosecond, and the growth of its error is rounded down.
const ROUNDING: Span = Span::from_nanos(2);

/// The largest change of rate between neighbouring segments, in nanoseconds per tick; of pairs
/// that are not well measured only what their read errors do not explain.
fn largest_change(slopes: &[Option<Slope>]) -> Option<f64> {
    let changes: Vec<(f64, f64)> = slopes
        .windows(2)
        .filter_map(|pair| Some((pair[0]?.rate, pair[1]?.rate)))
        .map(|(a, b)| ((a.nanos_per_tick - b.nanos_per_tick).abs(), a.error + b.error))
        .collect();
    let best = changes.iter().map(|&(_, error)| error).fold(f64::INFINITY, f64::min);
    let counted = |&(change, error): &(f64, f64)| {
        if error <= best * WELL_MEASURED { change } else { (change - error).max(0.0) }
    };
    changes.iter().map(counted).reduce(f64::max)
}
