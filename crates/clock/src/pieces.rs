//! The pieces of a timeline: lines through anchors, and how far off they can be.
//!
//! # Errors
//!
//! Let `e` be the errors of two neighbouring anchors, `L` the ticks between them, `d` the distance
//! of a stamp from the nearer one. If the calibrated clock is linear against UTC, the rate between
//! them is off by no more than `w = (e_a + e_b) / L`, and the line through them by no more than the
//! larger `e`. It is not quite linear: the oscillator wanders, and the system clock is steered.
//!
//! **Between two anchors** the neighbouring segments tell what happened. Let `u` be how far the
//! rate of a neighbour, known to within its own `w_u`, is from the segment's, and let something
//! happen in the segment at one instant: before it UTC went on as in the segment before, after it
//! as in the segment after.
//!
//! - A change of rate shows in `u` on both sides. A rate that is within `u + w_u + w` of the line's
//!   moves it by no more than `d` times that.
//! - If `u` moves the line by more than an anchor's error from one end of the segment to the other,
//!   which is `u > w / 2`, then something seems to have happened, and the anchors do not tell
//!   whether it was a change of rate, a step, or a slew that came and went. Whichever it was, the
//!   line is off by no more than one of the neighbours' lines is at the far end of the segment,
//!   `L * (u + w_u)`. Less than that is in the errors of the anchors.
//! - That is also what holds if there is no neighbour on one side yet, as in the newest segment,
//!   where a change of rate just before the newest anchor hardly shows.
//!
//! So the error is `max(e_a, e_b)` and the `d * (u + w_u + w)` of the one case or the
//! `L * (u + w_u)` of the others, with the larger `u + w_u` of the two sides. How fast or how far
//! the system clock was moved does not matter, nor whether it was before.
//!
//! **Beyond the anchors** the line of the last segment goes on, and nothing tells what happens
//! meanwhile. If the rate does not differ by more than `c` from that of the last segment, the
//! error is `e + d * (w + c)`. What `c` can be is taken from the past: the largest change of rate
//! seen within three segments of the last minute, [`ORDINARY_SLEW`] as long as none could be seen,
//! and never less than [`ORDINARY_CHANGE`]. Where the history is longer than a minute, only the
//! minutes around the stamp count. The same goes for stamps from before the oldest anchor, except
//! where a step or a disruption came before it: where it was is forgotten, and the error unbounded.
//!
//! **The assumption** is twofold. In a segment something happens once, and not in both neighbours
//! too, nor, as long as the segment is the newest, in the one before it: two slews against each
//! other cancel out and do not show. And what lies beyond the anchors brings no change of rate that
//! the last minute knows nothing like: a slew without precedent breaks the bound of the stamps that
//! are converted before two more anchors have shown it, that is for half a second, and of those
//! from before the oldest anchor. The former, converted again, hold.

use std::num::NonZeroU64;

use crate::anchor::Anchor;
use crate::difference::ORDINARY_SLEW;
use crate::history::{CAPACITY, Entry, History, nanos};
use crate::rate::Rate;
use crate::ratio::{Ratio, approx, ceil_nanos};
use crate::timeline::{Piece, ROUNDING};
use crate::{Domain, Span};

/// A pair of segments counts as well measured if its uncertainty is at most this many times that
/// of the best pair. It keeps the noise of the first, short segments and of a rare bad read from
/// passing for changes of rate.
pub(crate) const WELL_MEASURED: f64 = 4.0;

/// The change of rate that is always expected, as a fraction.
///
/// Time daemons steer the system clock by changing its rate every few seconds, and a daemon that
/// has settled changes it by some tenths of a ppm, be it chrony's frequency or the exponential
/// approach of the kernel's own loop (adjtimex(2), `ADJ_OFFSET`). An oscillator's temperature adds
/// less. Over a sampling interval of 250 ms this is 250 ns of error.
const ORDINARY_CHANGE: f64 = 1e-6;

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
    /// The `c` of the module's text, one for each [`CAPACITY`] slopes.
    changes: Vec<f64>,
}

/// What a segment's neighbours say about it, in nanoseconds per tick.
enum Around {
    /// At most a change of rate too small to show: the line's rate is off by no more than this.
    Calm(f64),
    /// Something seems to have happened, or may have: the neighbours' rates are within this.
    Eventful(f64),
    /// It has no neighbours that could say anything.
    Unknown,
}

/// The pieces of the timeline that `history` gives.
pub(crate) fn pieces(history: &History) -> Vec<Piece> {
    Pieces::of(history).build()
}

impl<'a> Pieces<'a> {
    fn of(history: &'a History) -> Self {
        let slopes: Vec<_> = history.pairs().map(|(a, b)| Slope::between(a, b)).collect();
        let nominal = history.rate().nanos_per_tick;
        let around = |block: usize| {
            let first = block.saturating_sub(1) * CAPACITY;
            let slopes = &slopes[first..slopes.len().min((block + 2) * CAPACITY)];
            let seen = largest_change(slopes).unwrap_or(nominal * ORDINARY_SLEW);
            seen.max(nominal * ORDINARY_CHANGE)
        };
        let changes = (0..=slopes.len() / CAPACITY).map(around).collect();
        Self { history, slopes, changes }
    }

    fn build(&self) -> Vec<Piece> {
        let entries = &self.history.entries;
        let mut pieces = Vec::with_capacity(entries.len() + 1);
        if let Some(Entry { anchor: oldest, .. }) = entries.front() {
            let mut piece = self.beyond(0, oldest);
            piece.start = 0;
            if self.history.is_cut_off() {
                piece.error = Span::MAX;
            }
            pieces.push(piece);
        }
        for (index, (a, b)) in self.history.pairs().enumerate() {
            pieces.push(match self.slopes[index] {
                Some(slope) => self.bracketed(index, &a.anchor, &b.anchor, slope),
                None => self.across_step(index, &a.anchor, &b.anchor),
            });
        }
        if let Some(Entry { anchor: newest, .. }) = entries.back() {
            pieces.push(self.beyond(self.slopes.len(), newest));
        }
        pieces
    }

