//! Losses that only show when B's capture began or ended.

use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::{Outcome, Point};

/// Counts packets that left A before the first or after the last packet that was seen at B. A file does
/// not say when its capture ran: the network may have lost them, or nobody may have looked.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    seen_at_b: Option<(Time<Utc>, Time<Utc>)>,
    lost: u64,
}

impl Beyond {
    /// Takes the next outcome. A loss is told of once B's time has passed it by the time-out, or at the
    /// end.
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
