//! What is to happen to which packet.

use wirestamp_clock::Span;

use super::random::SplitMix64;

/// What the stage does to packets, decided for each by the seed and the packet's number alone:
/// whoever has the plan knows the fate of every packet before it is sent, whatever order they come
/// in.
///
/// Shares are from 0 (none) to 1 (all); what is beyond is taken as the nearer end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// What the choices are drawn from.
    pub seed: u64,
    /// How long each packet is held at least.
    pub delay: Span,
    /// How much longer than that at most: each nanosecond up to it is as likely.
    pub jitter: Span,
    /// The share of packets that are dropped.
    pub loss: f64,
    /// The share of the others that are sent twice, the copy with a delay of its own.
    pub duplicate: f64,
    /// The share of what is sent, copies included, that is held back, so that packets overtake it.
    pub reorder: f64,
    /// How much longer than others those are held.
    pub held_back: Span,
}

/// What is to happen to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is dropped.
    Lost,
    /// It is sent on, this long after its arrival.
    Once(Span),
    /// It is sent on twice, this long and this long after its arrival; the second may be the
    /// sooner.
    Twice(Span, Span),
}

impl Plan {
    /// A plan that holds every packet for `delay` and does nothing else to it.
    #[must_use]
    pub const fn delay(delay: Span) -> Self {
        Self {
            seed: 0,
            delay,
            jitter: Span::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            held_back: Span::ZERO,
        }
    }

    /// What is to happen to packet `number`.
    #[must_use]
    pub fn fate(&self, number: u64) -> Fate {
        let mut random = SplitMix64::nth(self.seed, number);
        if random.happens(self.loss) {
            return Fate::Lost;
        }
        let twice = random.happens(self.duplicate);
        let first = self.hold(&mut random);
        if twice { Fate::Twice(first, self.hold(&mut random)) } else { Fate::Once(first) }
    }

    fn hold(&self, random: &mut SplitMix64) -> Span {
        let jitter = Span::from_nanos(random.up_to(self.jitter.as_nanos()));
        let delay = self.delay.max(Span::ZERO) + jitter;
        if random.happens(self.reorder) { delay + self.held_back.max(Span::ZERO) } else { delay }
    }
}

impl Fate {
    /// The delays of what is sent on.
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

    const PLAN: Plan = Plan {
        seed: 42,
        delay: Span::from_millis(2),
        jitter: Span::from_micros(500),
        loss: 0.02,
        duplicate: 0.01,
        reorder: 0.03,
        held_back: Span::from_millis(3),
    };

    /// How many of a million packets have a fate that `is` says yes to.
    fn among_a_million(is: impl Fn(Fate) -> bool) -> f64 {
        f64::from(u32::try_from((0..1_000_000).filter(|&n| is(PLAN.fate(n))).count()).unwrap())
    }

    /// Whether a count is within five standard deviations of a binomial one.
    fn is_likely(count: f64, share: f64) -> bool {
        (count - share * 1e6).abs() < 5.0 * (1e6 * share * (1.0 - share)).sqrt()
    }

    #[test]
    fn the_shares_are_those_that_were_asked_for() {
        assert!(is_likely(among_a_million(|fate| fate == Fate::Lost), 0.02));
        assert!(is_likely(among_a_million(|fate| matches!(fate, Fate::Twice(..))), 0.98 * 0.01));
        let held_back = |delay: Span| delay >= PLAN.delay + PLAN.held_back;
        let first = among_a_million(|fate| fate.delays()[0].is_some_and(held_back));
        assert!(is_likely(first, 0.98 * 0.03));
        let below_middle = |delay: Span| (delay - PLAN.delay).as_nanos() < 250_000;
        let early = among_a_million(|fate| fate.delays()[0].is_some_and(below_middle));
        assert!(is_likely(early, 0.98 * 0.97 * 0.5));
    }

    #[test]
    fn another_seed_has_nothing_to_do_with_the_first() {
        let other = Plan { seed: 43, ..PLAN };
        let is_lost = |plan: &Plan, number| plan.fate(number) == Fate::Lost;
        let both = (0..1_000_000).filter(|&n| is_lost(&PLAN, n) && is_lost(&other, n)).count();
        assert!(is_likely(f64::from(u32::try_from(both).unwrap()), 0.02 * 0.02));
    }

    #[test]
    fn a_plan_of_delay_alone_delays_and_no_more() {
        let delay = Span::from_millis(7);
        assert!((0..100).all(|n| Plan::delay(delay).fate(n) == Fate::Once(delay)));
        assert_eq!(Plan { loss: 1.0, ..PLAN }.fate(5), Fate::Lost);
    }

    proptest! {
        #[test]
        fn a_delay_is_within_its_bounds_and_always_the_same(
            seed: u64, number: u64, delay in 0_i64..1_000_000, jitter in 0_i64..1_000_000,
        ) {
            let (delay, jitter) = (Span::from_nanos(delay), Span::from_nanos(jitter));
            let plan = Plan { seed, jitter, reorder: 0.0, ..PLAN };
            let plan = Plan { delay, ..plan };
            let fate = plan.fate(number);
            prop_assert_eq!(fate, plan.fate(number));
            for held in fate.delays().into_iter().flatten() {
                prop_assert!((delay..=delay + jitter).contains(&held));
            }
        }
    }
}
