//! What one flow tells by the order of its packets.

use wirestamp_clock::Span;

use crate::reordering::{Arrival, Reordering};
use crate::train::Passage;
use crate::{LossPattern, Observation, Series, TrainGaps};

/// Arrivals of a flow that reordering is looked for in (RFC 4737 section 6): 40 KiB where so many come.
const WINDOW: usize = 1024;

/// The metrics of one flow that depend on the order in which its packets were sent and came, or
/// those of several flows added up.
///
/// A flow of few packets takes little memory, and one of many about 100 KiB.
#[derive(Clone, Debug)]
pub struct Course {
    /// Packets of which it is known what became.
    decided: u64,
    reordering: Reordering,
    losses: Losses,
    train: TrainGaps,
    series: Series,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            decided: 0,
            reordering: Reordering::new(WINDOW),
            losses: Losses::default(),
            train: TrainGaps::default(),
            series: Series::default(),
        }
    }
}

impl Course {
    /// Takes a packet that was seen at both points, in the order of arrival.
    pub(super) fn record_match(
        &mut self,
        sequence: u64,
        sent: &Observation,
        received: &Observation,
        delay: Span,
    ) {
        self.decided += 1;
        let (sent_at, time) = (sent.stamp.utc, received.stamp.utc);
        self.reordering.record(Arrival { sequence, time, bytes: received.length });
        self.train.record(Passage { sequence, sent: sent_at, received: time });
        self.series.record(sent_at, delay);
    }

    /// Takes a lost packet, in the order of sending.
    pub(super) fn record_loss(&mut self, sequence: u64, sent: &Observation) {
        self.decided += 1;
        self.losses.record(sequence);
        self.series.record_loss(sent.stamp.utc);
    }

    /// Takes note that it is not known what became of a packet, in the order of sending.
    pub(super) const fn record_unknown(&mut self) {
        self.losses.unknown += 1;
    }

    /// Adds the figures of another flow, when all of both is recorded.
    pub(super) fn merge(&mut self, other: &Self) {
        self.losses.close(self.decided);
        self.losses.pattern.merge(&other.loss_pattern());
        self.decided += other.decided;
        self.losses.next = self.decided;
        self.reordering.merge(&other.reordering);
        self.train.merge(&other.train);
        self.series.merge(&other.series);
    }

    /// Reordering (RFC 4737), with the lengths on the wire for the payloads of byte offsets. Copies
    /// do not take part: the correlator tells them.
    #[must_use]
    pub const fn reordering(&self) -> &Reordering {
        &self.reordering
    }

    /// How losses are spread (RFC 3357). Packets that were given up are left out.
    #[must_use]
    pub fn loss_pattern(&self) -> LossPattern {
        let mut losses = self.losses.clone();
        losses.close(self.decided);
        losses.pattern
    }

    /// The gaps between neighbours.
    #[must_use]
    pub const fn train(&self) -> &TrainGaps {
        &self.train
    }

    /// Delay and loss over time.
    #[must_use]
    pub const fn series(&self) -> &Series {
        &self.series
    }
}

/// Losses and their places. They become known late, but in the order of sending, so that those
/// that arrived between them need not be kept.
#[derive(Clone, Debug)]
struct Losses {
    pattern: LossPattern,
    /// The place of the packet behind the last one in the pattern.
    next: u64,
    /// Packets of which it is not known what became. They have no place.
    unknown: u64,
}

impl Default for Losses {
    fn default() -> Self {
        // What distance is noticeable depends on the decoder; no one is known here.
        Self { pattern: LossPattern::new(0), next: 0, unknown: 0 }
    }
}

impl Losses {
    fn record(&mut self, sequence: u64) {
        let place = sequence.saturating_sub(self.unknown);
        self.close(place);
        self.pattern.record(true);
        self.next = place.saturating_add(1);
    }

    /// Adds the packets up to `place`, which have arrived.
    fn close(&mut self, place: u64) {
        self.pattern.record_arrivals(place.saturating_sub(self.next));
        self.next = self.next.max(place);
    }
}
