//! The match rule of a running measurement: all rules are tried on the first packets, in bounded memory.

use wirestamp_clock::{Span, Stamp, Time, Utc};
use wirestamp_metrics::{Config, Counts, Point};
use wirestamp_packet::{LinkType, MatchRule};

use crate::identity_sample::IdentitySample;
use crate::point_state::PointState;

/// Time from the first packet of A in which packets are tried.
const TRIAL: Span = Span::from_secs(2);
/// The trial ends after this time, even if a point has no packets.
const MAX_TRIAL: Span = Span::from_secs(20);
/// Max identities of each rule and point.
const MAX_IDENTITIES: usize = 1 << 13;
/// Min number of packets that a rule matches, for it to be used.
const MIN_MATCHED: u64 = 10;
/// The trial ends early if the first rule matches this many packets.
const ENOUGH: u64 = 64;
/// A rule is used instead of the first one if it matches more than this many times as many packets.
const MORE: u64 = 2;

/// The rule that a measurement uses, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleChoice {
    /// The rule with which the measurement began. It matches packets, or there were too few.
    #[default]
    First,
    /// The rule with which the measurement began. Neither this rule nor another one matches many packets.
    NoneMatches,
    /// The measurement began again with another rule.
    Switched(RuleMatches),
    /// The measurement ended before it could begin again with this rule.
    Suggested(RuleMatches),
}

/// Packets of the trial that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleMatches {
    /// The rule.
    pub rule: MatchRule,
    /// Packets of A that it recognises at B, in the sample of the trial.
    pub matched: u64,
    /// Packets of A in this sample.
    pub sent: u64,
}

/// The rules on trial.
pub(crate) struct RuleTrial {
    timeout: Span,
    skew: Span,
    /// All rules; the first is the one in use.
    candidates: Vec<Candidate>,
    /// First stamp of A.
    begin: Option<Time<Utc>>,
    /// Latest stamps of A and B.
    latest: [Option<Time<Utc>>; 2],
    observed: u64,
}

/// A rule, with the packets that it recognises.
struct Candidate {
    states: [PointState; 2],
    samples: [IdentitySample; 2],
}

impl RuleTrial {
    /// A trial of all rules. `rule` is the one in use.
    pub(crate) fn new(rule: MatchRule, config: &Config) -> Self {
        let others = MatchRule::ALL.into_iter().filter(|other| *other != rule);
        let candidates = [rule].into_iter().chain(others).map(|rule| Candidate {
            states: [(); 2].map(|()| PointState::default().recognising(rule)),
            samples: [(); 2].map(|()| IdentitySample::new(MAX_IDENTITIES)),
        });
        let candidates = candidates.collect();
        let (begin, latest, observed) = (None, [None; 2], 0);
        let Config { timeout, skew, .. } = *config;
        Self { timeout, skew, candidates, begin, latest, observed }
    }

    /// Takes a frame of a point. Returns the choice when the trial is over.
    pub(crate) fn take(
        &mut self,
        point: Point,
        link: LinkType,
        bytes: &[u8],
        length: u32,
        stamp: Stamp,
    ) -> Option<RuleChoice> {
        let of = usize::from(point == Point::B);
        for Candidate { states, samples } in &mut self.candidates {
            let sample = &mut samples[of];
            states[of].take(link, bytes, length, stamp, |it| sample.add(it.id, it.stamp.utc));
        }
        let time = stamp.utc;
        if point == Point::A {
            self.begin.get_or_insert(time);
        }
        self.latest[of] = Some(self.latest[of].map_or(time, |latest| latest.max(time)));
        self.observed += 1;
        if self.is_over() {
            return Some(self.choice(self.arrived_until()));
        }
        // Each time at twice as many packets, because this reads all of them.
        if !self.observed.is_power_of_two() {
            return None;
        }
        let first = self.matches(self.candidates.first()?, self.arrived_until());
        (first.matched >= ENOUGH && !is_unmatched(&first)).then_some(RuleChoice::First)
    }

    /// The choice by the packets so far, when no more follow.
    pub(crate) fn choice_at_end(&self) -> RuleChoice {
        self.choice(Some(Time::from_nanos(i64::MAX)))
    }

    /// The choice by the packets that left A until `end`, and those that are matched.
    fn choice(&self, end: Option<Time<Utc>>) -> RuleChoice {
        let mut matches = self.candidates.iter().map(|candidate| self.matches(candidate, end));
        let Some(first) = matches.next() else { return RuleChoice::First };
        if first.sent < MIN_MATCHED || !is_unmatched(&first) {
            return RuleChoice::First;
        }
        let is_better = |found: &RuleMatches| {
            found.matched >= MIN_MATCHED
                && !is_unmatched(found)
                && found.matched > first.matched.saturating_mul(MORE)
        };
        let best = matches.filter(is_better).reduce(|best, other| {
            // Of equals the first, which uses more of a packet.
            if other.matched > best.matched { other } else { best }
        });
        let is_nothing_at_b = self.latest[1].is_none();
        match best {
            Some(best) => RuleChoice::Switched(best),
            None if is_nothing_at_b => RuleChoice::First,
            None => RuleChoice::NoneMatches,
        }
    }

    /// Whether both points have passed the trial, or one of them has for long.
    fn is_over(&self) -> bool {
        let Some(begin) = self.begin else { return false };
        let has_passed = |after: Span| {
            move |latest: &Option<Time<Utc>>| latest.is_some_and(|it| it >= begin + after)
        };
        self.latest.iter().all(has_passed(TRIAL + self.timeout))
            || self.latest.iter().any(has_passed(MAX_TRIAL + self.timeout))
    }

