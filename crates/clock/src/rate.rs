//! What a history tells of its clock's rate.

use std::iter;
use std::num::NonZeroU64;

use crate::anchor::Anchor;
use crate::difference::ORDINARY_SLEW;
use crate::history::{CAPACITY, Entry, History, nanos};
use crate::pieces::WELL_MEASURED;
use crate::ratio::{approx, ceil_nanos};
use crate::{DifferenceClock, Domain};

/// A rate in nanoseconds per tick, and the bound of its error in the same unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) nanos_per_tick: f64,
    pub(crate) error: f64,
}

/// The last minute of a history: what its two ends tell.
struct Baseline {
    ticks: NonZeroU64,
    /// Nanoseconds of `CLOCK_MONOTONIC_RAW`.
    elapsed: NonZeroU64,
    /// The errors of both ends, added up.
    errors: f64,
}

impl Baseline {
    fn between(oldest: &Anchor, newest: &Anchor) -> Option<Self> {
        let elapsed = u64::try_from((newest.monotonic_raw - oldest.monotonic_raw).as_nanos());
        Some(Self {
            ticks: NonZeroU64::new(newest.raw.saturating_sub(oldest.raw))?,
            elapsed: NonZeroU64::new(elapsed.ok()?)?,
            errors: nanos(oldest.error + newest.error),
        })
    }

    fn rate(&self) -> Rate {
        let (ticks, elapsed) = (approx(self.ticks.get()), approx(self.elapsed.get()));
        Rate { nanos_per_tick: elapsed / ticks, error: self.errors / ticks }
    }
}

impl History {
    /// The rate against `CLOCK_MONOTONIC_RAW`, from the longest baseline there is, up to a minute.
    /// The two are one oscillator, so that a longer baseline is a better one.
    pub(crate) fn rate(&self) -> Rate {
        self.baseline().map_or(self.nominal, |baseline| baseline.rate())
    }

    pub(crate) fn difference(&self) -> DifferenceClock {
        let (domain, granularity) = (self.domain, self.granularity);
        if domain == Domain::Monotonic {
            let one = NonZeroU64::MIN;
            return DifferenceClock::new(domain, one, one, self.slew_seen(), granularity);
        }
        let Rate { nanos_per_tick, error } = self.rate();
        let (ticks, elapsed, error) = match self.baseline() {
            Some(baseline) => (baseline.ticks, baseline.elapsed, error.max(self.departure())),
            None => {
                let (ticks, elapsed) = fraction(nanos_per_tick);
                (ticks, elapsed, error)
            }
        };
        DifferenceClock::new(domain, ticks, elapsed, error / nanos_per_tick, granularity)
    }

    fn baseline(&self) -> Option<Baseline> {
        let oldest = self.last_minute().next()?.anchor;
        Baseline::between(&oldest, &self.entries.back()?.anchor)
    }

    /// Of a network card's clock, which is stepped itself, only what came after the last step.
    fn last_minute(&self) -> impl Iterator<Item = &Entry> {
        let newest = self.entries.back().map_or(0, |entry| entry.epoch);
        let before_step = move |entry: &&Entry| self.domain == Domain::Nic && entry.epoch != newest;
        let last = self.entries.iter().skip(self.entries.len().saturating_sub(CAPACITY));
        last.skip_while(before_step)
    }

    /// How far the rate was at some time in the last minute from what it was on the whole, in
    /// nanoseconds per tick: zero if the errors of the anchors explain all that was seen.
    ///
    /// Pairs of anchors are compared that are one, two, four and so on apart. Neighbours show a
    /// sudden change, distant ones a change too small for them.
    fn departure(&self) -> f64 {
        let rate = self.rate();
        let anchors: Vec<Anchor> = self.last_minute().map(|entry| entry.anchor).collect();
        let distances = iter::successors(Some(1), |distance| Some(distance * 2));
        distances
            .take_while(|&distance| distance < anchors.len())
            .flat_map(|distance| anchors.iter().zip(anchors.iter().skip(distance)))
            .map(|(a, b)| {
                let ticks = approx(b.raw - a.raw);
                let elapsed = nanos(b.monotonic_raw - a.monotonic_raw);
                let errors = nanos(a.error + b.error);
                let off = (ticks * rate.nanos_per_tick - elapsed).abs();
                let explained = off <= errors + ticks * rate.error;
                if explained { 0.0 } else { (off + errors) / ticks }
            })
            .fold(0.0, f64::max)
    }

