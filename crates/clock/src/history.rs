//! The anchors of the last minute, and what breaks their line.
//!
//! # Steps
//!
//! A system clock that moved against `CLOCK_MONOTONIC_RAW` by more than slewing explains was
//! stepped. The anchors on either side belong to different epochs, and nothing is interpolated
//! between them: what lies in the gap is placed by the old epoch, with an error that reaches the
//! new one too. A step smaller than what slewing could have done since the last anchor (125 us in
//! 250 ms) is not counted; the error of its segment contains it all the same ([`crate::pieces`]).
//!
//! # Disruptions
//!
//! A counter that ran backwards, or departed from `CLOCK_MONOTONIC_RAW` by more than two
//! oscillators of one machine do, was disrupted: by a suspend, or a migration to another host. Its
//! history says nothing about its future then, and is forgotten; what was stamped before has an
//! unbounded error from then on. A jump of less than 2.5 us in 250 ms is not noticed.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use crate::anchor::Anchor;
use crate::difference::SLEW_LIMIT;
use crate::pieces::{WELL_MEASURED, pieces};
use crate::ratio::{approx, ceil_nanos};
use crate::{DifferenceClock, Domain, Span, Timeline};

/// A minute of anchors at four a second.
pub(crate) const CAPACITY: usize = 256;

/// Anchors closer together than their errors times this say less about the rate than the slew
/// limit does, and are not kept.
const LEAST_BASELINE: f64 = 1.0 / SLEW_LIMIT;

/// How fast the counter and `CLOCK_MONOTONIC_RAW` drift apart at most, as a fraction, beyond what is
/// known of their rates. Mostly they are one oscillator; two of one machine, the HPET's and the
/// TSC's, move against each other with their temperature, by less than 1 ppm in a minute.
const DRIFT_LIMIT: f64 = 10e-6;

/// A rate in nanoseconds per tick, and the bound of its error in the same unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) nanos_per_tick: f64,
    pub(crate) error: f64,
}

/// How an anchor follows the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Uninformative,
    Continues,
    Stepped,
    Disrupted,
}

/// An anchor of the history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) anchor: Anchor,
    /// Counts the steps before this anchor.
    pub(crate) epoch: u32,
}

/// The anchors of one domain, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) domain: Domain,
    granularity: Span,
    /// The rate against `CLOCK_MONOTONIC_RAW` as long as no two anchors tell it.
    pub(crate) nominal: Rate,
    /// Never empty; ascending by raw value.
    pub(crate) entries: VecDeque<Entry>,
    steps: u32,
    /// Whether an older history had to be forgotten.
    pub(crate) disrupted: bool,
    /// Whether the next anchor comes after a disruption that it need not show.
    distrusted: bool,
    /// How many anchors are kept.
    capacity: usize,
}

impl History {
    pub(crate) fn new(domain: Domain, first: Anchor, nominal: Rate, granularity: Span) -> Self {
        let entries = VecDeque::from([Entry { anchor: first, epoch: 0 }]);
        Self {
            domain,
            granularity,
            nominal,
            entries,
            steps: 0,
            disrupted: false,
            distrusted: false,
            capacity: CAPACITY,
        }
    }

    /// The same, to be kept for longer than a minute.
    pub(crate) fn keeping_all(self) -> Self {
        Self { capacity: usize::MAX, ..self }
    }

    /// Whether `new` follows from the anchors so far, be it after a step. `told` says that it is
    /// known to come after a step or a disruption: after a disruption, if it shows no step.
    pub(crate) fn continues_with(&self, new: &Anchor, told: bool) -> bool {
        match self.judge(new) {
            Verdict::Stepped => true,
            Verdict::Continues | Verdict::Uninformative => !told,
            Verdict::Disrupted => false,
        }
    }

    /// Says that the counter was disrupted, whatever the next anchor looks like.
    pub(crate) fn distrust(&mut self) {
        self.distrusted = true;
    }

    pub(crate) fn push(&mut self, anchor: Anchor) {
        let verdict = self.judge(&anchor);
        match verdict {
            Verdict::Uninformative => return,
            Verdict::Continues => {}
            Verdict::Stepped => self.steps += 1,
            Verdict::Disrupted => {
                self.steps += 1;
                self.disrupted = true;
                self.distrusted = false;
                // The counter may run at any rate now, until the next anchor shows it.
                self.nominal.error = self.nominal.nanos_per_tick;
                self.entries.clear();
            }
        }
        if self.entries.len() == self.capacity {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { anchor, epoch: self.steps });
    }