    /// The time until which packets that left A had the timeout to arrive. None if B has no packets.
    fn arrived_until(&self) -> Option<Time<Utc>> {
        self.latest[1].map(|latest| latest - self.timeout)
    }

    /// The packets that left A until `end` or are matched, and those of them that a rule recognises at B.
    fn matches(&self, candidate: &Candidate, end: Option<Time<Utc>>) -> RuleMatches {
        let Candidate { states, samples: [a, b] } = candidate;
        let mut found = RuleMatches { rule: states[0].rule(), matched: 0, sent: 0 };
        for (sent, received) in a.with(b) {
            let delay = received.map(|received| received - sent);
            if delay.is_some_and(|delay| (-self.skew..=self.timeout).contains(&delay)) {
                found.matched += 1;
                found.sent += 1;
            } else if end.is_some_and(|end| sent <= end) {
                found.sent += 1;
            }
        }
        found
    }
}

/// Whether hardly any packet is matched.
fn is_unmatched(matches: &RuleMatches) -> bool {
    let RuleMatches { matched, sent, .. } = *matches;
    Counts { matched, sent, ..Counts::default() }.are_unmatched()
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp};

    use super::*;

    const MS: i64 = 1_000_000;

    /// A UDP datagram from this port with a number in its payload.
    fn datagram(number: u32, port: u16) -> Vec<u8> {
        let header = [0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let [high, low] = port.to_be_bytes();
        let udp = [high, low, 0x13, 0x89, 0, 28, 0, 0];
        let payload = [&number.to_be_bytes()[..], &[7; 16]].concat();
        [&header[..], &udp, &payload].concat()
    }

    fn trial() -> RuleTrial {
        RuleTrial::new(MatchRule::Packet, &Config::default())
    }

    /// Takes a packet every 10 ms at A, and 1 ms later at B, where it has the number and the port that `there` returns.
    /// Returns the choice and the packets until then.
    fn run(there: impl Fn(u32) -> Option<(u32, u16)>) -> Option<(RuleChoice, u32)> {
        let mut trial = trial();
        let mut take = |point, at: i64, bytes: &[u8]| {
            let utc = Time::from_nanos(at);
            let raw = RawStamp { domain: Domain::Realtime, value: 0 };
            let stamp = Stamp { raw, utc, error: Span::ZERO };
            trial.take(point, LinkType::Ip, bytes, 62, stamp)
        };
        for number in 0..3_000 {
            let at = i64::from(number) * 10 * MS;
            let chosen = take(Point::A, at, &datagram(number, 5000));
            let at_b = || {
                let (number, port) = there(number)?;
                take(Point::B, at + MS, &datagram(number, port))
            };
            if let Some(choice) = chosen.or_else(at_b) {
                return Some((choice, number));
            }
        }
        None
    }

    #[test]
    fn rule_that_recognises_the_packets_is_chosen() {
        let (choice, packets) = run(|number| Some((number, 40_000))).unwrap();
        let RuleChoice::Switched(found) = choice else { panic!("{choice:?}") };
        assert_eq!(found.rule, MatchRule::Payload);
        assert!(found.matched == found.sent && found.sent > 200, "{found:?}");
        assert_eq!(packets, 300, "2 s of packets, and the timeout of 1 s");
    }

    #[test]
    fn trial_of_recognised_packets_is_short() {
        let (choice, packets) = run(|number| Some((number, 5000))).unwrap();
        assert_eq!(choice, RuleChoice::First);
        assert!(packets < 150, "{packets}");
    }

    #[test]
    fn first_rule_stays_without_a_better_one() {
        let port = |number: u32| if number.is_multiple_of(5) { 5000 } else { 40_000 };
        let (choice, _) = run(|number| Some((number, port(number)))).unwrap();
        assert_eq!(choice, RuleChoice::First, "a fifth is recognised");
        let (choice, packets) = run(|_| None).unwrap();
        assert_eq!((choice, packets), (RuleChoice::First, 2_100), "B may be idle");
        let (choice, packets) = run(|number| Some((number + 10_000, 5000))).unwrap();
        assert_eq!((choice, packets), (RuleChoice::NoneMatches, 300), "B has other packets");
    }

    #[test]
    fn choice_before_the_end_uses_the_packets_so_far() {
        let mut trial = trial();
        assert_eq!(trial.choice_at_end(), RuleChoice::First);
        for number in 0..20 {
            let stamp = |at: i64| Stamp {
                raw: RawStamp { domain: Domain::Realtime, value: 0 },
                utc: Time::from_nanos(at),
                error: Span::ZERO,
            };
            let at = i64::from(number) * MS;
            let [a, b] = [5000, 40_000].map(|port| datagram(number, port));
            assert_eq!(trial.take(Point::A, LinkType::Ip, &a, 62, stamp(at)), None);
            assert_eq!(trial.take(Point::B, LinkType::Ip, &b, 62, stamp(at + MS)), None);
        }
        assert_eq!(trial.choice(trial.arrived_until()), RuleChoice::First, "none had its timeout");
        let found = RuleMatches { rule: MatchRule::Payload, matched: 20, sent: 20 };
        assert_eq!(trial.choice_at_end(), RuleChoice::Switched(found));
    }
}
