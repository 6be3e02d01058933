//! Estimates of a clock's rate from its history.

use std::collections::VecDeque;
use std::iter;
use std::num::NonZeroU64;

use crate::anchor::{Anchor, Entry};
use crate::difference::ORDINARY_SLEW;
use crate::ratio::{Rate, approx, ceil_nanos, nanos};
use crate::{DifferenceClock, Domain, Span};

/// Anchors of a minute at four per second.
pub(crate) const CAPACITY: usize = 256;

/// A pair of segments is well measured if its uncertainty is at most this many times that of the best pair. This
/// keeps the noise of the first, short segments and of rare bad reads from counting as changes of rate.
pub(crate) const WELL_MEASURED: f64 = 4.0;

/// First and last anchor of the last minute.
struct Baseline {
    ticks: NonZeroU64,
    /// Nanoseconds of `CLOCK_MONOTONIC_RAW`.
    elapsed: NonZeroU64,
    /// Sum of the errors of both ends.
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

/// Estimates of the rate of one domain's clock from its anchors, which ascend by raw value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateEstimator<'a> {
    pub(crate) domain: Domain,
    pub(crate) granularity: Span,
    pub(crate) nominal: Rate,
    pub(crate) entries: &'a VecDeque<Entry>,
}

impl<'a> RateEstimator<'a> {
    /// Rate against `CLOCK_MONOTONIC_RAW` from the longest baseline, up to a minute. Both usually use one oscillator,
    /// so that a longer baseline gives a better estimate.
    pub(crate) fn rate(self) -> Rate {
        self.baseline().map_or(self.nominal, |baseline| baseline.rate())
    }

    pub(crate) fn difference(self) -> DifferenceClock {
        let (domain, granularity) = (self.domain, self.granularity);
        if domain == Domain::Monotonic {
            let one = NonZeroU64::MIN;
            return DifferenceClock::new(domain, one, one, self.observed_slew(), granularity);
        }
        let Rate { nanos_per_tick, error } = self.rate();
        let (ticks, elapsed, error) = match self.baseline() {
            Some(baseline) => (baseline.ticks, baseline.elapsed, error.max(self.max_deviation())),
            None => {
                let (ticks, elapsed) = fraction(nanos_per_tick);
                (ticks, elapsed, error)
            }
        };
        DifferenceClock::new(domain, ticks, elapsed, error / nanos_per_tick, granularity)
    }

    /// Neighbouring anchors.
    pub(crate) fn pairs(self) -> impl Iterator<Item = (&'a Entry, &'a Entry)> {
        self.entries.iter().zip(self.entries.iter().skip(1))
    }

    fn baseline(self) -> Option<Baseline> {
        let oldest = self.last_minute().next()?.anchor;
        Baseline::between(&oldest, &self.entries.back()?.anchor)
    }

    /// The anchors of the last minute; for a network card's clock only those after its last step.
    fn last_minute(self) -> impl Iterator<Item = &'a Entry> {
        let newest = self.entries.back().map_or(0, |entry| entry.epoch);
        let before_step = move |entry: &&Entry| self.domain == Domain::Nic && entry.epoch != newest;
        let last = self.entries.iter().skip(self.entries.len().saturating_sub(CAPACITY));
        last.skip_while(before_step)
    }

    /// Largest deviation of the rate within the last minute from its mean, in nanoseconds per tick; zero if the
    /// errors of the anchors explain all deviations.
    ///
    /// Compares pairs of anchors that are one, two, four and so on apart. Neighbours show a sudden change, distant
    /// ones a change too small for neighbours.
    fn max_deviation(self) -> f64 {
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

    /// Largest observed deviation of a clock of nanoseconds from one per tick, as a fraction; [`ORDINARY_SLEW`]
    /// without an observation.
    fn observed_slew(self) -> f64 {
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

/// A rate as a ratio of two integers: nanoseconds in 2^32 ticks.
fn fraction(nanos_per_tick: f64) -> (NonZeroU64, NonZeroU64) {
    const TICKS: NonZeroU64 = NonZeroU64::new(1 << 32).expect("2^32 is not zero");
    let elapsed = ceil_nanos(nanos_per_tick * approx(TICKS.get()));
    let elapsed = u64::try_from(elapsed).ok().and_then(NonZeroU64::new);
    (TICKS, elapsed.unwrap_or(NonZeroU64::MIN))
}