    /// How far a clock of nanoseconds was seen to run from one a tick, as a fraction; what is
    /// ordinary while nothing better is known.
    fn slew_seen(&self) -> f64 {
        let seen: Vec<(f64, f64)> = self
            .pairs()
            .map(|(a, b)| {
                let elapsed = nanos(b.anchor.monotonic_raw - a.anchor.monotonic_raw);
                let gained = approx(b.anchor.raw - a.anchor.raw) - elapsed;
                (gained.abs() / elapsed, nanos(a.anchor.error + b.anchor.error) / elapsed)
            })
            .collect();
        let best = seen.iter().map(|&(_, error)| error).fold(f64::INFINITY, f64::min);
        seen.iter()
            .filter(|&&(_, error)| error <= best * WELL_MEASURED)
            .map(|(slew, error)| slew + error)
            .reduce(f64::max)
            .unwrap_or(ORDINARY_SLEW)
    }
}

/// A rate as a fraction of two integers: nanoseconds in 2^32 ticks.
fn fraction(nanos_per_tick: f64) -> (NonZeroU64, NonZeroU64) {
    const TICKS: NonZeroU64 = NonZeroU64::new(1 << 32).expect("2^32 is not zero");
    let elapsed = ceil_nanos(nanos_per_tick * approx(TICKS.get()));
    let elapsed = u64::try_from(elapsed).ok().and_then(NonZeroU64::new);
    (TICKS, elapsed.unwrap_or(NonZeroU64::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, Time};

    const INTERVAL: u64 = 250_000_000;

    /// The rate's error in ppm after anchors every 250 ms of a counter of nanoseconds, which gains
    /// so much on `CLOCK_MONOTONIC_RAW`.
    fn rate_error_ppm(anchors: u64, gained: impl Fn(u64) -> i64) -> f64 {
        let anchor = |index: u64| {
            let elapsed = (INTERVAL * index).cast_signed();
            Anchor {
                raw: elapsed.strict_add(gained(index)).unsigned_abs(),
                utc: Time::from_nanos(elapsed),
                monotonic_raw: Time::from_nanos(elapsed),
                error: Span::from_nanos(30),
            }
        };
        let nominal = Rate { nanos_per_tick: 1.0, error: ORDINARY_SLEW };
        let mut history = History::new(Domain::Counter, anchor(0), nominal, Span::from_nanos(1));
        (1..anchors).for_each(|index| history.push(anchor(index)));
        assert_eq!(history.steps(), 0);
        history.difference().rate_error_ppm()
    }

    #[test]
    fn a_steady_rate_is_known_from_the_whole_baseline() {
        let read_errors = |index: u64| [0, 25, -25, 10][usize::try_from(index % 4).unwrap()];
        let error = rate_error_ppm(101, read_errors);
        assert!((error - 60.0 / 25_000.0).abs() < 1e-4, "60 ns in 25 s are not {error} ppm");
    }

    #[test]
    fn a_rate_that_changed_is_known_as_far_as_both_rates_are_from_the_mean() {
        // 8 ppm more are 2 us in 250 ms; for three quarters of the time, so that the mean is 6 ppm.
        let error = rate_error_ppm(101, |index| 2_000 * (index.cast_signed() - 25).max(0));
        assert!((6.0..6.5).contains(&error), "{error} ppm");
    }

    #[test]
    fn a_small_change_shows_in_distant_anchors() {
        // 0.04 ppm more are 10 ns in 250 ms, which no neighbours show.
        let error = rate_error_ppm(201, |index| 10 * (index.cast_signed() - 100).max(0));
        assert!((0.02..0.04).contains(&error), "{error} ppm");
    }
}
