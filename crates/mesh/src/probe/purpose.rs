//! Purposes of observation, and the observer of each.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Sampling;

use super::delay_observer::DelayObserver;
use super::flow_observer::FlowObserver;
use super::observer::Observer;
use super::packet_counter::PacketCounter;

/// Purpose of an observation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    /// Packets to match with those of another point: all, or a sample.
    Observe(Sampling),
    /// All packets of an end of an active test, and their answers.
    Test,
    /// Packets and bytes per interval of this length.
    Count(Span),
    /// Statistics of each flow.
    Follow,
}

impl Purpose {
    /// An observer from `begin` on.
    pub(super) fn begin(&self, begin: Time<Utc>) -> Box<dyn Observer> {
        match self {
            Self::Observe(sampling) => Box::new(DelayObserver::new(sampling.clone(), begin)),
            Self::Test => Box::new(DelayObserver::of_test(begin)),
            Self::Count(interval) => Box::new(PacketCounter::new(*interval, begin)),
            Self::Follow => Box::new(FlowObserver::new(begin)),
        }
    }

    /// Whether another point waits for the observations of this one.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self, Self::Observe(_) | Self::Test)
    }
}
