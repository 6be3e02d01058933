//! Calibrator: samples a clock against the system's clocks and publishes timelines.

use std::sync::Arc;

use crate::anchor::{Anchor, Bracket};
use crate::difference::ORDINARY_SLEW;
use crate::history::History;
use crate::ratio::{Rate, approx, ceil_nanos, nanos};
use crate::{Clocks, Domain, Span, Timeline};

/// Baseline of the first estimate of the rate.
const FIRST_BASELINE: Span = Span::from_nanos(200_000);

/// Max reads during [`FIRST_BASELINE`]: a clock that has not moved by then is stopped.
const FIRST_READS: u32 = 10_000_000;

/// Max attempts to get a first estimate on a stalled machine.
const FIRST_ATTEMPTS: u32 = 10;

/// Min ratio of the first baseline to the errors of its ends. With it the first rate is accurate to 10 %.
const MIN_FIRST_BASELINE: f64 = 10.0;

/// Error of a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationError {
    /// The readings of the clock do not ascend.
    #[error(
        "cannot calibrate the clock: it runs backwards; choose another source, \"wirestamp clock\" lists them"
    )]
    Backwards,
    /// The readings of the clock, or of the system's clocks, do not change.
    #[error(
        "cannot calibrate the clock: it is stopped; choose another source, \"wirestamp clock\" lists them"
    )]
    Stopped,
}

/// First estimate of a clock's rate, from two joint reads.
struct FirstEstimate {
    brackets: [Bracket; 2],
    /// Rate against `CLOCK_MONOTONIC_RAW`.
    rate: Rate,
}

impl FirstEstimate {
    /// Takes two reads, [`FIRST_BASELINE`] apart, and more if a stalled machine makes them too wide for an estimate.
    /// The clock moves in steps of `step` ticks.
    fn read(clocks: &mut impl Clocks, step: u64) -> Result<Self, CalibrationError> {
        let first = Bracket::read(clocks).ok_or(CalibrationError::Backwards)?;
        let start = clocks.monotonic_raw();
        let mut reads = 0;
        for _ in 0..FIRST_ATTEMPTS {
            let attempt = clocks.monotonic_raw();
            while clocks.monotonic_raw() - attempt < FIRST_BASELINE.max(attempt - start) {
                reads += 1;
                if reads == FIRST_READS {
                    return Err(CalibrationError::Stopped);
                }
            }
            let second = Bracket::read(clocks).ok_or(CalibrationError::Backwards)?;
            if let Some(rate) = first_rate(&first, &second, step) {
                return Ok(Self { brackets: [first, second], rate });
            }
        }
        Err(CalibrationError::Stopped)
    }

    /// The two anchors of a clock with this granularity.
    fn anchors(&self, granularity: Span) -> [Anchor; 2] {
        self.brackets.map(|bracket| bracket.anchor(self.rate, granularity))
    }

    /// Granularity of a clock that moves in steps of `step` ticks.
    fn granularity(&self, step: u64) -> Span {
        let nanos = approx(step) * (self.rate.nanos_per_tick + self.rate.error);
        Span::from_nanos(ceil_nanos(nanos))
    }

    /// Rate against UTC, which may be slewed at the same time.
    fn nominal(&self) -> Rate {
        let Rate { nanos_per_tick, error } = self.rate;
        Rate { nanos_per_tick, error: error + nanos_per_tick * ORDINARY_SLEW }
    }
}

/// Rate between two brackets; none if they are too wide or do not ascend.
fn first_rate(first: &Bracket, second: &Bracket, step: u64) -> Option<Rate> {
    let (ticks, elapsed) = second.since(first);
    let (ticks, elapsed) = (approx(ticks), nanos(elapsed));
    // Each reading is off from the middle of its bracket by up to half a width plus a nanosecond. The clock is off by
    // up to one step, also if both ends of a bracket have the same value.
    let off = approx(first.half_width()) + approx(second.half_width()) + 2.0 * approx(step);
    if elapsed <= 0.0 || ticks <= off * MIN_FIRST_BASELINE {
        return None;
    }
    let nanos_per_tick = elapsed / ticks;
    let highest = (elapsed + 1.0) / (ticks - off);
    Some(Rate { nanos_per_tick, error: highest - nanos_per_tick })
}

