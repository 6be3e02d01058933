//! What a test packet and its answer tell of two clocks: four times, two by each (RFC 5905 section 8).

use std::collections::VecDeque;

use wirestamp_clock::{Span, Time, Utc};

use super::Heard;

/// How long exchanges are kept: which of them took least is most likely to have met no queue.
const KEPT: Span = Span::from_secs(10);

/// How far the reflector's clock is ahead of the sender's, by one packet and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the answer came back, by the sender's clock.
    pub at: Time<Utc>,
    /// How far the reflector's clock is ahead, if both ways took as long.
    pub ahead: Span,
    /// How far that can be off: half of the round trip, all of which may have gone in one direction.
    pub bound: Span,
    /// How far the sender's clock claimed then to be from UTC at the most; none if it is not on UTC.
    pub own: Option<Span>,
    /// The same of the reflector's, as it stood in the answer.
    pub theirs: Option<Span>,
}

impl Exchange {
    /// That of an answer; none of a copy, and where a clock was set meanwhile.
    #[must_use]
    pub fn of(heard: &Heard) -> Option<Self> {
        let (there, trip) = heard.there.zip(heard.round_trip)?;
        let ahead = Span::from_nanos((there - heard.back).as_nanos() / 2);
        // What the division cut off is inside too.
        let bound = Span::from_nanos(trip.as_nanos() / 2 + 1);
        let Heard { at, own, theirs, .. } = *heard;
        (trip >= Span::ZERO).then_some(Self { at, ahead, bound, own, theirs })
    }

    /// Whether the clocks are farther apart than both claim, and than the exchange can be off: then one of them
    /// is worse than it says. Clocks that claim nothing contradict nobody.
    #[must_use]
    pub fn contradicts_the_clocks(&self) -> bool {
        let claimed = self.own.zip(self.theirs).map(|(own, theirs)| own + theirs);
        claimed.is_some_and(|claimed| self.ahead.abs() > claimed + self.bound)
    }
}

/// The exchanges of the last seconds: of each second the one that took least.
#[derive(Clone, Debug, Default)]
pub struct Exchanges(VecDeque<Exchange>);

impl Exchanges {
    /// Takes note of an answer.
    pub fn hear(&mut self, heard: &Heard) {
        let Some(exchange) = Exchange::of(heard) else { return };
        let second = |exchange: &Exchange| exchange.at.interval_begin(Span::from_secs(1));
        match self.0.back_mut().filter(|last| second(last) == second(&exchange)) {
            Some(last) if last.bound <= exchange.bound => {}
            Some(last) => *last = exchange,
            None => self.0.push_back(exchange),
        }
        // A clock that was set back leaves none from the time to come.
        self.0.retain(|it| (exchange.at - it.at).abs() < KEPT);
    }

    /// The one that took least of those that are new at a time.
    #[must_use]
    pub fn best(&self, now: Time<Utc>) -> Option<Exchange> {
        let new = self.0.iter().filter(|it| (now - it.at).abs() < KEPT);
        new.min_by_key(|it| it.bound).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirestamp_metrics::ReplyKind;

    use super::*;

    fn heard(millis: i64, there: i64, back: i64) -> Heard {
        Heard {
            sequence: 0,
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
    fn the_exchange_that_took_least_tells() {
        let mut all = Exchanges::default();
        let at = |millis: i64| Time::from_nanos(millis * 1_000_000);
        for (millis, there, back) in
            [(100, 900, 500), (200, 600, 400), (300, 5000, 5000), (1100, 700, 700)]
        {
            all.hear(&heard(millis, there, back));
        }
        assert_eq!(all.0.len(), 2);
        let best = all.best(at(1200)).unwrap();
        assert_eq!(
            (best.at, best.ahead, best.bound),
            (at(200), Span::from_nanos(100), Span::from_nanos(501))
        );
        assert_eq!(all.best(at(10_500)).unwrap().at, at(1100));
        assert_eq!(all.best(at(60_000)), None);
        all.hear(&heard(20_000, 10, 10));
        assert_eq!(all.0.len(), 1);
    }

    #[test]
    fn clocks_are_contradicted_beyond_all_bounds_and_only_if_both_claim_something() {
        // 1,000 ns there and back: 500 ns of bound, 300 ns of claims, and the rest.
        for (ahead, is_beyond) in
            [(0, false), (801, false), (802, true), (-801, false), (-802, true)]
        {
            let mut said = heard(0, 500 + ahead, 500 - ahead);
            let exchange = Exchange::of(&said).unwrap();
            assert_eq!(exchange.ahead, Span::from_nanos(ahead));
            assert_eq!(exchange.contradicts_the_clocks(), is_beyond, "{ahead}");
            said.theirs = None;
            assert!(!Exchange::of(&said).unwrap().contradicts_the_clocks());
        }
        assert_eq!(Exchange::of(&Heard { there: None, ..heard(0, 1, 1) }), None);
        assert_eq!(Exchange::of(&heard(0, -500, 400)), None);
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_bound(
            offset in -1_000_000_000_i64..1_000_000_000,
            there in 0_i64..1_000_000_000,
            back in 0_i64..1_000_000_000,
        ) {
            let exchange = Exchange::of(&heard(0, there + offset, back - offset)).unwrap();
            let off = (exchange.ahead - Span::from_nanos(offset)).abs();
            prop_assert!(off <= exchange.bound, "{exchange:?}");
        }

        #[test]
        fn nothing_that_is_heard_harms(there: i64, back: i64) {
            if let Some(exchange) = Exchange::of(&heard(0, there, back)) {
                prop_assert!(exchange.bound >= Span::ZERO);
                let _ = exchange.contradicts_the_clocks();
            }
        }
    }
}
