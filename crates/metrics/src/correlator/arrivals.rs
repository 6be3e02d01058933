//! Processing of the observations at B.

use super::departure::Arrived;
use super::departures::Open;
use super::read_ahead::READ_AHEAD;
use super::state::{ARRIVAL, Arrival, Correlator, WAITING_SHARE};
use crate::observation::elapsed;
use crate::{Observation, Outcome, Point};

impl Correlator {
    pub(super) fn arrive(&mut self, received: Observation, sink: &mut impl FnMut(Outcome)) {
        self.pass(Point::B, received.stamp.utc);
        let arrival = Arrival { received, place: self.delivered_until };
        if self.waiting.len() == 0 && self.decide(&arrival, sink) {
            return;
        }
        if (self.waiting.len() + 1) * ARRIVAL > self.config.memory / WAITING_SHARE {
            self.evict_arrival(sink);
        }
        while self.is_full() {
            self.evict_departure(sink);
        }
        self.waiting.push(arrival);
    }

    /// Whether the first waiting observation at B has to wait further.
    pub(super) fn is_blocked(&self) -> bool {
        !self.finished && self.blocked.is_some_and(|(_, until)| self.sent_until <= until)
    }

    pub(super) fn decide_waiting(&mut self, sink: &mut impl FnMut(Outcome)) {
        self.blocked = None;
        while let Some(&arrival) = self.waiting.front() {
            if self.waiting.front_number().is_multiple_of(READ_AHEAD as u64) {
                let next = self.waiting.numbers().take(READ_AHEAD);
                let next = next.filter_map(|number| self.waiting.get(number));
                self.departures.read_ahead_to_match(next.map(|next| next.received.id));
            }
            if !self.decide(&arrival, sink) {
                break;
            }
            self.waiting.pop();
        }
    }

    /// Decides the first undecided observation at B. Returns false if it has to wait.
    fn decide(&mut self, arrival: &Arrival, sink: &mut impl FnMut(Outcome)) -> bool {
        let &Arrival { received, place } = arrival;
        let earliest = place - self.config.timeout;
        let latest = place + self.config.skew;
        let known = self.departures.of(received.id);
        if let Some(open) = known.and_then(|it| self.departures.open(it, earliest, latest)) {
            self.set_matched(&open, arrival, sink);
        } else if self.sent_until <= latest && !self.finished {
            self.blocked = Some((received.id, latest));
            return false;
        } else if let Some(sent) = known.and_then(|it| self.departures.matched(it, earliest)) {
            sink(Outcome::Duplicated { sent, received });
        } else {
            self.suspects_at_a.classify(received, place, &mut |received, reason| {
                sink(Outcome::not_at_a(received, reason));
            });
        }
        self.received_until = place;
        true
    }

    fn set_matched(&mut self, open: &Open, arrival: &Arrival, sink: &mut impl FnMut(Outcome)) {
        let (sent, received) = (open.sent, arrival.received);
        let clock = self.difference_clock.as_ref();
        let (delay, error) = elapsed(clock, &sent.stamp, &received.stamp);
        let arrived = Arrived { place: arrival.place, delay };
        let Some(matched) = self.departures.set_matched(open, arrived) else { return };
        self.suspects_at_a.seen(matched.place);
        sink(Outcome::Matched {
            sent,
            received,
            sequence: matched.sequence,
            delay,
            error,
            reordered: matched.reordered,
            since_previous: matched.since_previous,
            until_next: matched.until_next,
        });
    }
}
