//! Metrics of one flow that depend on the order of its packets.

use std::collections::BTreeMap;

use wirestamp_clock::Span;

use crate::flow::impairment::Impairment;
use crate::jitter_buffer::{Playout, Timeliness};
use crate::reordering::{Arrival, Reordering};
use crate::train::MatchedPacket;
use crate::{JitterBuffer, LossPattern, Observation, Series, TrainGaps};

/// Window of arrivals for reordering (RFC 4737 section 6): 40 KiB when full.
const WINDOW: usize = 1024;

/// Metrics of one flow that depend on the order in which its packets were sent and received, or the sum for several
/// flows.
///
/// A flow of few packets takes little memory, one of many about 100 KiB.
#[derive(Clone, Debug)]
pub struct SequenceMetrics {
    /// Packets with a known outcome.
    decided: u64,
    /// Reordering (RFC 4737). Byte offsets use lengths on the wire. Duplicates are excluded by the correlator.
    pub reordering: Reordering,
    losses: PendingLosses,
    /// Gaps between neighbours.
    pub train: TrainGaps,
    /// Delay and loss over time.
    pub series: Series,
    /// De-jitter buffer of the receiver, for the rating of voice.
    pub(super) buffer: JitterBuffer,
    pub(super) playout: Playout,
    /// Packets too late for the buffer; losses are not in it.
    lateness: Impairment,
}

impl Default for SequenceMetrics {
    fn default() -> Self {
        Self {
            decided: 0,
            reordering: Reordering::new(WINDOW),
            losses: PendingLosses::default(),
            train: TrainGaps::default(),
            series: Series::default(),
            buffer: JitterBuffer::default(),
            playout: Playout::default(),
            lateness: Impairment::default(),
        }
    }
}

impl SequenceMetrics {
    /// Records a packet matched at both points, in the order of arrival.
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
        if let Timeliness::Late { again } = self.playout.record(delay, self.buffer) {
            self.lateness.record_too_late(again);
            self.series.record_late(sent_at);
        }
    }

    /// Records a lost packet.
    pub(super) fn record_loss(&mut self, sequence: u64, sent: &Observation) {
        self.decided += 1;
        self.losses.record(sequence, NotArrived::Lost, self.decided);
        self.series.record_loss(sent.stamp.utc);
    }

    /// Records an undetermined packet.
    pub(super) fn record_unknown(&mut self, sequence: u64) {
        self.losses.record(sequence, NotArrived::Unknown, self.decided);
    }

    /// Adds the figures of another flow, after all packets of both are recorded.
    pub(super) fn merge(&mut self, other: &Self) {
        self.losses.settle(self.decided);
        self.losses.pattern.merge(&other.loss_pattern());
        self.decided += other.decided;
        self.losses.next = self.decided;
        self.reordering.merge(&other.reordering);
        self.train.merge(&other.train);
        self.series.merge(&other.series);
        self.playout.merge(&other.playout);
        self.lateness.late += other.lateness.late;
        self.lateness.late_periods += other.lateness.late_periods;
    }

    /// Packets that arrived too late for the de-jitter buffer ([`JitterBuffer`]).
    #[must_use]
    pub fn late(&self) -> u64 {
        self.lateness.late
    }

    /// Packets that cannot be played: lost, or too late. Undetermined packets are left out.
    pub(super) fn impairment(&self) -> Impairment {
        let LossPattern { lost, periods, .. } = self.loss_pattern();
        Impairment { expected: self.decided, lost, periods, ..self.lateness }
    }

    /// Distribution of losses (RFC 3357). Undetermined packets are left out.
    #[must_use]
    pub fn loss_pattern(&self) -> LossPattern {
        let mut losses = self.losses.clone();
        losses.settle(self.decided);
        losses.pattern
    }
}

/// Losses and their positions. They become known late, but nearly in the order of sending, so packets that arrived
/// between them need not be stored.
#[derive(Clone, Debug, Default)]
struct PendingLosses {
    pattern: LossPattern,
    /// Latest packets that did not arrive: lost or undetermined.
    pending: BTreeMap<u64, NotArrived>,
    /// Position after the last packet in the pattern.
    next: u64,
    /// Undetermined packets, which have no position.
    unknown: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotArrived {
    Lost,
    Unknown,
}

/// Max packets kept until their order is settled.
const MAX_PENDING: usize = 64;

impl PendingLosses {
    /// Records a packet that did not arrive; `decided` packets have a known outcome.
    fn record(&mut self, sequence: u64, kind: NotArrived, decided: u64) {
        self.pending.insert(sequence, kind);
        if self.pending.len() > MAX_PENDING {
            self.settle_first(decided);
        }
    }

    /// Adds the first pending packet to the pattern.
    fn settle_first(&mut self, decided: u64) {
        match self.pending.pop_first() {
            Some((sequence, NotArrived::Lost)) => {
                // Max number of packets that arrived; limits the position where numbers were skipped.
                let arrived = decided.saturating_sub(self.pattern.lost + 1);
                let place = sequence.saturating_sub(self.unknown);
                self.close(place.min(arrived + self.pattern.lost));
                self.pattern.record(true);
                self.next += 1;
            }
            Some((_, NotArrived::Unknown)) => self.unknown += 1,
            None => {}
        }
    }

    /// Adds all pending packets to the pattern; `decided` packets have a known outcome.
    fn settle(&mut self, decided: u64) {
        while !self.pending.is_empty() {
            self.settle_first(decided);
        }
        self.close(decided);
    }

    /// Adds the packets up to `place`, which arrived.
    fn close(&mut self, place: u64) {
        self.pattern.record_arrivals(place.saturating_sub(self.next));
        self.next = self.next.max(place);
    }
}
