//! The calibrator: samples a clock against the system's clocks and publishes what follows.

use std::sync::Arc;

use crate::anchor::{Anchor, Bracket};
use crate::difference::ORDINARY_SLEW;
use crate::history::{History, nanos};
use crate::rate::Rate;
use crate::ratio::{approx, ceil_nanos};
use crate::{Clocks, Domain, Span, Timeline};

/// The baseline of the first estimate of the rate.
const FIRST_BASELINE: Span = Span::from_nanos(200_000);

/// Reads that [`FIRST_BASELINE`] may take: a clock that has not moved by then stands still.
const FIRST_READS: u32 = 10_000_000;

/// How often that is tried: on a machine so stalled that this is not enough, time cannot be told.
const FIRST_ATTEMPTS: u32 = 10;

/// The first baseline is at least so many times what its ends can be off by, so that the first rate
/// is known to a tenth.
const LEAST_FIRST_BASELINE: f64 = 10.0;

/// Why a clock cannot be calibrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationError {
    /// The readings of the clock do not ascend.
    #[error("the clock to calibrate runs backwards: choose another (`wirestamp clock` lists them)")]
    Backwards,
    /// The readings of the clock, or of the system's, do not change.
    #[error("the clock to calibrate stands still: choose another (`wirestamp clock` lists them)")]
    Stopped,
}

/// Two joint reads of a clock of which nothing is known yet, and what they tell.
struct Beginning {
    brackets: [Bracket; 2],
    /// Against `CLOCK_MONOTONIC_RAW`.
    rate: Rate,
}

impl Beginning {
    /// Takes two reads, [`FIRST_BASELINE`] apart, and more while a stalled machine makes them too
    /// wide to tell the rate. The clock moves in steps of `step` ticks.
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

    /// The two anchors, of a clock that moves by its granularity.
    fn anchors(&self, granularity: Span) -> [Anchor; 2] {
        self.brackets.map(|bracket| bracket.anchor(self.rate, granularity))
    }

    /// The granularity of a clock that moves in steps of `step` ticks.
    fn granularity(&self, step: u64) -> Span {
        let nanos = approx(step) * (self.rate.nanos_per_tick + self.rate.error);
        Span::from_nanos(ceil_nanos(nanos))
    }

    /// The rate against UTC, which may be slewed meanwhile.
    fn nominal(&self) -> Rate {
        let Rate { nanos_per_tick, error } = self.rate;
        Rate { nanos_per_tick, error: error + nanos_per_tick * ORDINARY_SLEW }
    }
}

/// The rate that two brackets show, unless they are too wide, or do not ascend.
fn first_rate(first: &Bracket, second: &Bracket, step: u64) -> Option<Rate> {
    let (ticks, elapsed) = second.since(first);
    let (ticks, elapsed) = (approx(ticks), nanos(elapsed));
    // Each reading is off from the middle of its bracket by half a width, and by a nanosecond; and
    // the clock is off from its last step, also where both ends of a bracket show the same one.
    let off = approx(first.half_width()) + approx(second.half_width()) + 2.0 * approx(step);
    if elapsed <= 0.0 || ticks <= off * LEAST_FIRST_BASELINE {
        return None;
    }
    let nanos_per_tick = elapsed / ticks;
    let highest = (elapsed + 1.0) / (ticks - off);
    Some(Rate { nanos_per_tick, error: highest - nanos_per_tick })
}

/// Calibrates one clock. It has no thread and no clock of its own: somebody calls
/// [`Self::sample`] from time to time, and the clocks are injected.
#[derive(Debug)]
pub struct Calibrator<C> {
    clocks: C,
    step: u64,
    granularity: Span,
    history: History,
    /// Whether the clock was disrupted and could not be begun again yet.
    interrupted: bool,
    timeline: Arc<Timeline>,
}

impl<C: Clocks> Calibrator<C> {
    /// Begins to calibrate the clock of `domain`, with two samples 200 us apart.
    ///
    /// `step` is the step that the clock moves in, in its own ticks: its granularity.
    ///
    /// # Errors
    /// If the clock stands still or does not ascend.
    pub fn new(domain: Domain, mut clocks: C, step: u64) -> Result<Self, CalibrationError> {
        let beginning = Beginning::read(&mut clocks, step)?;
        let granularity = beginning.granularity(step);
        let [first, second] = beginning.anchors(granularity);
        let mut history = History::new(domain, first, beginning.nominal(), granularity);
        history.push(second);
        let timeline = Arc::new(history.timeline());
        Ok(Self { clocks, step, granularity, history, interrupted: false, timeline })
    }

