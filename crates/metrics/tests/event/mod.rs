//! Observations and capture losses in one sequence.

use wirestamp_metrics::{CaptureLoss, Correlator, Observation, Outcome, Point};

use crate::common::Input;

/// Event at a point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Seen(Observation),
    Missed(CaptureLoss),
}

impl Input for (Point, Event) {
    fn apply(self, correlator: &mut Correlator, sink: &mut impl FnMut(Outcome)) {
        match self.1 {
            Event::Seen(observation) => correlator.observe(self.0, observation, sink),
            Event::Missed(missed) => correlator.missed(self.0, missed),
        }
    }
}
