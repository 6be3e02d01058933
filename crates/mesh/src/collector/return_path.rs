//! Round trips and the return path of an active test, in a window.

use wirestamp_clock::Span;
use wirestamp_metrics::Distribution;

use crate::protocol::TestAnswer;

/// Answers to the packets that left the sender in a window.
///
/// A packet that reached the reflector is answered, lost on the way back, or undetermined.
#[derive(Clone, Debug, Default)]
pub struct ReturnPath {
    /// Packets that reached the reflector, and whose answer reached the sender within the timeout.
    pub answered: u64,
    /// Packets that reached the reflector, and whose answer did not: lost on the way back, or not sent by the
    /// reflector.
    pub lost: u64,
    /// Packets that reached the reflector, and of which the answer is unknown.
    pub undetermined: u64,
    /// Round-trip times without the time at the reflector.
    pub round_trip: Distribution,
    /// Delays from the reflector to the sender, by the clocks of both.
    pub delay: Distribution,
    /// Max error of the send times of the packets.
    pub sent_error: Span,
    /// Max time from the send time that an answer states until it left. Round trips and delays are overestimated by at
    /// most this time. None if the reflector does not report it.
    pub sending: Option<Span>,
    /// Min delay.
    pub(super) least: Option<Span>,
}

impl ReturnPath {
    /// Records an answer.
    pub(super) fn record(&mut self, answer: &TestAnswer) {
        // Otherwise, a clock was set meanwhile.
        if answer.round_trip + answer.error >= Span::ZERO {
            self.round_trip.record(answer.round_trip);
            self.sent_error = self.sent_error.max(answer.error);
            self.delay.record(answer.back);
            self.least = Some(self.least.map_or(answer.back, |least| least.min(answer.back)));
        }
    }

    /// Whether any answer has times.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.round_trip.count() > 0
    }

    /// Max error of the round-trip times: from stamps, not from clock offsets. None if it is unknown, or without times.
    #[must_use]
    pub fn round_trip_error(&self) -> Option<Span> {
        self.sending.filter(|_| self.has_times()).map(|sending| sending + self.sent_error)
    }

    /// Max error of the delays, when the clocks of both machines differ by at most `offset`. None if it is unknown, or
    /// without times.
    #[must_use]
    pub fn delay_error(&self, offset: Option<Span>) -> Option<Span> {
        let known = self.sending.zip(offset).filter(|_| self.has_times());
        known.map(|(sending, offset)| sending + offset)
    }

    /// Whether a negative delay contradicts the stated clock errors.
    #[must_use]
    pub fn contradicts_the_clocks(&self, offset: Option<Span>) -> bool {
        offset.zip(self.least).is_some_and(|(offset, least)| least + offset < Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Time;
    use wirestamp_packet::PacketId;

    use super::*;

    fn answer(round_trip: i64, back: i64, error: i64) -> TestAnswer {
        let [round_trip, back, error] = [round_trip, back, error].map(Span::from_micros);
        let (identity, sent) = (PacketId(1), Time::from_nanos(0));
        TestAnswer { identity, sent, round_trip, back, error }
    }

    #[test]
    fn errors_contain_stamps_and_sending_times() {
        let us = Span::from_micros;
        let mut path = ReturnPath { sending: Some(us(30)), ..ReturnPath::default() };
        assert_eq!((path.round_trip_error(), path.delay_error(Some(us(5)))), (None, None));
        for (round_trip, back, error) in [(500, 200, 0), (400, -10, 7)] {
            path.record(&answer(round_trip, back, error));
        }
        assert_eq!(path.round_trip_error(), Some(us(37)));
        assert_eq!((path.delay_error(Some(us(5))), path.delay_error(None)), (Some(us(35)), None));
        assert!(path.contradicts_the_clocks(Some(us(9))));
        assert!(!path.contradicts_the_clocks(Some(us(10))) && !path.contradicts_the_clocks(None));
        path.sending = None;
        assert_eq!((path.round_trip_error(), path.delay_error(Some(us(5)))), (None, None));
    }

    #[test]
    fn negative_round_trip_has_no_times() {
        let mut path = ReturnPath::default();
        path.record(&answer(-3, 200, 2));
        assert!(!path.has_times());
        path.record(&answer(-3, 200, 3));
        assert_eq!(path.round_trip.count(), 1);
    }
}
