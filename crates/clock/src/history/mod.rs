//! History: the anchors of the last minute, and detection of steps and disruptions.
//!
//! # Steps
//!
//! The system clock was stepped if it moved against `CLOCK_MONOTONIC_RAW` by more than slewing explains. The anchors
//! on either side belong to different epochs, and nothing is interpolated between them. Stamps in the gap get their
//! time from the old epoch, with an error that includes the new one. A step that ordinary slewing can explain is not
//! counted (125 us in 250 ms, and twice that against a slew in the other direction). The error of its segment
//! includes it ([`crate::pieces`]).
//!
//! A slew faster than ordinary ones is counted as a step at its beginning and as another at its end. In between, the
//! rate of the last segment continues, so that no step is counted, at any rate. A beginning is not counted if it
//! precedes the first anchors, or if the rate changes in ordinary parts.
//!
//! A network card's clock is slewed and stepped too. It is compared with UTC directly, and the steps of both are
//! detected and counted in the same way.
//!
//! # Disruptions
//!
//! A counter was disrupted if it ran backwards, or deviated from `CLOCK_MONOTONIC_RAW` by more than two oscillators of
//! one machine do. The cause is a suspend or a migration to another host. The history cannot predict such a counter and
//! is discarded; earlier stamps then have an unbounded error. A jump of less than 2.5 us in 250 ms is no disruption: it
//! increases only the rate's error ([`crate::rate`]).

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod rates;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::anchor::{Anchor, Entry};
use crate::difference::{MAX_SLEW, ORDINARY_SLEW};
use crate::piece::Piece;
use crate::pieces::pieces;
use crate::rate::{CAPACITY, RateEstimator};
use crate::ratio::{Rate, approx, nanos};
use crate::{DifferenceClock, Domain, Span, Timeline};

/// Min ratio of the distance between two anchors to their errors. Below it, the rate of UTC from the pair has a larger
/// error than the limit of ordinary slewing, and the new anchor is discarded.
const MIN_BASELINE: f64 = 1.0 / ORDINARY_SLEW;

/// Ordinary slewing in the 250 ms between two anchors, in nanoseconds.
const SMALL_STEP: f64 = 125_000.0;

/// Max drift between the counter and `CLOCK_MONOTONIC_RAW`, as a fraction, in addition to the errors of their rates.
///
/// Usually both use one oscillator and do not drift. Two oscillators of one machine, such as those of the HPET and the
/// TSC, wander with their temperature, each by about 0.1 ppm at an even temperature (Veitch, Ridoux and Korada, cited
/// in [`crate::difference`]). The limit is fifty times that, for other environments. It stays below the tens of ppm by
/// which the crystals of two hosts commonly differ.
const DRIFT_LIMIT: f64 = 10e-6;

/// Relation of an anchor to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transition {
    Uninformative,
    Continues,
    Stepped,
    Disrupted,
}

