//! Rating of a flow as a phone call: as a whole, and over time.

use wirestamp_clock::{Span, Time, Utc};

use super::accumulator::Quality;
use super::sequence::SequenceMetrics;
use crate::emodel::{Codec, Parameters};
use crate::numeric::{count_to_f64, round_to_span};

/// Min length of an interval. Shorter ones have too few packets for a loss ratio.
const SHORTEST: Span = Span::from_secs(1);
/// Max intervals of a call; intervals of longer calls are longer.
const INTERVALS: usize = 300;

/// A call in intervals of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOverTime {
    /// Start of the first interval.
    pub begins: Time<Utc>,
    /// Length of an interval: 1.024 s times a power of two.
    pub interval: Span,
    /// Parameters of each interval, from the first packet to the last; none where no packet was sent.
    pub intervals: Vec<Option<Parameters>>,
}

impl Quality {
    /// Parameters of the E-model (ITU-T G.107) for the flow as a phone call with this codec: mean delay, losses and
    /// burst ratio. `None` if no packet arrived, if several flows were recorded together, or if the loss robustness of
    /// the codec is unknown.
    ///
    /// Excludes what end systems add: packetisation and the de-jitter buffer.
    #[must_use]
    pub fn as_call(&self, codec: Codec) -> Option<Parameters> {
        let losses = self.sequence_metrics()?.loss_pattern();
        let delay = round_to_span(self.delay.summary()?.mean);
        Parameters::of_call(codec, delay, losses.loss_ratio()?, self.burst_ratio())
    }

    /// As [`Self::as_call`], for each interval of the call. The burst ratio is that of the whole call, because an
    /// interval has too few losses for one; so is the delay of an interval without arrivals.
    #[must_use]
    pub fn as_call_over_time(&self, codec: Codec) -> Option<CallOverTime> {
        let delay = self.delay.summary()?.mean;
        let series = self.sequence_metrics()?.series.coarser(SHORTEST, INTERVALS);
        let (begins, _) = series.slots().next()?;
        let burst_ratio = self.burst_ratio();
        let mut intervals = Vec::new();
        for (time, slot) in series.slots() {
            let place = (time - begins).as_nanos() / series.width().as_nanos();
            intervals.resize(usize::try_from(place).ok()?, None);
            let lost = count_to_f64(slot.lost) / count_to_f64(slot.lost + slot.matched);
            let delay = round_to_span(slot.mean().unwrap_or(delay));
            intervals.push(Some(Parameters::of_call(codec, delay, lost, burst_ratio)?));
        }
        Some(CallOverTime { begins, interval: series.width(), intervals })
    }

    fn burst_ratio(&self) -> f64 {
        let pattern = self.sequence_metrics().map(SequenceMetrics::loss_pattern);
        pattern.and_then(|losses| losses.burst_ratio()).unwrap_or(1.0)
    }
}
