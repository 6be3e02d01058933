//! What one flow tells by the order of its packets.

use std::collections::BTreeMap;

use wirestamp_clock::Span;

use crate::reordering::{Arrival, Reordering};
use crate::train::MatchedPacket;
use crate::{LossPattern, Observation, Series, TrainGaps};

/// Arrivals of a flow that reordering is looked for in (RFC 4737 section 6): 40 KiB where so many come.
const WINDOW: usize = 1024;

/// The metrics of one flow that depend on the order in which its packets were sent and came, or
/// those of several flows added up.
///
/// A flow of few packets takes little memory, and one of many about 100 KiB.
#[derive(Clone, Debug)]
pub struct SequenceMetrics {
    /// Packets of which it is known what became.
    decided: u64,
    reordering: Reordering,
    losses: Losses,
    train: TrainGaps,
    series: Series,
}

impl Default for SequenceMetrics {
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

impl SequenceMetrics {
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
        self.train.record(MatchedPacket { sequence, sent: sent_at, received: time });
        self.series.record(sent_at, delay);
    }

    /// Takes a lost packet.
    pub(super) fn record_loss(&mut self, sequence: u64, sent: &Observation) {
        self.decided += 1;
        self.losses.record(sequence, Fate::Lost, self.decided);
        self.series.record_loss(sent.stamp.utc);
    }

    /// Takes note that it is not known what became of a packet.
    pub(super) fn record_unknown(&mut self, sequence: u64) {
        self.losses.record(sequence, Fate::Unknown, self.decided);
    }

    /// Adds the figures of another flow, when all of both is recorded.
    pub(super) fn merge(&mut self, other: &Self) {
        self.losses.settle(self.decided);
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
        losses.settle(self.decided);
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

/// Losses and their places. They become known late, but nearly in the order of sending, so that those
/// that arrived between them need not be kept.
#[derive(Clone, Debug)]
struct Losses {
    pattern: LossPattern,
    /// The last packets that did not arrive: whether they were lost, or it is not known what became
    /// of them.
    pending: BTreeMap<u64, Fate>,
    /// The place of the packet behind the last one in the pattern.
    next: u64,
    /// Packets of which it is not known what became. They have no place.
    unknown: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Lost,
    Unknown,
}

/// So many packets that did not arrive are kept until their order is settled.
const PENDING: usize = 64;

impl Default for Losses {
    fn default() -> Self {
        // What distance is noticeable depends on the decoder; no one is known here.
        let pattern = LossPattern::new(0);
        Self { pattern, pending: BTreeMap::new(), next: 0, unknown: 0 }
    }
}

impl Losses {
    /// Takes a packet that did not arrive; `decided` packets are known to have arrived or not.
    fn record(&mut self, sequence: u64, fate: Fate, decided: u64) {
        self.pending.insert(sequence, fate);
        if self.pending.len() > PENDING {
            self.settle_first(decided);
        }
    }

    /// Enters the first of the pending packets into the pattern.
    fn settle_first(&mut self, decided: u64) {
        match self.pending.pop_first() {
            Some((sequence, Fate::Lost)) => {
                // No more than that have arrived, wherever numbers were left out.
                let arrived = decided.saturating_sub(self.pattern.lost() + 1);
                let place = sequence.saturating_sub(self.unknown);
                self.close(place.min(arrived + self.pattern.lost()));
                self.pattern.record(true);
                self.next += 1;
            }
            Some((_, Fate::Unknown)) => self.unknown += 1,
            None => {}
        }
    }

    /// Enters all that is known into the pattern: `decided` packets.
    fn settle(&mut self, decided: u64) {
        while !self.pending.is_empty() {
            self.settle_first(decided);
        }
        self.close(decided);
    }

    /// Adds the packets up to `place`, which have arrived.
    fn close(&mut self, place: u64) {
        self.pattern.record_arrivals(place.saturating_sub(self.next));
        self.next = self.next.max(place);
    }
}