/// Calibrates one clock. It has no thread and no clock of its own: the caller calls [`Self::sample`] periodically and
/// injects the clocks.
#[derive(Debug)]
pub struct Calibrator<C> {
    clocks: C,
    step: u64,
    granularity: Span,
    history: History,
    /// True if the clock was disrupted and its rate is not estimated again yet.
    interrupted: bool,
    timeline: Arc<Timeline>,
}

impl<C: Clocks> Calibrator<C> {
    /// Starts the calibration of the clock of `domain` with two samples 200 us apart.
    ///
    /// `step` is the clock's granularity in ticks.
    ///
    /// # Errors
    /// If the clock is stopped or does not ascend.
    pub fn new(domain: Domain, mut clocks: C, step: u64) -> Result<Self, CalibrationError> {
        let estimate = FirstEstimate::read(&mut clocks, step)?;
        let granularity = estimate.granularity(step);
        let [first, second] = estimate.anchors(granularity);
        let mut history = History::new(domain, first, estimate.nominal(), granularity);
        history.push(second);
        let timeline = Arc::new(history.timeline());
        Ok(Self { clocks, step, granularity, history, interrupted: false, timeline })
    }

    /// Takes an anchor and returns the new timeline.
    ///
    /// An unusable read leaves the timeline as it was: the counter ran backwards in all brackets, or the last anchor
    /// is too close for its error. After a disruption of the clock the call takes 200 us more for two new samples.
    pub fn sample(&mut self) -> Arc<Timeline> {
        if !self.interrupted {
            let Some(bracket) = Bracket::read(&mut self.clocks) else {
                return Arc::clone(&self.timeline);
            };
            self.history.push(bracket.anchor(self.history.rate(), self.granularity));
        }
        if self.history.needs_restart() {
            self.interrupted = self.restart().is_err();
        }
        self.timeline = Arc::new(self.history.timeline());
        Arc::clone(&self.timeline)
    }

    /// Estimates the rate of a disrupted clock anew. The rate may have any value, and the width of a bracket in
    /// nanoseconds depends on it. On failure the next sample tries again.
    fn restart(&mut self) -> Result<(), CalibrationError> {
        let estimate = FirstEstimate::read(&mut self.clocks, self.step)?;
        self.granularity = estimate.granularity(self.step);
        let anchors = estimate.anchors(self.granularity);
        self.history.restart(anchors, estimate.nominal(), self.granularity);
        Ok(())
    }

    /// As [`Self::sample`], after a disruption that another source reported, such as the hypervisor that migrated the
    /// machine ([`crate::VmClock`]).
    ///
    /// Discards the earlier anchors, even if the new one seems to continue them. Earlier stamps then have an
    /// unbounded error. The bound of new stamps is wide until further anchors confirm the rate. [`Timeline::steps`]
    /// increases by one. Without a usable read now, all this happens with the first usable one.
    pub fn disrupt(&mut self) -> Arc<Timeline> {
        self.history.mark_disrupted();
        self.interrupted = false;
        self.sample()
    }

    /// The newest timeline.
    #[must_use]
    pub fn timeline(&self) -> Arc<Timeline> {
        Arc::clone(&self.timeline)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{MonotonicRaw, Time, Utc};

    const SECOND: u64 = 1_000_000_000;

    /// Clocks of one oscillator of 1 GHz, each read of which takes 20 ns. Clones share their state.
    #[derive(Clone, Copy)]
    struct Fake<'a> {
        now: &'a Cell<u64>,
        /// Number of counter reads before the values descend, and number of descending reads.
        descending: &'a Cell<(u64, u64)>,
    }

    /// Counter reads for one anchor.
    const READS: u64 = 24;