/// The anchors of one domain, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) domain: Domain,
    pub(crate) granularity: Span,
    /// Rate against `CLOCK_MONOTONIC_RAW` until two anchors give an estimate.
    pub(crate) nominal: Rate,
    /// Never empty; ascending by raw value.
    pub(crate) entries: VecDeque<Entry>,
    steps: u32,
    /// True if an older history was discarded.
    pub(crate) disrupted: bool,
    /// True if the next anchor follows a reported disruption.
    disruption_reported: bool,
    /// Max number of anchors.
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
            disruption_reported: false,
            capacity: CAPACITY,
        }
    }

    /// The same history without a limit of its length.
    pub(crate) fn with_unlimited_capacity(self) -> Self {
        Self { capacity: usize::MAX, ..self }
    }

    /// True if `new` continues the anchors so far, possibly after a step. `break_reported` means that a step or a
    /// disruption is known to precede `new`: a disruption, unless `new` shows a step.
    pub(crate) fn continues_with(&self, new: &Anchor, break_reported: bool) -> bool {
        match self.classify(new) {
            Transition::Stepped => true,
            Transition::Continues | Transition::Uninformative => !break_reported,
            Transition::Disrupted => false,
        }
    }

    /// Marks the counter as disrupted, whatever the next anchor shows.
    pub(crate) fn mark_disrupted(&mut self) {
        self.disruption_reported = true;
    }

    pub(crate) fn push(&mut self, anchor: Anchor) {
        match self.classify(&anchor) {
            Transition::Uninformative => return,
            Transition::Continues => {}
            Transition::Stepped => self.steps += 1,
            Transition::Disrupted => {
                self.steps += 1;
                self.disrupted = true;
                self.disruption_reported = false;
                // The counter may now run at any rate until the next anchor.
                self.nominal.error = self.nominal.nanos_per_tick;
                self.entries.clear();
            }
        }
        if self.entries.len() == self.capacity {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { anchor, epoch: self.steps });
    }

    /// True if a step or a disruption at an unknown time precedes the oldest anchor.
    pub(crate) fn is_truncated(&self) -> bool {
        self.disrupted || self.entries.front().is_some_and(|oldest| oldest.epoch != 0)
    }

    /// True if only one anchor exists since the disruption of the counter.
    pub(crate) fn needs_restart(&self) -> bool {
        self.disrupted && self.entries.len() == 1
    }

    /// Restarts with two anchors of a disrupted counter and the rate between them.
    pub(crate) fn restart(&mut self, anchors: [Anchor; 2], nominal: Rate, granularity: Span) {
        let [first, second] = anchors;
        self.nominal = nominal;
        self.granularity = granularity;
        self.entries = VecDeque::from([Entry { anchor: first, epoch: self.steps }]);
        self.push(second);
    }

    fn classify(&self, new: &Anchor) -> Transition {
        let Some(Entry { anchor: last, .. }) = self.entries.back() else {
            return Transition::Continues;
        };
        if self.disruption_reported || new.raw < last.raw {
            return Transition::Disrupted;
        }
        let errors = nanos(last.error + new.error);
        let elapsed = nanos(new.monotonic_raw - last.monotonic_raw);
        if elapsed < -errors {
            return Transition::Disrupted;
        }
        if elapsed < errors * MIN_BASELINE || new.raw == last.raw {
            return Transition::Uninformative;
        }
        let counted = approx(new.raw - last.raw);
        let utc_elapsed = nanos(new.utc - last.utc);
        if self.domain == Domain::Monotonic {
            // CLOCK_MONOTONIC is slewed together with UTC: any difference between the two is a step.
            let stepped = (utc_elapsed - counted).abs() > errors;
            return if stepped { Transition::Stepped } else { Transition::Continues };
        }
        if self.domain == Domain::Nic {
            // A daemon slews and steps this oscillator as it does the system clock's.
            let continues = self.slewing_explains(utc_elapsed, counted, errors);
            return if continues { Transition::Continues } else { Transition::Stepped };
        }
        let rate = self.rate();
        let possible = elapsed * DRIFT_LIMIT + counted * rate.error + errors;
        if (counted * rate.nanos_per_tick - elapsed).abs() > possible {
            Transition::Disrupted
        } else if self.slewing_explains(utc_elapsed, elapsed, errors) {
            Transition::Continues
        } else {
            Transition::Stepped
        }
    }

    /// True if slewing of UTC explains `utc_elapsed` in the time `elapsed` of the reference clock
    /// ([`Self::reference_nanos`]). Both are off by up to `errors`.
    fn slewing_explains(&self, utc_elapsed: f64, elapsed: f64, errors: f64) -> bool {
        let limit = elapsed * ORDINARY_SLEW + 2.0 * errors;
        let gained = utc_elapsed - elapsed;
        if gained.abs() <= limit {
            return true;
        }
        let mut newest = self.entries.iter().rev();
        let segment = newest.next().zip(newest.next());
        // The first segment of an epoch has no known rate; any change but a large step counts as a slew.
        let is_first_segment = segment.is_none_or(|(last, before)| last.epoch != before.epoch);
        if is_first_segment && gained.abs() <= (elapsed * MAX_SLEW).min(SMALL_STEP) + 2.0 * errors {
            return true;
        }
        segment.is_some_and(|(last, before)| {
            let (last, before) = (last.anchor, before.anchor);
            let length = self.reference_nanos(&before, &last);
            let slew = nanos(last.utc - before.utc) / length - 1.0;
            let slew_error = 2.0 * nanos(last.error + before.error) / length;
            let continues = (gained - elapsed * slew).abs() <= limit + elapsed * slew_error;
            slew.abs() <= MAX_SLEW + slew_error && continues
        })
    }

    /// Nanoseconds between two anchors of one epoch on the reference clock of slewing: a network card's clock itself,
    /// `CLOCK_MONOTONIC_RAW` for other domains.
    fn reference_nanos(&self, from: &Anchor, to: &Anchor) -> f64 {
        match self.domain {
            Domain::Nic => approx(to.raw - from.raw),
            Domain::Counter | Domain::Realtime | Domain::Monotonic => {
                nanos(to.monotonic_raw - from.monotonic_raw)
            }
        }
    }

    /// The timeline of the current anchors.
    pub(crate) fn timeline(&self) -> Timeline {
        let entries = self.entries.iter().copied().collect();
        Timeline::new(self.domain, self.pieces(), self.difference(), self.steps, entries)
    }

    /// Number of steps and disruptions so far.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// Rate against `CLOCK_MONOTONIC_RAW`.
    pub(crate) fn rate(&self) -> Rate {
        self.estimator().rate()
    }

    /// Clock for spans between two stamps of the domain.
    pub(crate) fn difference(&self) -> DifferenceClock {
        self.estimator().difference()
    }

    /// The pieces of the timeline of the current anchors.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        pieces(self.estimator(), self.is_truncated())
    }

    fn estimator(&self) -> RateEstimator<'_> {
        let Self { domain, granularity, nominal, ref entries, .. } = *self;
        RateEstimator { domain, granularity, nominal, entries }
    }
}
