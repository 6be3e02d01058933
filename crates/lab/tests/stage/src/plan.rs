//! Planned delivery of each packet.

use wirestamp_clock::Span;

use crate::random::SplitMix64;

/// Impairments of the stage. Seed and packet number alone determine the delivery of each packet, so
/// it is known before the packet is sent and does not depend on the order of packets.
///
/// Shares are from 0 (none) to 1 (all); values outside are clamped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImpairmentPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Min delay of each packet.
    pub delay: Span,
    /// Max additional delay, uniformly distributed from 0.
    pub jitter: Span,
    /// Share of packets that are dropped.
    pub loss: f64,
    /// Share of the other packets that are sent twice, with independent delays.
    pub duplicate: f64,
    /// Share of the sent packets, duplicates included, that get `reorder_delay`, so that later packets
    /// overtake them.
    pub reorder: f64,
    /// Additional delay of reordered packets.
    pub reorder_delay: Span,
}

/// Planned delivery of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedDelivery {
    /// Dropped.
    Lost,
    /// Sent once, with this delay.
    Once(Span),
    /// Sent twice, with these delays in any order.
    Twice(Span, Span),
}

impl ImpairmentPlan {
    /// A plan with this delay for every packet, and no other impairment.
    #[must_use]
    pub const fn delay(delay: Span) -> Self {
        Self {
            seed: 0,
            delay,
            jitter: Span::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_delay: Span::ZERO,
        }
    }

    /// Planned delivery of packet `number`.
    #[must_use]
    pub fn delivery(&self, number: u64) -> PlannedDelivery {
        let mut random = SplitMix64::nth(self.seed, number);
        if random.happens(self.loss) {
            return PlannedDelivery::Lost;
        }
        let twice = random.happens(self.duplicate);
        let first = self.draw_delay(&mut random);
        if twice {
            PlannedDelivery::Twice(first, self.draw_delay(&mut random))
        } else {
            PlannedDelivery::Once(first)
        }
    }

    fn draw_delay(&self, random: &mut SplitMix64) -> Span {
        let jitter = Span::from_nanos(random.up_to(self.jitter.as_nanos()));
        let delay = self.delay.max(Span::ZERO) + jitter;
        if random.happens(self.reorder) {
            delay + self.reorder_delay.max(Span::ZERO)
        } else {
            delay
        }
    }
}

impl PlannedDelivery {
    /// The delays of packet and duplicate.
    #[must_use]
    pub const fn delays(self) -> [Option<Span>; 2] {
        match self {
            Self::Lost => [None, None],
            Self::Once(delay) => [Some(delay), None],
            Self::Twice(first, second) => [Some(first), Some(second)],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAN: ImpairmentPlan = ImpairmentPlan {
        seed: 42,
        delay: Span::from_millis(2),
        jitter: Span::from_micros(500),
        loss: 0.02,
        duplicate: 0.01,
        reorder: 0.03,
        reorder_delay: Span::from_millis(3),
    };

    /// Number of packets, of a million, for whose delivery `is` returns true.
    fn among_a_million(is: impl Fn(PlannedDelivery) -> bool) -> f64 {
        f64::from(u32::try_from((0..1_000_000).filter(|&n| is(PLAN.delivery(n))).count()).unwrap())
    }

    /// Whether a count of a million is within five standard deviations of a binomial distribution.
    fn is_likely(count: f64, share: f64) -> bool {
        (count - share * 1e6).abs() < 5.0 * (1e6 * share * (1.0 - share)).sqrt()
    }

    #[test]
    fn shares_match_the_plan() {
        assert!(is_likely(among_a_million(|planned| planned == PlannedDelivery::Lost), 0.02));
        assert!(is_likely(
            among_a_million(|planned| matches!(planned, PlannedDelivery::Twice(..))),
            0.98 * 0.01
        ));
        let reorder_delay = |delay: Span| delay >= PLAN.delay + PLAN.reorder_delay;
        let first = among_a_million(|planned| planned.delays()[0].is_some_and(reorder_delay));
        assert!(is_likely(first, 0.98 * 0.03));
        let below_middle = |delay: Span| (delay - PLAN.delay).as_nanos() < 250_000;
        let early = among_a_million(|planned| planned.delays()[0].is_some_and(below_middle));
        assert!(is_likely(early, 0.98 * 0.97 * 0.5));
    }

    #[test]
    fn plans_with_different_seeds_are_independent() {
        let other = ImpairmentPlan { seed: 43, ..PLAN };
        let is_lost =
            |plan: &ImpairmentPlan, number| plan.delivery(number) == PlannedDelivery::Lost;
        let both = (0..1_000_000).filter(|&n| is_lost(&PLAN, n) && is_lost(&other, n)).count();
        assert!(is_likely(f64::from(u32::try_from(both).unwrap()), 0.02 * 0.02));
    }

    #[test]
    fn delay_plan_only_delays() {
        let delay = Span::from_millis(7);
        assert!(
            (0..100)
                .all(|n| ImpairmentPlan::delay(delay).delivery(n) == PlannedDelivery::Once(delay))
        );
        assert_eq!(ImpairmentPlan { loss: 1.0, ..PLAN }.delivery(5), PlannedDelivery::Lost);
    }

    proptest! {
        #[test]
        fn delays_are_bounded_and_reproducible(
            seed: u64, number: u64, delay in 0_i64..1_000_000, jitter in 0_i64..1_000_000,
        ) {
            let (delay, jitter) = (Span::from_nanos(delay), Span::from_nanos(jitter));
            let plan = ImpairmentPlan { seed, jitter, reorder: 0.0, ..PLAN };
            let plan = ImpairmentPlan { delay, ..plan };
            let planned = plan.delivery(number);
            prop_assert_eq!(planned, plan.delivery(number));
            for queued in planned.delays().into_iter().flatten() {
                prop_assert!((delay..=delay + jitter).contains(&queued));
            }
        }
    }
}
