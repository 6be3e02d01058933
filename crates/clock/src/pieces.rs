//! The pieces of a timeline: lines through anchors, with error bounds.
//!
//! # Errors
//!
//! Let `e` be the errors of two neighbouring anchors, `L` the ticks between them, `d` the distance of a stamp from
//! the nearer one. If the calibrated clock is linear against UTC, the rate between the anchors is off by up to `w =
//! (e_a + e_b) / L`, and the line through them by up to the larger `e`. It is not quite linear: the oscillator
//! wanders, and a daemon steers the system clock.
//!
//! **Between two anchors** the neighbouring segments show events. Let `u` be the difference between the rates of a
//! neighbour and of the segment, with the neighbour's uncertainty `w_u`. Let one event happen in the segment: before
//! it UTC continues as in the segment before, after it as in the segment after.
//!
//! - A change of rate is visible in `u` on both sides. A rate within `u + w_u + w` of the line's rate moves the line
//!   by up to `d` times that.
//! - If `u` moves the line by more than an anchor's error over the segment, which is `u > w / 2`, there was probably
//!   an event. The anchors do not show whether it was a change of rate, a step, or a slew that began and ended. In
//!   each case the line is off by up to the distance of the neighbours' lines at the far end of the segment, `L * (u
//!   + w_u)`. Smaller events are within the errors of the anchors.
//! - The same holds without a neighbour on one side, as in the newest segment, where a change of rate just before the
//!   newest anchor is hardly visible.
//!
//! So the error is `max(e_a, e_b)` plus `d * (u + w_u + w)` in the first case or `L * (u + w_u)` in the others, with
//! the larger `u + w_u` of the two sides. It does not depend on the rate or the size of the event, nor on earlier
//! events.
//!
//! **Beyond the anchors** the line of the last segment continues, and nothing reveals events. If the rate differs by
//! up to `c` from that of the last segment, the error is `e + d * (w + c)`. The past determines `c`: it is the
//! largest change of rate within three segments of the last minute, [`ORDINARY_SLEW`] until one is measurable, and at
//! least [`ORDINARY_CHANGE`]. In a history longer than a minute only the minutes around the stamp count. The same
//! holds for stamps before the oldest anchor. But if a step or a disruption precedes that anchor, its time is unknown
//! and the error is unbounded.
//!
//! **The assumption** has two parts. First: a segment contains at most one event, and not both neighbours contain one
//! too, nor the segment before the newest one. Two opposite slews cancel out and are invisible. Second: beyond the
//! anchors no change of rate exceeds those of the last minute. An unprecedented slew breaks the bound of stamps that
//! are converted before two more anchors show it, which is half a second, and of stamps before the oldest anchor. The
//! former hold when they are converted again.

use std::num::NonZeroU64;

use crate::anchor::{Anchor, Entry};
use crate::difference::ORDINARY_SLEW;
use crate::piece::{Piece, ROUNDING};
use crate::rate::{CAPACITY, RateEstimator, WELL_MEASURED};
use crate::ratio::{Rate, Ratio, approx, ceil_nanos, nanos};
use crate::{Domain, Span};

/// Change of rate that is always expected, as a fraction.
///
/// Time daemons change the rate of the system clock every few seconds. A settled daemon changes it by some tenths of
/// a ppm, by chrony's frequency or by the exponential approach of the kernel's own loop (adjtimex(2), `ADJ_OFFSET`).
/// An oscillator's temperature adds less. Over a sampling interval of 250 ms this is 250 ns of error.
const ORDINARY_CHANGE: f64 = 1e-6;

/// Line between two neighbouring anchors of one epoch.
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

/// Builder of the pieces of a timeline.
struct Pieces<'a> {
    anchors: RateEstimator<'a>,
    /// True if a step or a disruption at an unknown time precedes the oldest anchor.
    is_truncated: bool,
    /// One for each pair of neighbours; `None` across a step.
    slopes: Vec<Option<Slope>>,
    /// The `c` of the module's text, one for each [`CAPACITY`] slopes.
    changes: Vec<f64>,
}

