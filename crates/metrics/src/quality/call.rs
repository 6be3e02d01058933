//! Rating of a flow as a phone call: as a whole, and over time.

use wirestamp_clock::{Span, Time, Utc};

use super::accumulator::Quality;
use crate::emodel::{Codecs, Rating};
use crate::numeric::{count_to_f64, nanos_to_f64, round_to_span};

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
    /// Rating of each interval, from the first packet to the last; none where no packet was sent.
    pub intervals: Vec<Option<Rating>>,
}

impl Quality {
    /// Rating of the flow as a phone call with these codecs, by the E-model. `None` if no packet arrived, if several flows
    /// were recorded together, or if the loss robustness of a codec is unknown.
    ///
    /// The delay is the mean time from A until the receiver plays a packet that comes from B, with its de-jitter buffer
    /// ([`Self::with_jitter_buffer`]). Packets too late for the buffer count as lost, also in the burst ratio. What the
    /// sender adds before A is excluded: packetisation, and variation of the delay.
    #[must_use]
    pub fn as_call(&self, codecs: &Codecs) -> Option<Rating> {
        let metrics = self.sequence_metrics()?;
        let (delay, impairment) = (metrics.playout.mean_delay()?, metrics.impairment());
        codecs.rating(delay, impairment.ratio()?, impairment.burst_ratio())
    }

    /// As [`Self::as_call`], for each interval of the call. The burst ratio is that of the whole call, because an
    /// interval has too few losses for one; so is the delay of an interval without arrivals, and the time that packets wait
    /// in the buffer.
    #[must_use]
    pub fn as_call_over_time(&self, codecs: &Codecs) -> Option<CallOverTime> {
        let (metrics, mean) = (self.sequence_metrics()?, self.delay.summary()?.mean);
        let wait = nanos_to_f64(metrics.playout.mean_delay()?.as_nanos()) - mean;
        let series = metrics.series.coarser(SHORTEST, INTERVALS);
        let (begins, _) = series.slots().next()?;
        let burst_ratio = metrics.impairment().burst_ratio();
        let mut intervals = Vec::new();
        for (time, slot) in series.slots() {
            let place = (time - begins).as_nanos() / series.width().as_nanos();
            intervals.resize(usize::try_from(place).ok()?, None);
            let unplayed = count_to_f64(slot.lost + slot.late);
            let ratio = unplayed / count_to_f64(slot.lost + slot.matched);
            let delay = round_to_span(slot.mean().unwrap_or(mean) + wait);
            intervals.push(Some(codecs.rating(delay, ratio, burst_ratio)?));
        }
        Some(CallOverTime { begins, interval: series.width(), intervals })
    }
}
