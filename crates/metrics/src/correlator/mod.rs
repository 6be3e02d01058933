//! Correlator: the outcome of each packet between two points.

mod arrivals;
mod config;
mod departure;
mod departures;
mod flow;
mod flows;
mod identical;
mod queue;
mod read_ahead;
mod state;
mod suspects;
mod table;

use wirestamp_clock::{DifferenceClock, Time, Utc};

pub use config::Config;
pub use state::Correlator;

use self::departures::{Departed, SentPacket};
use self::flows::Flows;
use self::read_ahead::READ_AHEAD;
use self::state::DEPARTURE;
use crate::{CaptureLoss, Observation, Outcome, Point};

impl Correlator {
    /// Computes delays between two stamps of this clock's domain from their raw values, not through UTC.
    ///
    /// Only for two points whose stamps come from the same clock, that is on the same host. Counters of two hosts are
    /// unrelated, and the stamps do not show this.
    pub fn set_difference_clock(&mut self, clock: DifferenceClock) {
        self.difference_clock = Some(clock);
    }

    /// Records the next observation of a point, in the order of capture, and reports the outcomes it decides.
    ///
    /// The time of a point advances only with its packets: while it captures none, observations of the other point may
    /// stay undecided until [`Self::advance`] or [`Self::finish`].
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

    /// Records that the capture at `point` lost packets. Must be called before the observations of the point that
    /// follow the interval. Observations in the interval may have been delivered already.
    ///
    /// A packet observed only at the other point that may have passed `point` in the interval is then not
    /// [lost](Outcome::Lost) or [unexpected](Outcome::Unexpected) but [undetermined](Outcome::Undetermined), up to the
    /// number of packets that the capture lost. The loss count is then exactly the network loss, if the other point
    /// captured all packets lost here; it is never higher.
    ///
    /// # Assignment
    ///
    /// If the network lost packets at the same time, it is unknown which ones the capture lost. The packets nearest to
    /// the interval are assigned to it; of several equally near, those that passed first. A packet's place at the
    /// point that did not capture it is taken to be after the packets that passed the other point before it (the
    /// latest place of those captured at both points, or else its own place at the other point) and before the next
    /// packet captured at both. If this range overlaps the interval between `from` and `until`, the packet is in it.
    /// On a path without reordering these are exactly the packets between the two neighbours of the interval.
    ///
    /// Only packets observed at the other point from `timeout` before to `skew` after the interval (for losses at A:
    /// from `skew` before to `timeout` after) can have passed in it. Here the interval begins no earlier than the last
    /// observation delivered before this call. The outcomes of all these packets are reported once the last is decided.
    pub fn missed(&mut self, point: Point, missed: CaptureLoss) {
        match point {
            Point::A => self.suspects_at_a.miss(missed, self.sent_until),
            Point::B => self.suspects_at_b.miss(missed, self.delivered_until),
        }
    }

    /// Records observations, each point's in its order, like repeated calls of [`Self::observe`]. `read` returns the
    /// point and the observation of an item. Faster with many packets in flight, because memory outside the processor's
    /// caches is read for several of them at once.
    pub fn observe_all<T>(
        &mut self,
        seen: &[T],
        read: impl for<'a> Fn(&'a T) -> (Point, &'a Observation),
        sink: &mut impl FnMut(Outcome),
    ) {
        for seen in seen.chunks(READ_AHEAD) {
            let of = |point| seen.iter().map(&read).filter(move |it| it.0 == point).map(|it| it.1);
            self.departures.read_ahead_to_push(of(Point::A));
            if self.waiting.len() == 0 {
                self.departures.read_ahead_to_match(of(Point::B).map(|seen| seen.id));
            }
            for (point, observation) in seen.iter().map(&read) {
                self.observe(point, *observation, sink);
            }
        }
    }

    /// Records that the point has delivered all observations before `time`. Decides observations of the other point
    /// while this one captures nothing.
    pub fn advance(&mut self, point: Point, time: Time<Utc>, sink: &mut impl FnMut(Outcome)) {
        self.pass(point, time);
        self.settle(sink);
    }

    /// Place before which all outcomes are final. Later outcomes are of packets at this place or after it: the place at
    /// A if observed there, otherwise at B.
    ///
    /// A stamp may be earlier than its place, by as much as the stamps of its point go back.
    #[must_use]
    pub fn decided_until(&self) -> Time<Utc> {
        let open = [
            self.departures.oldest(),
            self.waiting.front().map(|arrival| arrival.place),
            self.suspects_at_a.oldest(),
            self.suspects_at_b.oldest(),
        ];
        let to_come = self.sent_until.min(self.delivered_until);
        open.into_iter().flatten().fold(to_come, Time::min)
    }

    /// Decides all open observations: no more will follow.
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
            self.evict_departure(sink);
        }
        let flow = loop {
            let may_grow = self.free() >= DEPARTURE + Flows::BYTES_EACH;
            match self.departures.flow(&sent.flow, may_grow) {
                Some(flow) => break flow,
                None => self.evict_departure(sink),
            }
        };
        let twin_left = self.departures.push(&sent, flow, self.sent_until);
        if self.blocked.is_some_and(|(id, _)| id == sent.id) {
            self.blocked = None;
        }
        if twin_left.is_some_and(|left| left + self.config.timeout >= self.sent_until) {
            sink(Outcome::Identical { sent });
        }
    }

    /// Decides all observations that can be decided now.
    fn settle(&mut self, sink: &mut impl FnMut(Outcome)) {
        if !self.is_blocked() {
            self.decide_waiting(sink);
        }
        if self.waiting.len() == 0 {
            self.received_until = self.delivered_until;
        }
        self.retire(sink);
        let classified = (!self.finished).then_some(self.received_until);
        self.suspects_at_a.settle(classified, &mut |received, reason| {
            sink(Outcome::not_at_a(received, reason));
        });
        let classified = (!self.finished).then(|| self.passed() - self.config.timeout);
        self.suspects_at_b.settle(
            classified,
            &mut |SentPacket { observation, sequence }, reason| {
                sink(Outcome::not_at_b(observation, sequence, reason));
            },
        );
    }

    /// Time that both points have passed.
    fn passed(&self) -> Time<Utc> {
        self.sent_until.min(self.received_until)
    }

    /// Removes the departures that are decided for good.
    ///
    /// A's time must have passed them as well, because until then a packet with the same identity may leave A.
    fn retire(&mut self, sink: &mut impl FnMut(Outcome)) {
        let passed = self.passed();
        while let Some(oldest) = self.departures.oldest()
            && (self.finished || oldest + self.config.timeout < passed)
            && let Some((time, departed)) = self.departures.pop()
        {
            if self.departures.queue.front_number().is_multiple_of(READ_AHEAD as u64) {
                self.departures.read_ahead_to_pop(READ_AHEAD);
            }
            match departed {
                Departed::Matched(place) => self.suspects_at_b.seen(place),
                Departed::Unmatched(sent) => {
                    self.suspects_at_b.classify(sent, time, &mut |sent, reason| {
                        sink(Outcome::not_at_b(sent.observation, sent.sequence, reason));
                    });
                }
            }
        }
    }
}