    /// Takes an anchor and returns the snapshot that it leads to.
    ///
    /// A read that cannot be used (the counter ran backwards in all brackets, or the last anchor
    /// is too close for its error) leaves the snapshot as it was. One that shows a disruption of
    /// the clock takes 200 us more, for two samples as at the beginning.
    pub fn sample(&mut self) -> Arc<Timeline> {
        if !self.interrupted {
            let Some(bracket) = Bracket::read(&mut self.clocks) else {
                return Arc::clone(&self.timeline);
            };
            self.history.push(bracket.anchor(self.history.rate(), self.granularity));
        }
        if self.history.is_lost() {
            self.interrupted = self.begin_again().is_err();
        }
        self.timeline = Arc::new(self.history.timeline());
        Arc::clone(&self.timeline)
    }

    /// Learns the rate of a disrupted clock anew: it may have become any other, and the width of a
    /// bracket in nanoseconds depends on it. Where that fails, the next sample tries again.
    fn begin_again(&mut self) -> Result<(), CalibrationError> {
        let beginning = Beginning::read(&mut self.clocks, self.step)?;
        self.granularity = beginning.granularity(self.step);
        let anchors = beginning.anchors(self.granularity);
        self.history.begin_again(anchors, beginning.nominal(), self.granularity);
        Ok(())
    }

    /// As [`Self::sample`], after a disruption of the clock that somebody else knows of, such as
    /// the hypervisor that moved the machine ([`crate::VmClock`]).
    ///
    /// What the earlier anchors say is forgotten, even if the new one seems to follow from them:
    /// stamps taken before have an unbounded error from then on, and the bound of new ones is wide
    /// until further anchors show the rate again. [`Timeline::steps`] counts one more. If no usable
    /// read is had now, all this comes with the first that is.
    pub fn disrupt(&mut self) -> Arc<Timeline> {
        self.history.distrust();
        self.interrupted = false;
        self.sample()
    }

    /// The newest snapshot.
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

    /// Clocks of one oscillator of 1 GHz, each read of which takes 20 ns. Copies show the same.
    #[derive(Clone, Copy)]
    struct Fake<'a> {
        now: &'a Cell<u64>,
        /// After how many reads of the counter how many come out in descending order.
        descending: &'a Cell<(u64, u64)>,
    }

    /// The reads of the counter for one anchor.
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

    /// A calibrator that has sampled each second for five seconds, and its stamp of the start.
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
    fn a_disruption_that_no_anchor_shows_is_believed() {
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
        assert_eq!(recovered.steps(), 1, "once is enough");
        assert!(recovered.convert(now.get()).error < Span::from_nanos(1_000));
        assert_eq!(recovered.convert(early).error, Span::MAX);
    }

    /// A counter that moves once in a microsecond, by a thousand ticks.
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
    fn a_bracket_within_one_step_of_the_clock_does_not_pass_for_a_precise_one() {
        for start in (0..2_000).step_by(37) {
            let (now, descending) = (Cell::new(SECOND + start), Cell::new((0, 0)));
            let fake = Fake { now: &now, descending: &descending };
            let mut calibrator = Calibrator::new(Domain::Counter, Coarse(fake), 1_000).unwrap();
            for _ in 0..3 {
                now.update(|now| now + SECOND / 4);
                calibrator.sample();
            }
            assert_eq!(calibrator.timeline().steps(), 0, "begun at {start} ns");
        }
    }

    #[test]
    fn a_disruption_is_not_lost_with_a_read_that_fails() {
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
    fn a_disruption_is_counted_once_however_often_it_takes_to_begin_again() {
        let (now, descending) = (Cell::new(SECOND), Cell::new((0, 0)));
        let (mut calibrator, early) = calibrator(Fake { now: &now, descending: &descending });
        descending.set((READS, READS));
        assert_eq!(calibrator.disrupt().steps(), 1, "and then not begun again");
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