    fn bracketed(&self, index: usize, a: &Anchor, b: &Anchor, slope: Slope) -> Piece {
        let error = a.error.max(b.error) + ROUNDING;
        let (constant, error_slope) = match self.around(index, slope.rate) {
            _ if self.history.domain == Domain::Monotonic => (0.0, Ratio::ZERO),
            Around::Calm(rate_error) => (0.0, Ratio::at_least(rate_error)),
            Around::Eventful(departure) => (departure * approx(b.raw - a.raw), Ratio::ZERO),
            Around::Unknown => (0.0, self.error_slope(index, slope.rate.error)),
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

    /// What the neighbours of segment `index`, of the given rate, say about it.
    fn around(&self, index: usize, rate: Rate) -> Around {
        let neighbour = |index: Option<usize>| {
            let Slope { rate: neighbour, .. } = (*self.slopes.get(index?)?)?;
            let well_measured = neighbour.error <= rate.error * WELL_MEASURED;
            well_measured.then_some(neighbour)
        };
        let change = |neighbour: Rate| (neighbour.nanos_per_tick - rate.nanos_per_tick).abs();
        let departure = |neighbour: Rate| change(neighbour) + neighbour.error;
        // The error of both anchors over the length, hence half of it for the one.
        let hidden = |neighbour: Rate| change(neighbour) <= rate.error / 2.0;
        match (neighbour(index.checked_sub(1)), neighbour(index.checked_add(1))) {
            (Some(before), Some(after)) => {
                let largest = departure(before).max(departure(after));
                if hidden(before) && hidden(after) {
                    Around::Calm(largest + rate.error)
                } else {
                    Around::Eventful(largest)
                }
            }
            (Some(only), None) | (None, Some(only)) => Around::Eventful(departure(only)),
            (None, None) => Around::Unknown,
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
            error_slope: self.error_slope(index, slope.rate.error),
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

    /// The growth of the error in a segment at position `index` of the slopes.
    fn error_slope(&self, index: usize, rate_error: f64) -> Ratio {
        match self.history.domain {
            // UTC and CLOCK_MONOTONIC differ by a constant between steps (clock_gettime(2)).
            Domain::Monotonic => Ratio::ZERO,
            Domain::Counter | Domain::Realtime | Domain::Nic => {
                Ratio::at_least(rate_error + self.changes[index / CAPACITY])
            }
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

/// The largest change of rate within three segments in a row, in nanoseconds per tick; of pairs
/// that are not well measured only what their read errors do not explain. A change within a
/// segment shows in part on either side of it, and wholly from one side to the other.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    const SECOND: u64 = 1_000_000_000;

    /// A history of a clock of nanoseconds with an anchor each second, where UTC leads by so much.
    fn history(leads: &[i64]) -> History {
        let anchor = |second: usize| {
            let raw = SECOND * u64::try_from(second).unwrap();
            Anchor {
                raw,
                utc: Time::from_nanos(raw.cast_signed() + leads[second]),
                monotonic_raw: Time::from_nanos(raw.cast_signed()),
                error: Span::from_nanos(30),
            }
        };
        let nominal = Rate { nanos_per_tick: 1.0, error: ORDINARY_SLEW };
        let mut history = History::new(Domain::Counter, anchor(0), nominal, Span::from_nanos(1));
        (1..leads.len()).for_each(|second| history.push(anchor(second)));
        history
    }

    fn error(leads: &[i64], at: u64) -> i64 {
        history(leads).timeline().convert(at).error.as_nanos()
    }

    #[test]
    fn an_ordinary_correction_is_always_expected() {
        let after_a_second = error(&[0; 8], 8 * SECOND);
        assert!((1_000..1_200).contains(&after_a_second), "{after_a_second} ns");
    }

    #[test]
    fn a_change_once_seen_is_expected_wholly_even_if_it_fell_into_two_segments() {
        let after_a_second = error(&[0, 0, 0, 5_000, 15_000, 25_000], 6 * SECOND);
        assert!(after_a_second >= 10_000, "{after_a_second} ns");
    }

    #[test]
    fn a_step_inside_a_segment_is_inside_its_error_and_in_no_other() {
        let leads = [0, 0, 0, 400_000, 400_000, 400_000, 400_000];
        for at in [1, SECOND / 2, SECOND - 1] {
            assert!(error(&leads, 2 * SECOND + at) >= 400_000);
        }
        assert!(error(&leads, 4 * SECOND + SECOND / 2) < 200, "far from the step");
    }

    #[test]
    fn where_a_forgotten_step_was_nobody_knows() {
        let leads = |anchors: usize| -> Vec<i64> {
            (0..anchors).map(|second| if second < 3 { 0 } else { 10_000_000 }).collect()
        };
        let before_the_step = SECOND * 3 / 2;
        assert!(error(&leads(CAPACITY), before_the_step) < 1_000);
        assert_eq!(error(&leads(CAPACITY + 4), before_the_step), i64::MAX);
        assert!(error(&[0; CAPACITY + 4], before_the_step) < 10_000, "there was none");
    }

    #[test]
    fn what_happens_just_before_the_newest_anchor_is_inside_the_error() {
        assert!(error(&[0, 0, 0, 0, 100], 4 * SECOND - 1) >= 130);
    }
}
