//! Limit of the rate at which a session is answered.

use std::num::NonZeroU32;

use wirestamp_clock::{Span, Time, Utc};

/// Credit of a session that was idle for a second or longer.
const FULL: Span = Span::from_secs(1);

/// Max rate at which a reflector answers the packets of one session.
///
/// A token bucket with room for the answers of one second: after a pause, a session may catch up in one burst. It
/// counts by the times of arrival, so a reflector that was stopped for a while answers what waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    per_second: NonZeroU32,
}

impl RateLimit {
    /// Without other settings: a hundred times the usual max rate of a test. Above it, one session uses a third of
    /// what one thread can answer.
    pub const DEFAULT: Self = Self::per_second(NonZeroU32::new(100_000).unwrap());

    /// At most this many answers a second, and as many at once after an idle second. Rates above one answer per
    /// nanosecond are limited to that.
    #[must_use]
    pub const fn per_second(answers: NonZeroU32) -> Self {
        Self { per_second: answers }
    }

    /// The limit for a test with this number of packets per second: ten times as many, and at least 1000, so that it
    /// affects no packet of the test. A rate that is not a number has the min limit.
    #[must_use]
    pub fn above(packets_per_second: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is 1000 or more; a rate above the range saturates"
        )]
        let answers = (packets_per_second * 10.0).max(1000.0) as u32;
        Self::per_second(NonZeroU32::new(answers).unwrap_or(NonZeroU32::MIN))
    }

    /// Part of the credit that an answer needs.
    fn cost(self) -> Span {
        let nanos = FULL.as_nanos() / i64::from(self.per_second.get());
        Span::from_nanos(nanos.max(1))
    }
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a session may still be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// The time for which answers are allowed: that since the last packet, minus the cost of each answer.
    left: Span,
    /// Arrival of the last packet.
    at: Option<Time<Utc>>,
}

impl Default for Credit {
    fn default() -> Self {
        Self { left: FULL, at: None }
    }
}

impl Credit {
    /// Whether a packet that arrived at this time may be answered; the answer is paid for.
    ///
    /// The times are of the system clock. When it is set back, no credit is earned for once; when it is set forward, the
    /// credit is full. A session is never blocked for longer than the clock runs on.
    pub(super) fn pays(&mut self, limit: RateLimit, at: Time<Utc>) -> bool {
        let earned = self.at.map_or(Span::ZERO, |before| at - before).max(Span::ZERO);
        self.at = Some(at);
        self.left = (self.left + earned).min(FULL);
        let cost = limit.cost();
        if self.left < cost {
            return false;
        }
        self.left = self.left - cost;
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn limit(per_second: u32) -> RateLimit {
        RateLimit::per_second(NonZeroU32::new(per_second).unwrap())
    }

    /// Answers to packets that arrive at these times.
    fn answers(limit: RateLimit, times: impl IntoIterator<Item = i64>) -> usize {
        let mut credit = Credit::default();
        times.into_iter().filter(|at| credit.pays(limit, Time::from_nanos(*at))).count()
    }

    #[test]
    fn burst_of_a_second_is_answered_and_then_the_rate() {
        assert_eq!(answers(limit(50), [0; 1000]), 50);
        // For ten seconds at twenty times the rate.
        let flood = (0..10_000).map(|nth| nth * SECOND / 1000);
        let answered = answers(limit(50), flood);
        assert!((545..=550).contains(&answered), "{answered}");
        let within = (0..500).map(|nth| nth * SECOND / 50);
        assert_eq!(answers(limit(50), within), 500);
    }

    #[test]
    fn pause_restores_the_credit_of_one_second_only() {
        let times = [[0; 100], [SECOND; 100], [1000 * SECOND; 100]].concat();
        assert_eq!(answers(limit(10), times), 30);
    }

    #[test]
    fn clock_that_is_set_back_blocks_no_session() {
        let hour = 3600 * SECOND;
        let times = (0..100)
            .map(|nth| nth * SECOND / 10)
            .map(|at| if at > SECOND { at - hour } else { at });
        assert_eq!(answers(limit(20), times), 100);
    }

    #[test]
    fn limit_of_a_task_is_above_its_rate() {
        for (rate, least) in [(0.001, 1000), (10.0, 1000), (5000.0, 50_000), (1e6, 10_000_000)] {
            assert_eq!(RateLimit::above(rate), limit(least));
        }
        assert_eq!(RateLimit::above(f64::MAX), limit(u32::MAX));
        assert_eq!(RateLimit::above(f64::NAN), limit(1000));
    }

    proptest! {
        #[test]
        fn any_second_has_at_most_twice_the_rate(
            rate in 1_u32..1000, steps in prop::collection::vec(0..SECOND / 100, 1..2000),
        ) {
            let mut at = 0;
            let times = steps.into_iter().map(|step| { at += step; at }).collect::<Vec<_>>();
            let mut credit = Credit::default();
            let answered: Vec<i64> =
                times.into_iter().filter(|at| credit.pays(limit(rate), Time::from_nanos(*at))).collect();
            for (nth, begin) in answered.iter().enumerate() {
                let within = answered[nth..].iter().take_while(|it| **it - begin < SECOND).count();
                // The cost of an answer is rounded down by less than a nanosecond.
                prop_assert!(within <= 2 * usize::try_from(rate).unwrap() + 1, "{within}");
            }
        }
    }
}