/// Evidence of a segment's neighbours, in nanoseconds per tick.
enum Neighbours {
    /// At most a change of rate too small to be visible: bound of the error of the segment's rate.
    Consistent(f64),
    /// A probable or possible event: bound of the distance of the neighbours' rates.
    Inconsistent(f64),
    /// No usable neighbours.
    Unknown,
}

/// The pieces of the timeline of these anchors. Before the oldest anchor of a truncated history the error is
/// unbounded.
pub(crate) fn pieces(anchors: RateEstimator<'_>, is_truncated: bool) -> Vec<Piece> {
    Pieces::of(anchors, is_truncated).build()
}

impl<'a> Pieces<'a> {
    fn of(anchors: RateEstimator<'a>, is_truncated: bool) -> Self {
        let slopes: Vec<_> = anchors.pairs().map(|(a, b)| Slope::between(a, b)).collect();
        let nominal = anchors.rate().nanos_per_tick;
        let change_near = |block: usize| {
            let first = block.saturating_sub(1) * CAPACITY;
            let slopes = &slopes[first..slopes.len().min((block + 2) * CAPACITY)];
            let seen = largest_change(slopes).unwrap_or(nominal * ORDINARY_SLEW);
            seen.max(nominal * ORDINARY_CHANGE)
        };
        let changes = (0..=slopes.len() / CAPACITY).map(change_near).collect();
        Self { anchors, is_truncated, slopes, changes }
    }

    fn build(&self) -> Vec<Piece> {
        let entries = self.anchors.entries;
        let mut pieces = Vec::with_capacity(entries.len() + 1);
        if let Some(Entry { anchor: oldest, .. }) = entries.front() {
            let mut piece = self.extrapolated(0, oldest);
            piece.start = 0;
            if self.is_truncated {
                piece.error = Span::MAX;
            }
            pieces.push(piece);
        }
        for (index, (a, b)) in self.anchors.pairs().enumerate() {
            pieces.push(match self.slopes[index] {
                Some(slope) => self.interpolated(index, &a.anchor, &b.anchor, slope),
                None => self.across_step(index, &a.anchor, &b.anchor),
            });
        }
        if let Some(Entry { anchor: newest, .. }) = entries.back() {
            pieces.push(self.extrapolated(self.slopes.len(), newest));
        }
        pieces
    }

    fn interpolated(&self, index: usize, a: &Anchor, b: &Anchor, slope: Slope) -> Piece {
        let error = a.error.max(b.error) + ROUNDING;
        let (constant, error_slope) = match self.neighbours_of(index, slope.rate) {
            _ if self.anchors.domain == Domain::Monotonic => (0.0, Ratio::ZERO),
            Neighbours::Consistent(rate_error) => (0.0, Ratio::at_least(rate_error)),
            Neighbours::Inconsistent(departure) => (departure * approx(b.raw - a.raw), Ratio::ZERO),
            Neighbours::Unknown => (0.0, self.error_slope(index, slope.rate.error)),
        };
        Piece {
            start: a.raw,
            origin: a.raw,
            origin_utc: a.utc,
            slope: slope.ratio,
            length: NonZeroU64::new(b.raw - a.raw),
            error: error + Span::from_nanos(ceil_nanos(constant)),
            error_slope,
        }
    }

