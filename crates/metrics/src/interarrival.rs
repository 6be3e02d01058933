//! The times between packets at one point.

use serde::{Serialize, Serializer};
use wirestamp_clock::{DifferenceClock, Stamp};

use crate::Distribution;

/// Records the time from each packet to the next at one observation point.
///
/// It is the time between neighbours in the order of capture, whatever flow they belong to; for
/// one flow, give it the packets of that flow. Negative where the point captured two packets in
/// another order than it stamped them. It is a property of one point and not a delay variation,
/// which takes two.
///
/// Serialised, it is its [`Distribution`].
#[derive(Clone, Debug, Default)]
pub struct InterArrival {
    difference_clock: Option<DifferenceClock>,
    previous: Option<Stamp>,
    times: Distribution,
}

impl InterArrival {
    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on, takes the time between two stamps of this clock's domain from their raw
    /// values, not through UTC. The stamps must come from the very clock that it was made for.
    pub fn set_difference_clock(&mut self, clock: DifferenceClock) {
        self.difference_clock = Some(clock);
    }

    /// Takes the next packet's stamp, in the order of capture.
    #[inline] // copying the stamp for a call takes longer than the rest
    pub fn record(&mut self, stamp: Stamp) {
        if let Some(previous) = self.previous.replace(stamp) {
            // Without the error, which takes longer than all the rest.
            let by_ticks =
                self.difference_clock.as_ref().and_then(|it| it.span(previous.raw, stamp.raw));
            self.times.record(by_ticks.unwrap_or_else(|| stamp.utc - previous.utc));
        }
    }

    /// The times so far: one fewer than packets.
    #[must_use]
    pub fn distribution(&self) -> &Distribution {
        &self.times
    }
}

impl Serialize for InterArrival {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.times.serialize(serializer)
    }
}
