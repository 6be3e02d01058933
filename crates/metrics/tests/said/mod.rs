//! Observations with what the captures missed between them.

use wirestamp_metrics::{CaptureLoss, Correlator, Observation, Outcome, Point};

use crate::common::Tell;

/// What a point has to say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Seen(Observation),
    Missed(CaptureLoss),
}

impl Tell for (Point, Said) {
    fn tell(self, correlator: &mut Correlator, sink: &mut impl FnMut(Outcome)) {
        match self.1 {
            Said::Seen(observation) => correlator.observe(self.0, observation, sink),
            Said::Missed(missed) => correlator.missed(self.0, missed),
        }
    }
}