    /// Whether nothing but one anchor is known of the counter since it was disrupted.
    pub(crate) fn is_lost(&self) -> bool {
        self.disrupted && self.entries.len() == 1
    }

    /// Begins again with two anchors of a disrupted counter, from which its rate is known.
    pub(crate) fn begin_again(&mut self, anchors: [Anchor; 2], nominal: Rate, granularity: Span) {
        let [first, second] = anchors;
        self.nominal = nominal;
        self.granularity = granularity;
        self.entries = VecDeque::from([Entry { anchor: first, epoch: self.steps }]);
        self.push(second);
    }

    fn judge(&self, new: &Anchor) -> Verdict {
        let Some(Entry { anchor: last, .. }) = self.entries.back() else {
            return Verdict::Continues;
        };
        if self.distrusted || new.raw < last.raw {
            return Verdict::Disrupted;
        }
        let errors = nanos(last.error + new.error);
        let elapsed = nanos(new.monotonic_raw - last.monotonic_raw);
        if elapsed < -errors {
            return Verdict::Disrupted;
        }
        if elapsed < errors * LEAST_BASELINE || new.raw == last.raw {
            return Verdict::Uninformative;
        }
        let counted = approx(new.raw - last.raw);
        let told = nanos(new.utc - last.utc);
        if self.domain == Domain::Monotonic {
            // It is slewed together with UTC: any difference between the two is a step.
            let stepped = (told - counted).abs() > errors;
            return if stepped { Verdict::Stepped } else { Verdict::Continues };
        }
        let rate = self.rate();
        let possible = elapsed * DRIFT_LIMIT + counted * rate.error + errors;
        if (counted * rate.nanos_per_tick - elapsed).abs() > possible {
            Verdict::Disrupted
        } else if (told - elapsed).abs() > elapsed * SLEW_LIMIT + 2.0 * errors {
            Verdict::Stepped
        } else {
            Verdict::Continues
        }
    }

    /// The rate against `CLOCK_MONOTONIC_RAW`, from the longest baseline there is, up to a minute.
    /// The two are one oscillator, so that a longer baseline is a better one.
    pub(crate) fn rate(&self) -> Rate {
        let Some((ticks, elapsed, errors)) = self.baseline() else {
            return self.nominal;
        };
        let (ticks, elapsed) = (approx(ticks.get()), approx(elapsed.get()));
        Rate { nanos_per_tick: elapsed / ticks, error: errors / ticks }
    }

    /// Ticks and nanoseconds over the last minute of anchors, and the errors of its ends, added up.
    fn baseline(&self) -> Option<(NonZeroU64, NonZeroU64, f64)> {
        let oldest = self.entries.len().saturating_sub(CAPACITY);
        let (oldest, newest) = (self.entries.get(oldest)?.anchor, self.entries.back()?.anchor);
        let elapsed = u64::try_from((newest.monotonic_raw - oldest.monotonic_raw).as_nanos());
        let ticks = newest.raw.saturating_sub(oldest.raw);
        let errors = nanos(oldest.error + newest.error);
        Some((NonZeroU64::new(ticks)?, NonZeroU64::new(elapsed.ok()?)?, errors))
    }

    /// The snapshot that the present anchors give.
    pub(crate) fn timeline(&self) -> Timeline {
        let entries = self.entries.iter().copied().collect();
        Timeline::new(self.domain, pieces(self), self.difference(), self.steps, entries)
    }

    /// Steps and disruptions so far.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    pub(crate) fn difference(&self) -> DifferenceClock {
        let (domain, granularity) = (self.domain, self.granularity);
        if domain == Domain::Monotonic {
            let one = NonZeroU64::MIN;
            return DifferenceClock::new(domain, one, one, self.slew_seen(), granularity);
        }
        let (ticks, elapsed, relative_error) = match self.baseline() {
            Some((ticks, elapsed, errors)) => (ticks, elapsed, errors / approx(elapsed.get())),
            None => {
                let Rate { nanos_per_tick, error } = self.nominal;
                let (ticks, elapsed) = fraction(nanos_per_tick);
                (ticks, elapsed, error / nanos_per_tick)
            }
        };
        DifferenceClock::new(domain, ticks, elapsed, relative_error, granularity)
    }

    /// How far a clock of nanoseconds was seen to run from one a tick, as a fraction; the slew
    /// limit while nothing better is known.
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
            .unwrap_or(SLEW_LIMIT)
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&Entry, &Entry)> {
        self.entries.iter().zip(self.entries.iter().skip(1))
    }
}

