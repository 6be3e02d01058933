//! Losses outside B's capture time, which may not be network losses.

use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::{Outcome, Point};

/// Counts lost packets that left A before the first or after the last packet observed at B.
///
/// A file does not contain when its capture ran, so that B may not have captured at that time.
#[derive(Debug, Default)]
pub(super) struct LossesOutsideCapture {
    seen_at_b: Option<(Time<Utc>, Time<Utc>)>,
    lost: u64,
}

impl LossesOutsideCapture {
    /// Records the next outcome. A loss is reported after the timeout in B's time, or at the end.
    pub(super) fn record(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Matched { received, .. }
            | Outcome::Duplicated { received, .. }
            | Outcome::Unexpected { received }
            | Outcome::Undetermined { point: Point::B, observation: received, .. } => {
                let time = received.stamp.utc;
                let (first, last) = self.seen_at_b.unwrap_or((time, time));
                self.seen_at_b = Some((first.min(time), last.max(time)));
            }
            Outcome::Lost { sent, .. } => {
                let left = sent.stamp.utc;
                let beyond = |(first, last)| left < first || left > last;
                self.lost += u64::from(self.seen_at_b.is_none_or(beyond));
            }
            Outcome::Undetermined { point: Point::A, .. } | Outcome::Identical { .. } => {}
        }
    }

    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }
}
