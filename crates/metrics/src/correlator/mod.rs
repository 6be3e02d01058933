//! The correlator: what became of each packet between two points.

mod arrivals;
mod config;
mod copies;
mod departure;
mod departures;
mod flow;
mod flows;
mod queue;
mod read_ahead;
mod state;
mod table;
mod unseen;

use wirestamp_clock::{DifferenceClock, Time, Utc};

pub use config::Config;
pub(crate) use flows::hash as hash_of_flow;
pub use state::Correlator;

use self::departures::{Departed, Sent};
use self::flows::Flows;
use self::read_ahead::READ_AHEAD;
use self::state::DEPARTURE;
use crate::{CaptureLoss, Observation, Outcome, Point};

impl Correlator {
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
    /// sees may stay undecided, until [`Self::advance`] or [`Self::finish`].
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

    /// The capture at `point` lost packets there. Called in order with the observations of the
    /// point: before those that lie behind the stretch. Some that lie in it may have been delivered
    /// already.
    ///
    /// A packet that only the other point saw, and that may have passed `point` in the stretch, is
    /// then not [lost](Outcome::Lost) or [unexpected](Outcome::Unexpected) but
    /// [given up](Outcome::Undetermined), up to as many as the capture lost. So what is counted as
    /// lost is what the network lost, exactly, if all that the capture lost is what the other
    /// point saw; and no more than that in any case.
    ///
    /// # Which packets
    ///
    /// Which ones the capture lost cannot be known if the network lost others at the same time.
    /// It is taken to be those that would have come nearest to the stretch, and of several equally
    /// near those that passed first. The place of a packet at the point that did not see it is
    /// taken to be behind the packets that passed the other point before it, which is the latest
    /// place of those that both points saw, or without any, its own place at the other point; and
    /// ahead of the next that both saw. If that reaches into the stretch, behind `from` and ahead of
    /// `until`, it is in it. On a path that keeps packets in order these are the packets between the
    /// two neighbours of the stretch, and none else.
    ///
    /// Only packets that the other point saw from `timeout` before to `skew` after the stretch (at
    /// A: from `skew` before to `timeout` after) can have passed in it, as the rule has it, where
    /// it counts from what was delivered before it was told of; they are told of once the last of
    /// these is decided.
    pub fn missed(&mut self, point: Point, missed: CaptureLoss) {
        match point {
            Point::A => self.unseen_at_a.miss(missed, self.sent_until),
            Point::B => self.unseen_at_b.miss(missed, self.delivered_until),
        }
    }

    /// Takes observations of both points, each point's in its order, as [`Self::observe`] does one by
    /// one. Faster with many packets under way, because memory that is not in the processor's caches
    /// is read for several of them at once.
    pub fn observe_all(&mut self, seen: &[(Point, Observation)], sink: &mut impl FnMut(Outcome)) {
        for seen in seen.chunks(READ_AHEAD) {
            let of = |point| seen.iter().filter(move |it| it.0 == point).map(|(_, seen)| seen);
            self.departures.read_ahead_to_push(of(Point::A));
            if self.waiting.len() == 0 {
                self.departures.read_ahead_to_match(of(Point::B).map(|seen| seen.id));
            }
            for (point, observation) in seen {
                self.observe(*point, *observation, sink);
            }
        }
    }

    /// The point has delivered all that it saw before `time`, and its observations from now on have
    /// places no earlier than that. For a point that sees nothing for a while, so that what the other
    /// point sees is decided all the same.
    pub fn advance(&mut self, point: Point, time: Time<Utc>, sink: &mut impl FnMut(Outcome)) {
        self.pass(point, time);
        self.settle(sink);
    }

    /// Before this place nothing is open: what is reported from now on is of packets that have this place or
    /// a later one, at A if they were seen there, and otherwise at B.
    ///
    /// A stamp may be earlier than its place, by as much as its point's stamps go back.
    #[must_use]
    pub fn decided_until(&self) -> Time<Utc> {
        let open = [
            self.departures.oldest(),
            self.waiting.front().map(|arrival| arrival.place),
            self.unseen_at_a.oldest(),
            self.unseen_at_b.oldest(),
        ];
        let to_come = self.sent_until.min(self.delivered_until);
        open.into_iter().flatten().fold(to_come, Time::min)
    }

    /// Decides everything that is still open: no more observations will come.
    pub fn finish(mut self, sink: &mut impl FnMut(Outcome)) {
        self.finished = true;
        self.settle(sink);
    }

    fn depart(&mut self, sent: Observation, sink: &mut impl FnMut(Outcome)) {
        self.pass(Point::A, sent.stamp.utc);
        if self.is_full() {
            self.retire(sink);
        }
        while self.is_full() {
            self.forget_departure(sink);
        }
        let flow = loop {
            let may_grow = self.free() >= DEPARTURE + Flows::BYTES_EACH;
            match self.departures.flow(&sent.flow, may_grow) {
                Some(flow) => break flow,
                None => self.forget_departure(sink),
            }
        };
        let twin_left = self.departures.push(&sent, flow, self.sent_until);
        if self.held.is_some_and(|(id, _)| id == sent.id) {
            self.held = None;
        }
        if twin_left.is_some_and(|left| left + self.config.timeout >= self.sent_until) {
            sink(Outcome::Identical { sent });
        }
    }

    /// Decides whatever can be decided by now.
    fn settle(&mut self, sink: &mut impl FnMut(Outcome)) {
        if !self.is_held() {
            self.decide_waiting(sink);
        }
        if self.waiting.len() == 0 {
            self.received_until = self.delivered_until;
        }
        self.retire(sink);
        let judged = (!self.finished).then_some(self.received_until);
        self.unseen_at_a.settle(judged, &mut |received, reason| {
            sink(Outcome::not_at_a(received, reason));
        });
        let judged = (!self.finished).then(|| self.passed() - self.config.timeout);
        self.unseen_at_b.settle(judged, &mut |Sent { observation, sequence }, reason| {
            sink(Outcome::not_at_b(observation, sequence, reason));
        });
    }

    /// What both points' times have passed.
    fn passed(&self) -> Time<Utc> {
        self.sent_until.min(self.received_until)
    }

    /// Takes leave of the departures whose fate cannot change any more.
    ///
    /// A's time has to have passed them too, because until then a packet with the same identity
    /// may leave A.
    fn retire(&mut self, sink: &mut impl FnMut(Outcome)) {
        let passed = self.passed();
        while let Some(oldest) = self.departures.oldest()
            && (self.finished || oldest + self.config.timeout < passed)
            && let Some((time, departed)) = self.departures.pop()
        {
            if self.departures.left().is_multiple_of(READ_AHEAD as u64) {
                self.departures.read_ahead_to_pop(READ_AHEAD);
            }
            match departed {
                Departed::Matched(place) => self.unseen_at_b.seen(place),
                Departed::Unmatched(sent) => {
                    self.unseen_at_b.judge(sent, time, &mut |sent, reason| {
                        sink(Outcome::not_at_b(sent.observation, sent.sequence, reason));
                    });
                }
            }
        }
    }
}
