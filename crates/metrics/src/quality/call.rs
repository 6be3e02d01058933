//! A flow as a phone call: as a whole, and over time.

use wirestamp_clock::{Span, Time, Utc};

use super::accumulator::Quality;
use super::sequence::SequenceMetrics;
use crate::emodel::{Codec, Parameters};
use crate::numeric::{count_to_f64, round_to_span};

/// The shortest stretch of a call that is judged by itself. Shorter ones have too few packets to have a
/// share of losses.
const SHORTEST: Span = Span::from_secs(1);
/// Stretches of a call: of longer calls, each is longer.
const INTERVALS: usize = 300;

/// A call in intervals of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOverTime {
    /// When the first stretch begins.
    pub begins: Time<Utc>,
    /// How long each is: 1.024 s, or twice that, or four times that, and so on.
    pub interval: Span,
    /// What is known of each, from the first packet to the last; none where no packet was sent.
    pub intervals: Vec<Option<Parameters>>,
}

impl Quality {
    /// What the flow would be like as a phone call with this codec, or a part of one: its
    /// mean delay, losses and burst ratio in the E-model (ITU-T G.107). `None` if nothing arrived, if
    /// flows were recorded together, or if the codec's robustness against loss is not known.
    ///
    /// What end systems add is not in it: packing and unpacking the voice, and the buffer that takes
    /// out the jitter.
    #[must_use]
    pub fn as_call(&self, codec: Codec) -> Option<Parameters> {
        let losses = self.sequence_metrics()?.loss_pattern();
        let delay = round_to_span(self.delay.summary()?.mean);
        Parameters::of_call(codec, delay, losses.loss_ratio()?, self.burst_ratio())
    }

    /// The same over time: mean delay and losses of each stretch of the call. The burst ratio is that of
    /// the whole call, because a stretch has too few losses to tell one, and so is the delay of a
    /// stretch of which nothing arrived.
    #[must_use]
    pub fn as_call_over_time(&self, codec: Codec) -> Option<CallOverTime> {
        let delay = self.delay.summary()?.mean;
        let series = self.sequence_metrics()?.series().coarser(SHORTEST, INTERVALS);
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
