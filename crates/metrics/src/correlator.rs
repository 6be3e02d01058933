//! The correlator: what became of each packet between two points.

use std::collections::VecDeque;

use wirestamp_clock::{DifferenceClock, Span, Time, Utc};

use crate::departures::Departures;
use crate::observation::elapsed;
use crate::{Observation, Outcome, Point};

/// What a [`Correlator`] needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long after its departure a packet is waited for. RFC 7680 section 2.5 leaves the
    /// choice to the measurement: too short counts slow packets as lost (and then as unexpected),
    /// too long only costs memory, about 0.3 kB for each packet sent in this time.
    ///
    /// The default is 1 s, more than twice the 400 ms of one-way delay that ITU-T G.114 tells
    /// networks not to exceed. Measure a satellite or an overfilled buffer with more.
    pub timeout: Span,
    /// How many packets sent, and how many packets received and not yet decided, are kept at
    /// most. Beyond it the oldest is given up.
    ///
    /// The default is 2^20: about one second of the million packets a second that one core can
    /// take in.
    pub capacity: usize,
    /// How far B's clock may be behind A's, beyond what the packet takes. A packet that seems to
    /// arrive longer than this before it was sent is not matched.
    ///
    /// The default is 100 ms, the order of what badly synchronised hosts show. It costs only that
    /// what was seen at B alone is known this much later.
    pub skew: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self { timeout: Span::from_secs(1), capacity: 1 << 20, skew: Span::from_millis(100) }
    }
}

/// Matches the observations of two points and says of each what became of it.
///
/// # The rule
///
/// Each point's observations have an order, that in which the point captured them. A point's time
/// is the latest stamp it has delivered; the *place* of an observation is its point's time just
/// after it, so places never go back even where neighbouring stamps do.
///
/// B's observations are taken in B's order. Each is matched to the first packet at A, in A's order,
/// that has its identity, was not matched before, and whose place lies between `timeout` before
/// and `skew` after its own. If there is none, but one that was matched already, it is a
/// duplicate of the last such; otherwise it is unexpected. Packets at A that nothing at B was
/// matched to are lost.
///
/// So the outcomes depend on the two streams only, and not on how the calls for A and B interleave
/// (unless the capacity is reached). What changes with the interleaving is when an outcome is
/// reported: an observation at B for which no packet is at hand waits, and all behind it wait,
/// until A has delivered the packet or A's time has passed it by `skew`. A loss is reported when
/// the times of both points have passed the packet by `timeout`.
///
/// A stamp that is wrong and far ahead holds its point's time there, and with it the rule's
/// window. Stamps must come from one clock for each point, without steps backwards larger than
/// `skew`.
///
/// # Cost
///
/// Time is constant for each observation on average; memory is bounded by [`Config::capacity`].
/// Where one stream can run far ahead of the other, as with two files, the caller delivers the
/// observations of both in the order of their stamps, or the capacity is reached.
pub struct Correlator {
    config: Config,
    difference_clock: Option<DifferenceClock>,
    departures: Departures,
    /// Observations at B that are not decided yet, in B's order.
    waiting: VecDeque<Observation>,
    /// A's time.
    sent_until: Time<Utc>,
    /// B's time, as far as B's observations are decided.
    received_until: Time<Utc>,
    /// When the departures left that had to be forgotten before their time.
    forgotten_sent: Gap,
    /// When the observations at B were made that had to be forgotten undecided.
    forgotten_received: Gap,
    finished: bool,
}