/// A rate as a fraction of two integers: nanoseconds in 2^32 ticks.
fn fraction(nanos_per_tick: f64) -> (NonZeroU64, NonZeroU64) {
    const TICKS: NonZeroU64 = NonZeroU64::new(1 << 32).expect("2^32 is not zero");
    let elapsed = ceil_nanos(nanos_per_tick * approx(TICKS.get()));
    let elapsed = u64::try_from(elapsed).ok().and_then(NonZeroU64::new);
    (TICKS, elapsed.unwrap_or(NonZeroU64::MIN))
}

/// A span as a float of nanoseconds.
pub(crate) fn nanos(span: Span) -> f64 {
    let size = approx(span.as_nanos().unsigned_abs());
    if span < Span::ZERO { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    const SECOND: i64 = 1_000_000_000;

    /// A history of a clock of nanoseconds that ran at `rate`, with an anchor each second.
    fn history(domain: Domain, rate: f64, anchors: i64) -> History {
        let nominal = Rate { nanos_per_tick: 1.0, error: SLEW_LIMIT };
        let granularity = Span::from_nanos(1);
        let mut history = History::new(domain, anchor(0, rate, 0), nominal, granularity);
        (1..anchors).for_each(|second| history.push(anchor(second, rate, 0)));
        history
    }

    fn anchor(second: i64, rate: f64, step: i64) -> Anchor {
        let nanos = SECOND * second;
        let slewed = ceil_nanos(approx(nanos.unsigned_abs()) * rate);
        Anchor {
            raw: slewed.unsigned_abs(),
            utc: Time::from_nanos(slewed + step),
            monotonic_raw: Time::from_nanos(nanos),
            error: Span::from_nanos(30),
        }
    }

    #[test]
    fn against_the_monotonic_clock_the_smallest_step_is_noticed() {
        let mut history = history(Domain::Monotonic, 1.0001, 5);
        history.push(anchor(5, 1.0001, 1_000));
        let timeline = history.timeline();
        assert_eq!(timeline.steps(), 1);
        let stamp = timeline.convert(anchor(9, 1.0001, 0).raw);
        assert_eq!(stamp.utc, anchor(9, 1.0001, 1_000).utc, "the offset is constant after it");
        assert!(stamp.error <= Span::from_nanos(32), "and so is the error");
    }

    #[test]
    fn a_bad_read_does_not_tilt_utc_against_the_monotonic_clock() {
        let mut history = history(Domain::Monotonic, 1.0, 5);
        history.push(anchor(5, 1.0, 25));
        let timeline = history.timeline();
        assert_eq!(timeline.steps(), 0, "25 ns are within the errors");
        let later = timeline.convert(anchor(50, 1.0, 0).raw);
        assert_eq!(later.utc, anchor(50, 1.0, 25).utc);
    }

    #[test]
    fn before_a_change_of_rate_was_seen_the_slew_limit_is_assumed() {
        let timeline = history(Domain::Counter, 1.0, 2).timeline();
        let error = timeline.convert(anchor(2, 1.0, 0).raw).error;
        assert!(error >= Span::from_nanos(500_000), "500 ppm of a second, not {error:?}");
    }

    #[test]
    fn a_slewed_clock_of_nanoseconds_says_how_far_it_was_slewed() {
        let error =
            |rate| history(Domain::Monotonic, rate, 5).timeline().difference().rate_error_ppm();
        assert!((30.0..30.2).contains(&error(1.000_03)), "{} ppm", error(1.000_03));
        assert!(error(1.01) > 9_999.0, "also beyond what adjtimex allows");
    }

    #[test]
    fn an_anchor_too_close_to_the_last_for_its_error_is_not_kept() {
        let mut history = history(Domain::Counter, 1.0, 3);
        let mut close = anchor(2, 1.0, 0);
        close.raw += 1_000;
        close.utc = close.utc + Span::from_nanos(1_000);
        close.monotonic_raw = close.monotonic_raw + Span::from_nanos(1_000);
        history.push(close);
        assert_eq!(history.entries.len(), 3);
    }

    #[test]
    fn a_minute_of_anchors_is_kept_and_no_more() {
        let history = history(Domain::Counter, 1.0, 300);
        assert_eq!(history.entries.len(), CAPACITY);
        assert_eq!(history.timeline().steps(), 0);
    }
}