    /// Evidence of the neighbours of segment `index`, which has this rate.
    fn neighbours_of(&self, index: usize, rate: Rate) -> Neighbours {
        let neighbour = |index: Option<usize>| {
            let Slope { rate: neighbour, .. } = (*self.slopes.get(index?)?)?;
            let well_measured = neighbour.error <= rate.error * WELL_MEASURED;
            well_measured.then_some(neighbour)
        };
        let change = |neighbour: Rate| (neighbour.nanos_per_tick - rate.nanos_per_tick).abs();
        let departure = |neighbour: Rate| change(neighbour) + neighbour.error;
        // `rate.error` is the error of both anchors over the length; half of it belongs to one.
        let hidden = |neighbour: Rate| change(neighbour) <= rate.error / 2.0;
        match (neighbour(index.checked_sub(1)), neighbour(index.checked_add(1))) {
            (Some(before), Some(after)) => {
                let largest = departure(before).max(departure(after));
                if hidden(before) && hidden(after) {
                    Neighbours::Consistent(largest + rate.error)
                } else {
                    Neighbours::Inconsistent(largest)
                }
            }
            (Some(only), None) | (None, Some(only)) => Neighbours::Inconsistent(departure(only)),
            (None, None) => Neighbours::Unknown,
        }
    }

    /// Line through one anchor, with the slope nearest to position `index`.
    fn extrapolated(&self, index: usize, anchor: &Anchor) -> Piece {
        let slope = self.nearest(index);
        Piece {
            start: anchor.raw,
            origin: anchor.raw,
            origin_utc: anchor.utc,
            slope: slope.ratio,
            length: None,
            error: anchor.error + ROUNDING,
            error_slope: self.error_slope(index, slope.rate.error),
        }
    }

    /// From the last anchor before a step to the first after it. After the step the old line is off by its distance
    /// from the new one, and both drift over the gap.
    fn across_step(&self, index: usize, a: &Anchor, b: &Anchor) -> Piece {
        let old = self.extrapolated(index, a);
        let gap = b.raw - a.raw;
        let drift = i64::try_from(old.error_slope.scale_down(gap)).unwrap_or(i64::MAX);
        let step = b.utc - old.utc(b.raw);
        let error = a.error.max(b.error) + Span::from_nanos(drift) + step.abs() + ROUNDING;
        Piece { error, error_slope: Ratio::ZERO, ..old }
    }

    /// Growth of the error in a segment at position `index`.
    fn error_slope(&self, index: usize, rate_error: f64) -> Ratio {
        match self.anchors.domain {
            // UTC and CLOCK_MONOTONIC differ by a constant between steps (clock_gettime(2)).
            Domain::Monotonic => Ratio::ZERO,
            Domain::Counter | Domain::Realtime | Domain::Nic => {
                Ratio::at_least(rate_error + self.changes[index / CAPACITY])
            }
        }
    }

    /// The last slope before `index`, else the first after it, else the nominal one.
    fn nearest(&self, index: usize) -> Slope {
        if self.anchors.domain == Domain::Monotonic {
            return Slope::exactly(1.0, 0.0);
        }
        let (before, after) = self.slopes.split_at(index);
        let measured = before.iter().rev().chain(after).find_map(|slope| *slope);
        let nominal = self.anchors.nominal;
        measured.unwrap_or_else(|| Slope::exactly(nominal.nanos_per_tick, nominal.error))
    }
}

/// Largest change of rate within three consecutive segments, in nanoseconds per tick. For pairs that are not well
/// measured, only the part that their read errors do not explain. A change within a segment shows partly on either
/// side of it, and fully from one side to the other.
fn largest_change(slopes: &[Option<Slope>]) -> Option<f64> {
    let neighbours = slopes.iter().zip(slopes.iter().skip(1));
    let across = slopes.iter().zip(slopes.iter().skip(2));
    let changes: Vec<(f64, f64)> = neighbours
        .chain(across)
        .filter_map(|(a, b)| Some(((*a)?.rate, (*b)?.rate)))
        .map(|(a, b)| ((a.nanos_per_tick - b.nanos_per_tick).abs(), a.error + b.error))
        .collect();
    let best = changes.iter().map(|&(_, error)| error).fold(f64::INFINITY, f64::min);
    let counted = |&(change, error): &(f64, f64)| {
        if error <= best * WELL_MEASURED { change } else { (change - error).max(0.0) }
    };
    changes.iter().map(counted).reduce(f64::max)
}