impl Correlator {
    /// A correlator that has seen nothing. A capacity of 0 is taken as 1, and negative spans as 0.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let beginning = Time::from_nanos(i64::MIN);
        let config = Config {
            timeout: config.timeout.max(Span::ZERO),
            capacity: config.capacity.max(1),
            skew: config.skew.max(Span::ZERO),
        };
        Self {
            config,
            difference_clock: None,
            departures: Departures::new(config.capacity),
            waiting: VecDeque::new(),
            sent_until: beginning,
            received_until: beginning,
            forgotten_sent: Gap::default(),
            forgotten_received: Gap::default(),
            finished: false,
        }
    }

    /// From now on, takes the delay between two stamps of this clock's domain from their raw
    /// values, not through UTC.
    ///
    /// Only for two points whose stamps come from the same clock, that is on the same host: the
    /// counters of two hosts have nothing to do with each other, and nothing in the stamps shows
    /// it.
    pub fn set_difference_clock(&mut self, clock: DifferenceClock) {
        self.difference_clock = Some(clock);
    }

    /// Takes the next observation of a point, in the order in which that point captured them, and
    /// reports what is decided by it.
    ///
    /// A point's time is known from its packets only: while it sees none, what the other point
    /// sees may stay undecided, at the latest until [`Self::finish`].
    pub fn observe(
        &mut self,
        point: Point,
        observation: Observation,
        sink: &mut impl FnMut(Outcome),
    ) {
        match point {
            Point::A => self.depart(observation, sink),
            Point::B => self.arrive(observation, sink),
        }
        self.settle(sink);
    }

    /// Decides everything that is still open: no more observations will come.
    pub fn finish(mut self, sink: &mut impl FnMut(Outcome)) {
        self.finished = true;
        self.settle(sink);
    }

    fn depart(&mut self, sent: Observation, sink: &mut impl FnMut(Outcome)) {
        self.sent_until = self.sent_until.max(sent.stamp.utc);
        self.retire(sink);
        if self.departures.is_full() {
            self.forget_departure(sink);
        }
        let twin_left = self.departures.push(sent, self.sent_until);
        if twin_left.is_some_and(|left| left + self.config.timeout >= self.sent_until) {
            sink(Outcome::Identical { sent });
        }
    }

    fn arrive(&mut self, received: Observation, sink: &mut impl FnMut(Outcome)) {
        if self.waiting.len() >= self.config.capacity {
            self.forget_arrival(sink);
        }
        self.waiting.push_back(received);
    }

    /// Decides whatever can be decided by now.
    fn settle(&mut self, sink: &mut impl FnMut(Outcome)) {
        while let Some(&received) = self.waiting.front() {
            let Some(outcome) = self.decide(received) else { break };
            self.waiting.pop_front();
            sink(outcome);
        }
        self.retire(sink);
    }

    /// Decides on the first of the waiting observations at B, or returns `None` if it has to wait.
    fn decide(&mut self, received: Observation) -> Option<Outcome> {
        let place = self.received_until.max(received.stamp.utc);
        let earliest = place - self.config.timeout;
        let latest = place + self.config.skew;
        let uncertain = self.forgotten_sent.covers(place, self.config.skew, self.config.timeout);
        let outcome = if let Some(number) = self.departures.open(received.id, earliest, latest) {
            self.matched(number, received)?
        } else if self.sent_until <= latest && !self.finished {
            return None;
        } else if let Some(&sent) = self.departures.matched(received.id, earliest) {
            Outcome::Duplicated { sent, received }
        } else if uncertain {
            Outcome::GivenUp { point: Point::B, observation: received }
        } else {
            Outcome::Unexpected { received }
        };
        self.received_until = place;
        Some(outcome)
    }

    fn matched(&mut self, number: u64, received: Observation) -> Option<Outcome> {
        let sent = self.departures.sent(number)?;
        let clock = self.difference_clock.as_ref();
        let (delay, error) = elapsed(clock, &sent.stamp, &received.stamp);
        let matched = self.departures.set_matched(number, delay)?;
        Some(Outcome::Matched {
            sent: matched.sent,
            received,
            sequence: matched.sequence,
            delay,
            error,
            reordered: matched.reordered,
            since_previous: matched.since_previous,
            until_next: matched.until_next,
        })
    }

    /// Takes leave of the departures whose fate cannot change any more.
    ///
    /// A's time has to have passed them too, because until then a packet with the same identity
    /// may leave A.
    fn retire(&mut self, sink: &mut impl FnMut(Outcome)) {
        let passed = self.sent_until.min(self.received_until);
        while let Some(oldest) = self.departures.oldest()
            && (self.finished || oldest.time + self.config.timeout < passed)
        {
            self.take_leave(|sent, sequence| Outcome::Lost { sent, sequence }, sink);
        }
    }

    fn forget_departure(&mut self, sink: &mut impl FnMut(Outcome)) {
        if let Some(oldest) = self.departures.oldest() {
            // Matched or not: a copy that arrives later can no longer be recognised.
            self.forgotten_sent.extend(oldest.time);
            self.take_leave(
                |sent, _| Outcome::GivenUp { point: Point::A, observation: sent },
                sink,
            );
        }
    }

    /// Takes out the oldest departure and, if it was not matched, reports it.
    fn take_leave(
        &mut self,
        report: impl FnOnce(Observation, u64) -> Outcome,
        sink: &mut impl FnMut(Outcome),
    ) {
        let Some(departure) = self.departures.pop() else { return };
        let Config { timeout, skew, .. } = self.config;
        let uncertain = self.forgotten_received.covers(departure.time, timeout, skew);
        if departure.delay.is_some() {
            return;
        }
        sink(if uncertain {
            Outcome::GivenUp { point: Point::A, observation: departure.sent }
        } else {
            report(departure.sent, departure.sequence)
        });
    }

    fn forget_arrival(&mut self, sink: &mut impl FnMut(Outcome)) {
        if let Some(observation) = self.waiting.pop_front() {
            self.received_until = self.received_until.max(observation.stamp.utc);
            self.forgotten_received.extend(self.received_until);
            sink(Outcome::GivenUp { point: Point::B, observation });
        }
    }
}

/// A stretch of time in which observations of one point were forgotten, so that nothing can be
/// said about what the other point saw around it.
#[derive(Clone, Copy, Debug, Default)]
struct Gap(Option<(Time<Utc>, Time<Utc>)>);

impl Gap {
    /// Adds an observation that was made at `time`. Calls must have times that never go back.
    fn extend(&mut self, time: Time<Utc>) {
        let first = self.0.map_or(time, |(first, _)| first);
        self.0 = Some((first, time));
    }

    /// Whether `time` is at most `before` ahead of the stretch and at most `after` behind it.
    /// Calls must have times that never go back, because a stretch left behind is dropped.
    fn covers(&mut self, time: Time<Utc>, before: Span, after: Span) -> bool {
        let Some((first, last)) = self.0 else { return false };
        if time > last + after {
            self.0 = None;
            return false;
        }
        time >= first - before
    }
}
