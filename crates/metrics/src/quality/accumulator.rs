//! Counts and distributions over the outcomes of a correlator.

use super::counts::{ClockError, Counts};
use super::sequence::SequenceMetrics;
use super::volume::Volume;
use crate::duplication::Duplication;
use crate::{Distribution, JitterBuffer, Observation, Outcome, Point};

/// Quality of one flow, or of several combined: counts and distributions over the [`Outcome`]s of a correlator.
///
/// Reordering and delay variation are computed within each flow, even where several are recorded together, because
/// packets of different flows have no order. Metrics of the packet order are in [`SequenceMetrics`]: recorded for one
/// flow by [`Quality::of_flow`], combined for several with [`Quality::merge`].
///
/// Serialised: the counts; `owd_ns`, `ipdv_ns` and `pdv_ns` (distributions); `clock_error_ns`, the max bound of the
/// clock error in any of the delays (null without delays), with `clock_error_mean_ns`; `throughput_bps`, `sent_bps`,
/// `sent_bytes` and `received_bytes`; `duplication`; and with sequence metrics also `reordering`, `loss_pattern`,
/// `gap_a_ns` and `gap_b_ns`.
#[derive(Clone, Debug, Default)]
pub struct Quality {
    pub(super) counts: Counts,
    pub(super) delay: Distribution,
    pub(super) variation: Distribution,
    pub(super) clock_error: ClockError,
    pub(super) sent: Volume,
    pub(super) received: Volume,
    pub(super) duplication: Duplication,
    pub(super) sequence_metrics: Option<Box<SequenceMetrics>>,
}

impl Quality {
    /// An empty quality, for any number of flows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty quality of one flow, with [`SequenceMetrics`]. Only outcomes of that flow may be recorded.
    #[must_use]
    pub fn of_flow() -> Self {
        Self { sequence_metrics: Some(Box::default()), ..Self::default() }
    }

    /// Rates voice for a receiver with this de-jitter buffer. To be called before the first packet.
    #[must_use]
    pub fn with_jitter_buffer(mut self, buffer: JitterBuffer) -> Self {
        if let Some(metrics) = &mut self.sequence_metrics {
            metrics.buffer = buffer;
        }
        self
    }

    /// Adds an outcome.
    pub fn record(&mut self, outcome: &Outcome) {
        let counts = &mut self.counts;
        match outcome {
            Outcome::Matched {
                sent,
                received,
                sequence,
                delay,
                error,
                reordered,
                since_previous,
                until_next,
            } => {
                counts.sent += 1;
                counts.matched += 1;
                counts.reordered += u64::from(*reordered);
                self.delay.record(*delay);
                self.clock_error.record(*error, counts.matched);
                for variation in [since_previous, until_next].into_iter().flatten() {
                    self.variation.record(*variation);
                }
                if let Some(sequence_metrics) = &mut self.sequence_metrics {
                    sequence_metrics.record_match(*sequence, sent, received, *delay);
                }
                self.sent.record(sent);
                self.receive(received);
            }
            Outcome::Lost { sent, sequence } => {
                counts.sent += 1;
                counts.lost += 1;
                if let Some(sequence_metrics) = &mut self.sequence_metrics {
                    sequence_metrics.record_loss(*sequence, sent);
                }
                self.sent.record(sent);
            }
            Outcome::Duplicated { sent, received } => {
                counts.duplicated += 1;
                self.duplication.record(sent);
                self.receive(received);
            }
            Outcome::Unexpected { received } => {
                counts.unexpected += 1;
                self.receive(received);
            }
            Outcome::Undetermined { point: Point::A, observation, sequence, .. } => {
                counts.sent += 1;
                counts.undetermined_sent += 1;
                if let Some((sequence_metrics, sequence)) =
                    self.sequence_metrics.as_mut().zip(*sequence)
                {
                    sequence_metrics.record_unknown(sequence);
                }
                self.sent.record(observation);
            }
            Outcome::Undetermined { point: Point::B, observation, .. } => {
                counts.undetermined_received += 1;
                self.receive(observation);
            }
            Outcome::Identical { .. } => counts.identical += 1,
        }
    }

    fn receive(&mut self, received: &Observation) {
        self.counts.received += 1;
        self.received.record(received);
    }

    /// Adds the quality of other flows, after all of it is recorded.
    pub fn merge(&mut self, other: &Self) {
        self.clock_error.merge(self.counts.matched, &other.clock_error, other.counts.matched);
        self.counts.add(&other.counts);
        self.delay.merge(&other.delay);
        self.variation.merge(&other.variation);
        self.sent.merge(&other.sent);
        self.received.merge(&other.received);
        self.duplication.merge(&other.duplication);
        if let Some(sequence_metrics) = &other.sequence_metrics {
            self.sequence_metrics.get_or_insert_default().merge(sequence_metrics);
        }
    }

    /// Counts by outcome.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// One-way delays of the matched packets (RFC 7679 section 3.4). The delay of a lost packet is undefined, not
    /// infinite: it is in the loss count and in no percentile.
    #[must_use]
    pub fn delay(&self) -> &Distribution {
        &self.delay
    }

    /// Delay variations (RFC 3393 section 2.4): for each two consecutive packets of a flow at A that were both
    /// matched, the delay of the later minus that of the earlier. Undefined and left out where either was lost; a loss
    /// therefore removes two. Includes reordered packets.
    #[must_use]
    pub fn variation(&self) -> &Distribution {
        &self.variation
    }

    /// Clock error in the delays, or `None` without delays.
    #[must_use]
    pub fn clock_error(&self) -> Option<ClockError> {
        (self.counts.matched > 0).then_some(self.clock_error)
    }

    /// Metrics of the packet order, or `None` where flows were recorded together.
    #[must_use]
    pub fn sequence_metrics(&self) -> Option<&SequenceMetrics> {
        self.sequence_metrics.as_deref()
    }

    /// Bits per second at A, as [`Self::throughput`].
    #[must_use]
    pub fn sent_rate(&self) -> Option<f64> {
        self.sent.bits_per_second()
    }

    /// Bits per second at B, with link headers, over the time from the first to the last packet. Excludes the bits of
    /// the first packet, which arrived before that time. `None` below two packets, or if all have the same stamp.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        self.received.bits_per_second()
    }
}
