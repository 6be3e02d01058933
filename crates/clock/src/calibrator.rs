//! The calibrator: samples a clock against the system's clocks and publishes what follows.

use std::sync::Arc;

use crate::anchor::Bracket;
use crate::difference::SLEW_LIMIT;
use crate::history::{History, Rate};
use crate::ratio::{approx, ceil_nanos};
use crate::{Clocks, Domain, Span, Timeline};

/// The baseline of the first estimate of the rate.
const FIRST_BASELINE: Span = Span::from_nanos(200_000);

/// Reads that [`FIRST_BASELINE`] may take: a clock that has not moved by then stands still.
const FIRST_READS: u32 = 10_000_000;

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

/// Calibrates one clock. It has no thread and no clock of its own: somebody calls
/// [`Self::sample`] from time to time, and the clocks are injected.
#[derive(Debug)]
pub struct Calibrator<C> {
    clocks: C,
    granularity: Span,
    nanos_per_tick: f64,
    history: History,
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
        let first = Bracket::read(&mut clocks).ok_or(CalibrationError::Backwards)?;
        let start = clocks.monotonic_raw();
        let mut reads = 0;
        while clocks.monotonic_raw() - start < FIRST_BASELINE {
            reads += 1;
            if reads == FIRST_READS {
                return Err(CalibrationError::Stopped);
            }
        }
        let second = Bracket::read(&mut clocks).ok_or(CalibrationError::Backwards)?;
        let (ticks, elapsed) = second.since(&first);
        if ticks == 0 || elapsed <= Span::ZERO {
            return Err(CalibrationError::Stopped);
        }
        let nanos_per_tick = approx(elapsed.as_nanos().unsigned_abs()) / approx(ticks);
        let granularity = Span::from_nanos(ceil_nanos(approx(step) * nanos_per_tick));
        let (first, second) =
            (first.anchor(nanos_per_tick, granularity), second.anchor(nanos_per_tick, granularity));
        let errors = approx((first.error + second.error).as_nanos().unsigned_abs());
        let nominal =
            Rate { nanos_per_tick, error: errors / approx(ticks) + nanos_per_tick * SLEW_LIMIT };
        let mut history = History::new(domain, first, nominal, granularity);
        history.push(second);
        let timeline = Arc::new(history.timeline());
        Ok(Self { clocks, granularity, nanos_per_tick, history, timeline })
    }

    /// Takes an anchor and returns the snapshot that it leads to.
    ///
    /// A read that cannot be used (the counter ran backwards in all brackets, or the last anchor
    /// is too close for its error) leaves the snapshot as it was.
    pub fn sample(&mut self) -> Arc<Timeline> {
        if let Some(bracket) = Bracket::read(&mut self.clocks) {
            self.history.push(bracket.anchor(self.nanos_per_tick, self.granularity));
            self.timeline = Arc::new(self.history.timeline());
        }
        Arc::clone(&self.timeline)
    }

    /// The newest snapshot.
    #[must_use]
    pub fn timeline(&self) -> Arc<Timeline> {
        Arc::clone(&self.timeline)
    }
}
