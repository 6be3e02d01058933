//! The lines of the wall clock, and their transitions.

use std::num::NonZeroU64;

use crate::piece::{Piece, ROUNDING, on_line};
use crate::ratio::Ratio;
use crate::{Span, Time, Utc};

/// UTC as a straight line over the counter's ticks, from a tick on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The first tick, and UTC there.
    pub(super) start: u64,
    pub(super) utc: Time<Utc>,
    /// Nanoseconds per tick.
    pub(super) slope: Ratio,
    /// The error at the start, and its growth in nanoseconds per tick.
    pub(super) error: Span,
    pub(super) error_slope: Ratio,
}

impl Line {
    /// The line of `target` from `start` on. It does not continue an earlier line.
    pub(super) fn restart(target: &Piece, start: u64) -> Self {
        Self {
            start,
            utc: target.utc(start),
            slope: target.slope,
            error: target.error(start) + ROUNDING,
            error_slope: target.error_slope,
        }
    }

    /// The line that leaves this one at `start` and meets `target` after `horizon` ticks.
    ///
    /// Its slope is at least half of `target`'s, so that time never stands still. Its error is the target's plus its
    /// own distance from the target. That distance is largest at the start, and again if no new line replaces this
    /// one after it has met and crossed the target.
    pub(super) fn towards(&self, target: &Piece, start: u64, horizon: NonZeroU64) -> Self {
        let utc = self.utc(start);
        let rise = target.utc(start.saturating_add(horizon.get())) - utc;
        let least = target.slope.scale(horizon.get()) / 2;
        let rise = u64::try_from(rise.as_nanos()).map_or(least, |rise| rise.max(least));
        let distance = (utc - target.utc(start)).abs();
        let leaving = Ratio::of(distance.as_nanos().unsigned_abs(), horizon);
        Self {
            start,
            utc,
            slope: Ratio::of(rise, horizon),
            error: target.error(start) + distance + ROUNDING,
            error_slope: target.error_slope.plus(leaving),
        }
    }

    /// UTC at a tick; saturates.
    pub(super) fn utc(&self, raw: u64) -> Time<Utc> {
        on_line(self.start, self.utc, self.slope, raw)
    }

    /// The error at a tick; saturates.
    pub(super) fn error(&self, raw: u64) -> Span {
        let growth = self.error_slope.scale(raw.abs_diff(self.start));
        Span::from_nanos(self.error.as_nanos().saturating_add_unsigned(growth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A piece of a counter at about 2.6 GHz.
    fn piece(origin: u64, utc: i64, ppm: f64) -> Piece {
        Piece {
            start: origin,
            origin,
            origin_utc: Time::from_nanos(utc),
            slope: Ratio::at_least((1.0 + ppm * 1e-6) / 2.6),
            length: None,
            error: Span::from_nanos(30),
            error_slope: Ratio::at_least(1e-6),
        }
    }

    const UTC: i64 = 1_790_000_000_000_000_000;
    const HORIZON: NonZeroU64 = NonZeroU64::new(650_000_000).unwrap();

    #[test]
    fn line_meets_its_target_after_the_horizon() {
        let old = Line::restart(&piece(0, UTC, 0.0), 0);
        let target = piece(1_000, UTC + 500, 10.0);
        let line = old.towards(&target, 2_000, HORIZON);
        assert_eq!(line.utc(2_000), old.utc(2_000), "it continues where the old one ends");
        let meeting = 2_000 + HORIZON.get();
        assert_eq!(line.utc(meeting), target.utc(meeting));
    }

    proptest! {
        #[test]
        fn time_ascends_and_target_is_within_the_error(
            offset in -400_000_000_i64..400_000_000,
            ppm in -500.0..500.0_f64,
            start in 0_u64..1 << 40,
            ticks in proptest::collection::vec(0_u64..1 << 32, 1..20),
        ) {
            let old = Line::restart(&piece(0, UTC, 0.0), 0);
            let target = piece(0, UTC + offset, ppm);
            let line = old.towards(&target, start, HORIZON);
            let mut ticks = ticks;
            ticks.sort_unstable();
            let mut before = old.utc(start);
            for raw in ticks.into_iter().map(|tick| start + tick) {
                let now = line.utc(raw);
                prop_assert!(now >= before);
                before = now;
                let off = (now - target.utc(raw)).abs();
                prop_assert!(off + target.error(raw) <= line.error(raw));
            }
        }

        #[test]
        fn arbitrary_ticks_and_targets_do_not_panic(
            origins in any::<[u64; 2]>(), utc in any::<[i64; 2]>(), slopes in any::<[f64; 2]>(),
            start in any::<u64>(), raw in any::<u64>(), horizon in 1_u64..,
        ) {
            let of = |n: usize| Piece {
                slope: Ratio::at_least(slopes[n]),
                ..piece(origins[n], utc[n], 0.0)
            };
            let old = Line::restart(&of(0), origins[0]);
            let line = old.towards(&of(1), start, NonZeroU64::new(horizon).unwrap());
            let _ = (line.utc(raw), line.error(raw));
        }
    }
}
