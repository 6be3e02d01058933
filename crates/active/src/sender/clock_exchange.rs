//! Clock offset from a test packet and its answer: four timestamps, two of each clock (RFC 5905 section 8).

use std::collections::VecDeque;

use wirestamp_clock::{Span, Time, Utc};

use super::ReceivedAnswer;

/// Max age of exchanges. The one with the min round-trip time had most likely no queueing delay.
const MAX_AGE: Span = Span::from_secs(10);

/// Offset of the reflector's clock from the sender's, by one packet and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockExchange {
    /// Receive time of the answer, by the sender's clock.
    pub at: Time<Utc>,
    /// Offset of the reflector's clock, for equal delays in both directions; positive if it is ahead.
    pub ahead: Span,
    /// Max error of the offset: half of the round-trip time.
    pub bound: Span,
    /// Error bound of the sender's clock; none if it is not synchronized to UTC.
    pub own: Option<Span>,
    /// Error bound of the reflector's clock, from the answer; none if it is not synchronized to UTC.
    pub theirs: Option<Span>,
}

impl ClockExchange {
    /// The exchange of an answer; none for a duplicate, or if a clock was set meanwhile.
    #[must_use]
    pub fn of(answer: &ReceivedAnswer) -> Option<Self> {
        let (there, trip) = answer.there.zip(answer.round_trip)?;
        let ahead = Span::from_nanos((there - answer.back).as_nanos() / 2);
        // Includes the rounding of the division.
        let bound = Span::from_nanos(trip.as_nanos() / 2 + 1);
        let ReceivedAnswer { at, own, theirs, .. } = *answer;
        (trip >= Span::ZERO).then_some(Self { at, ahead, bound, own, theirs })
    }

    /// Whether the offset exceeds the sum of both clocks' error bounds and its own max error: then one error
    /// bound is wrong. False if a clock has no error bound.
    #[must_use]
    pub fn contradicts_the_clocks(&self) -> bool {
        let claimed = self.own.zip(self.theirs).map(|(own, theirs)| own + theirs);
        claimed.is_some_and(|claimed| self.ahead.abs() > claimed + self.bound)
    }
}

/// The exchanges of the last seconds: for each second the one with the min round-trip time.
#[derive(Clone, Debug, Default)]
pub struct ClockExchanges(VecDeque<ClockExchange>);

impl ClockExchanges {
    /// Adds the exchange of an answer.
    pub fn add(&mut self, answer: &ReceivedAnswer) {
        let Some(exchange) = ClockExchange::of(answer) else { return };
        let second = |exchange: &ClockExchange| exchange.at.interval_begin(Span::from_secs(1));
        match self.0.back_mut().filter(|last| second(last) == second(&exchange)) {
            Some(last) if last.bound <= exchange.bound => {}
            Some(last) => *last = exchange,
            None => self.0.push_back(exchange),
        }
        // After a clock was set back, this also removes exchanges from the future.
        self.0.retain(|it| (exchange.at - it.at).abs() < MAX_AGE);
    }

    /// The exchange with the min round-trip time that is recent at `now`.
    #[must_use]
    pub fn best(&self, now: Time<Utc>) -> Option<ClockExchange> {
        let new = self.0.iter().filter(|it| (now - it.at).abs() < MAX_AGE);
        new.min_by_key(|it| it.bound).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirestamp_metrics::ReplyKind;

    use super::*;

    fn answer(millis: i64, there: i64, back: i64) -> ReceivedAnswer {
        ReceivedAnswer {
            sequence: 0,
            mark: 0,
            sent: None,
            at: Time::from_nanos(millis * 1_000_000),
            round_trip: Some(Span::from_nanos(there.saturating_add(back))),
            there: Some(Span::from_nanos(there)),
            back: Span::from_nanos(back),
            ttl: 64,
            taken: ReplyKind::First,
            own: Some(Span::from_nanos(100)),
            theirs: Some(Span::from_nanos(200)),
        }
    }

    #[test]
    fn best_exchange_has_the_min_round_trip_time() {
        let mut all = ClockExchanges::default();
        let at = |millis: i64| Time::from_nanos(millis * 1_000_000);
        for (millis, there, back) in
            [(100, 900, 500), (200, 600, 400), (300, 5000, 5000), (1100, 700, 700)]
        {
            all.add(&answer(millis, there, back));
        }
        assert_eq!(all.0.len(), 2);
        let best = all.best(at(1200)).unwrap();
        assert_eq!(
            (best.at, best.ahead, best.bound),
            (at(200), Span::from_nanos(100), Span::from_nanos(501))
        );
        assert_eq!(all.best(at(10_500)).unwrap().at, at(1100));
        assert_eq!(all.best(at(60_000)), None);
        all.add(&answer(20_000, 10, 10));
        assert_eq!(all.0.len(), 1);
    }

    #[test]
    fn contradiction_needs_an_offset_beyond_all_bounds() {
        // A round-trip time of 1,000 ns: 500 ns of max error, and 300 ns of error bounds.
        for (ahead, is_beyond) in
            [(0, false), (801, false), (802, true), (-801, false), (-802, true)]
        {
            let mut answer_with_bounds = answer(0, 500 + ahead, 500 - ahead);
            let exchange = ClockExchange::of(&answer_with_bounds).unwrap();
            assert_eq!(exchange.ahead, Span::from_nanos(ahead));
            assert_eq!(exchange.contradicts_the_clocks(), is_beyond, "{ahead}");
            answer_with_bounds.theirs = None;
            assert!(!ClockExchange::of(&answer_with_bounds).unwrap().contradicts_the_clocks());
        }
        assert_eq!(ClockExchange::of(&ReceivedAnswer { there: None, ..answer(0, 1, 1) }), None);
        assert_eq!(ClockExchange::of(&answer(0, -500, 400)), None);
    }

    proptest! {
        #[test]
        fn true_offset_is_within_the_bound(
            offset in -1_000_000_000_i64..1_000_000_000,
            there in 0_i64..1_000_000_000,
            back in 0_i64..1_000_000_000,
        ) {
            let exchange = ClockExchange::of(&answer(0, there + offset, back - offset)).unwrap();
            let off = (exchange.ahead - Span::from_nanos(offset)).abs();
            prop_assert!(off <= exchange.bound, "{exchange:?}");
        }

        #[test]
        fn any_answer_is_processed_without_panic(there: i64, back: i64) {
            if let Some(exchange) = ClockExchange::of(&answer(0, there, back)) {
                prop_assert!(exchange.bound >= Span::ZERO);
                let _ = exchange.contradicts_the_clocks();
            }
        }
    }
}
