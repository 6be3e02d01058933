//! Receives the outcomes of a running measurement.

use wirestamp_metrics::Outcome;
use wirestamp_packet::MatchRule;

/// Receives the outcomes of a running measurement.
pub trait OutcomeRecorder {
    /// Records an outcome.
    fn record(&mut self, outcome: Outcome);

    /// Discards all outcomes so far, because the measurement begins again with another rule
    /// ([`PairSession::with_trial`](crate::PairSession::with_trial)).
    fn restart(&mut self, _: MatchRule) {}
}

impl<F: FnMut(Outcome)> OutcomeRecorder for F {
    fn record(&mut self, outcome: Outcome) {
        self(outcome);
    }
}
