//! The anchors of the last minute, and what breaks their line.
//!
//! # Steps
//!
//! A system clock that moved against `CLOCK_MONOTONIC_RAW` by more than slewing explains was
//! stepped. The anchors on either side belong to different epochs, and nothing is interpolated
//! between them: what lies in the gap is placed by the old epoch, with an error that reaches the
//! new one too. A step that ordinary slewing could have made since the last anchor (125 us in
//! 250 ms, and twice that against a slew the other way) is not counted; the error of its segment
//! contains it all the same ([`crate::pieces`]).
//!
//! A slew faster than the ordinary is counted as a step where it begins, and as another where it
//! ends. In between the rate of the last segment goes on, which is no step however fast it is. Nor
//! is a beginning counted that no anchor saw, at the start, or that comes about in ordinary parts.
//!
//! A network card's clock is slewed and stepped too, so that it is compared with UTC directly: what
//! either of them did against the other is told apart in the same way, and counted alike.
//!
//! # Disruptions
//!
//! A counter that ran backwards, or departed from `CLOCK_MONOTONIC_RAW` by more than two
//! oscillators of one machine do, was disrupted: by a suspend, or a migration to another host. Its
//! history says nothing about its future then, and is forgotten; what was stamped before has an
//! unbounded error from then on. A jump of less than 2.5 us in 250 ms is no disruption: it shows in
//! the rate's error only ([`crate::rate`]).

use std::collections::VecDeque;

use crate::anchor::Anchor;
use crate::difference::{FASTEST_SLEW, ORDINARY_SLEW};
use crate::pieces::pieces;
use crate::rate::Rate;
use crate::ratio::approx;
use crate::{Domain, Span, Timeline};

/// A minute of anchors at four a second.
pub(crate) const CAPACITY: usize = 256;

/// Anchors closer together than their errors times this tell the rate of UTC less well than the
/// limit of ordinary slewing does, and are not kept.
const LEAST_BASELINE: f64 = 1.0 / ORDINARY_SLEW;

/// What ordinary slewing comes to in the 250 ms between two anchors, in nanoseconds.
const SMALL_STEP: f64 = 125_000.0;

/// How fast the counter and `CLOCK_MONOTONIC_RAW` drift apart at most, as a fraction, beyond what is
/// known of their rates.
///
/// Mostly they are one oscillator, and do not drift at all. Two of one machine, as the HPET's and the
/// TSC's can be, wander with their temperature, each by some 0.1 ppm where that is even (Veitch,
/// Ridoux and Korada, cited in [`crate::difference`]). The limit leaves fifty times that for other
/// places, and stays below the tens of ppm by which the crystals of the two hosts of a migration
/// commonly differ.
const DRIFT_LIMIT: f64 = 10e-6;

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
    pub(crate) granularity: Span,
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

    /// Whether something came before the oldest anchor of which it is not known when.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.disrupted || self.entries.front().is_some_and(|oldest| oldest.epoch != 0)
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
        if self.domain == Domain::Nic {
            // An oscillator of its own, which a daemon slews and steps as it does the system clock's.
            let continues = self.slewing_explains(told, counted, errors);
            return if continues { Verdict::Continues } else { Verdict::Stepped };
        }
        let rate = self.rate();
        let possible = elapsed * DRIFT_LIMIT + counted * rate.error + errors;
        if (counted * rate.nanos_per_tick - elapsed).abs() > possible {
            Verdict::Disrupted
        } else if self.slewing_explains(told, elapsed, errors) {
            Verdict::Continues
        } else {
            Verdict::Stepped
        }
    }

    /// Whether UTC can have been slewed by `told` while `elapsed` passed on the clock that it is
    /// slewed against ([`Self::passed`]), both of which are off by `errors` at most.
    fn slewing_explains(&self, told: f64, elapsed: f64, errors: f64) -> bool {
        let limit = elapsed * ORDINARY_SLEW + 2.0 * errors;
        let gained = told - elapsed;
        if gained.abs() <= limit {
            return true;
        }
        let mut newest = self.entries.iter().rev();
        let segment = newest.next().zip(newest.next());
        // Where an epoch begins no rate is known, and whatever is no large step may be a slew.
        let begins = segment.is_none_or(|(last, before)| last.epoch != before.epoch);
        if begins && gained.abs() <= (elapsed * FASTEST_SLEW).min(SMALL_STEP) + 2.0 * errors {
            return true;
        }
        segment.is_some_and(|(last, before)| {
            let (last, before) = (last.anchor, before.anchor);
            let length = self.passed(&before, &last);
            let slew = nanos(last.utc - before.utc) / length - 1.0;
            let slew_error = 2.0 * nanos(last.error + before.error) / length;
            let goes_on = (gained - elapsed * slew).abs() <= limit + elapsed * slew_error;
            slew.abs() <= FASTEST_SLEW + slew_error && goes_on
        })
    }

    /// The nanoseconds between two anchors of one epoch on the clock that slewing is against: a network
    /// card's itself, and for others `CLOCK_MONOTONIC_RAW`.
    fn passed(&self, from: &Anchor, to: &Anchor) -> f64 {
        match self.domain {
            Domain::Nic => approx(to.raw - from.raw),
            Domain::Counter | Domain::Realtime | Domain::Monotonic => {
                nanos(to.monotonic_raw - from.monotonic_raw)
            }
        }
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

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&Entry, &Entry)> {
        self.entries.iter().zip(self.entries.iter().skip(1))
    }
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
    use crate::ratio::ceil_nanos;

    const SECOND: i64 = 1_000_000_000;

    /// A history of a clock of nanoseconds that ran at `rate`, with an anchor each second.
    fn history(domain: Domain, rate: f64, anchors: i64) -> History {
        let nominal = Rate { nanos_per_tick: 1.0, error: ORDINARY_SLEW };
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
    fn a_step_of_a_cards_clock_is_not_taken_for_a_rate() {
        let mut history = history(Domain::Nic, 1.00002, 5);
        let stepped = |second| Anchor {
            raw: anchor(second, 1.00002, 0).raw + 37_000_000_000,
            ..anchor(second, 1.0, 0)
        };
        (5..8).for_each(|second| history.push(stepped(second)));
        let timeline = history.timeline();
        assert_eq!(timeline.steps(), 1);
        let difference = timeline.difference();
        assert!((difference.frequency_hz() - 1_000_020_000.0).abs() < 100.0);
        assert!(difference.rate_error_ppm() < 0.1, "{} ppm", difference.rate_error_ppm());
        assert_eq!(timeline.convert(stepped(6).raw).utc, stepped(6).utc);
        assert_eq!(timeline.convert(anchor(2, 1.00002, 0).raw).utc, anchor(2, 1.00002, 0).utc);
    }

    #[test]
    fn before_a_change_of_rate_was_seen_an_ordinary_slew_is_expected() {
        let timeline = history(Domain::Counter, 1.0, 2).timeline();
        let error = timeline.convert(anchor(2, 1.0, 0).raw).error;
        assert!(error >= Span::from_nanos(500_000), "500 ppm of a second, not {error:?}");
    }

    #[test]
    fn a_slewed_clock_of_nanoseconds_says_how_far_it_was_slewed() {
        let error =
            |rate| history(Domain::Monotonic, rate, 5).timeline().difference().rate_error_ppm();
        assert!((30.0..30.2).contains(&error(1.000_03)), "{} ppm", error(1.000_03));
        assert!(error(1.01) > 9_999.0, "also where it is slewed faster than usual");
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
