//! Times between packets at one point.

use serde::{Serialize, Serializer};
use wirestamp_clock::{DifferenceClock, Stamp};

use crate::Distribution;

/// Time from each packet to the next at one observation point.
///
/// Neighbours are in the order of capture, of any flow; for one flow, record only its packets. Negative where the
/// point captured two packets in another order than it stamped them. It is a property of one point, unlike delay
/// variation, which needs two.
///
/// Serialised as its [`Distribution`].
#[derive(Clone, Debug, Default)]
pub struct InterArrival {
    difference_clock: Option<DifferenceClock>,
    previous: Option<Stamp>,
    /// Times so far: one fewer than packets.
    pub distribution: Distribution,
}

impl InterArrival {
    /// Computes times between two stamps of this clock's domain from their raw values, not through UTC. The stamps
    /// must come from the clock that it was made for.
    pub fn set_difference_clock(&mut self, clock: DifferenceClock) {
        self.difference_clock = Some(clock);
    }

    /// Records the stamp of the next packet, in the order of capture.
    #[inline] // copying the stamp for a call takes longer than the rest
    pub fn record(&mut self, stamp: Stamp) {
        if let Some(previous) = self.previous.replace(stamp) {
            // The error is not needed, and its computation would take longer than all the rest.
            let by_ticks =
                self.difference_clock.as_ref().and_then(|it| it.span(previous.raw, stamp.raw));
            self.distribution.record(by_ticks.unwrap_or_else(|| stamp.utc - previous.utc));
        }
    }
}

impl Serialize for InterArrival {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.distribution.serialize(serializer)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for InterArrival {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Distribution::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        Distribution::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Distribution::json_schema(generator)
    }
}