    impl Fake<'_> {
        fn read(self) -> u64 {
            self.now.update(|now| now + 20);
            self.now.get()
        }
    }

    impl Clocks for Fake<'_> {
        fn raw(&mut self) -> u64 {
            let (ascending, descending) = self.descending.get();
            if ascending > 0 {
                self.descending.set((ascending - 1, descending));
                return self.read();
            }
            self.descending.set((0, descending.saturating_sub(1)));
            self.read() + 1_000 * descending
        }
        fn utc(&mut self) -> Time<Utc> {
            Time::from_nanos(self.read().cast_signed())
        }
        fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
            Time::from_nanos(self.read().cast_signed())
        }
    }

    /// A calibrator after five samples, one per second, and its stamp of the start.
    fn calibrator(clocks: Fake<'_>) -> (Calibrator<Fake<'_>>, u64) {
        let mut calibrator = Calibrator::new(Domain::Counter, clocks, 1).unwrap();
        let early = clocks.now.get();
        for _ in 0..5 {
            clocks.now.update(|now| now + SECOND);
            calibrator.sample();
        }
        (calibrator, early)
    }

    #[test]
    fn reported_disruption_needs_no_evidence_in_anchors() {
        let (now, descending) = (Cell::new(SECOND), Cell::new((0, 0)));
        let (mut calibrator, early) = calibrator(Fake { now: &now, descending: &descending });
        let before = calibrator.timeline();
        assert_eq!(before.steps(), 0);
        assert!(before.convert(early).error < Span::from_nanos(1_000));

        now.update(|now| now + SECOND);
        let after = calibrator.disrupt();
        assert_eq!(after.steps(), 1);
        assert_eq!(after.convert(early).error, Span::MAX);
        assert!(after.convert(now.get() + SECOND).error > Span::from_nanos(500_000), "afresh");

        for _ in 0..3 {
            now.update(|now| now + SECOND);
            calibrator.sample();
        }
        let recovered = calibrator.timeline();
        assert_eq!(recovered.steps(), 1, "counted once");
        assert!(recovered.convert(now.get()).error < Span::from_nanos(1_000));
        assert_eq!(recovered.convert(early).error, Span::MAX);
    }

    /// A counter that moves once per microsecond, by a thousand ticks.
    struct Coarse<'a>(Fake<'a>);

    impl Clocks for Coarse<'_> {
        fn raw(&mut self) -> u64 {
            self.0.raw() / 1_000 * 1_000
        }
        fn utc(&mut self) -> Time<Utc> {
            self.0.utc()
        }
        fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
            self.0.monotonic_raw()
        }
    }

    #[test]
    fn coarse_clock_does_not_yield_precise_anchors() {
        for start in (0..2_000).step_by(37) {
            let (now, descending) = (Cell::new(SECOND + start), Cell::new((0, 0)));
            let fake = Fake { now: &now, descending: &descending };
            let mut calibrator = Calibrator::new(Domain::Counter, Coarse(fake), 1_000).unwrap();
            for _ in 0..3 {
                now.update(|now| now + SECOND / 4);
                calibrator.sample();
            }
            assert_eq!(calibrator.timeline().steps(), 0, "started at {start} ns");
        }
    }

    #[test]
    fn disruption_survives_a_failed_read() {
        let (now, descending) = (Cell::new(SECOND), Cell::new((0, 0)));
        let (mut calibrator, early) = calibrator(Fake { now: &now, descending: &descending });
        descending.set((0, READS));
        assert_eq!(calibrator.disrupt().steps(), 0, "no read of eight was usable");
        now.update(|now| now + SECOND);
        let after = calibrator.sample();
        assert_eq!(after.steps(), 1);
        assert_eq!(after.convert(early).error, Span::MAX);
    }
    #[test]
    fn disruption_is_counted_once_despite_failed_restarts() {
        let (now, descending) = (Cell::new(SECOND), Cell::new((0, 0)));
        let (mut calibrator, early) = calibrator(Fake { now: &now, descending: &descending });
        descending.set((READS, READS));
        assert_eq!(calibrator.disrupt().steps(), 1, "the restart failed");
        for _ in 0..2 {
            now.update(|now| now + SECOND);
            descending.set((0, READS));
            assert_eq!(calibrator.sample().steps(), 1);
        }
        descending.set((READS, READS));
        assert_eq!(calibrator.disrupt().steps(), 2, "another one");
        for _ in 0..4 {
            now.update(|now| now + SECOND);
            calibrator.sample();
        }
        let recovered = calibrator.timeline();
        assert_eq!(recovered.steps(), 2);
        assert!(recovered.convert(now.get()).error < Span::from_nanos(1_000));
        assert_eq!(recovered.convert(early).error, Span::MAX);
    }
}
