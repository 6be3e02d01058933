//! The packets that left point A and whose fate may still change.

use std::hash::{BuildHasher, RandomState};

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_packet::{FlowKey, PacketId};

use super::flows::{FlowNumber, Flows};
use super::queue::{Link, Queue};
use super::table::{Table, Value};
use crate::Observation;

/// A packet that left point A. Its number is its place in the order of departure at A.
///
/// There may be millions of them, so it is packed: an [`Observation`] taken apart, its flow as a
/// number, and links where there could be references.
#[derive(Clone, Copy)]
pub(super) struct Departure {
    pub(super) id: PacketId,
    raw: u64,
    utc: Time<Utc>,
    error: Span,
    /// Its place: when it left, in the order of departure.
    time: Time<Utc>,
    /// Its place at B and its one-way delay, if it has been matched.
    arrived: Time<Utc>,
    delay: Span,
    /// Its place among the departures of its flow.
    sequence: u64,
    length: u32,
    pub(super) flow: FlowNumber,
    /// The next departure with the same identity.
    twin: Link,
    /// The departures of the same flow just before and just after this one.
    pub(super) previous: Link,
    pub(super) next: Link,
    domain: Domain,
    pub(super) matched: bool,
}

impl Departure {
    fn delay(&self) -> Option<Span> {
        self.matched.then_some(self.delay)
    }

    fn observation(&self, flow: FlowKey) -> Observation {
        let raw = RawStamp { domain: self.domain, value: self.raw };
        let stamp = Stamp { raw, utc: self.utc, error: self.error };
        Observation { id: self.id, flow, length: self.length, stamp }
    }
}

/// The departures of one identity.
#[derive(Clone, Copy)]
pub(super) struct Copies {
    /// The first that may still be matched.
    open: Link,
    /// The last that was matched.
    matched: Link,
    /// The last of all.
    pub(super) last: Link,
}

impl Value for Copies {
    const FREE: Self = Self { open: Link::NONE, matched: Link::NONE, last: Link::NONE };

    fn is_free(&self) -> bool {
        self.last == Link::NONE
    }
}

/// What a match says beyond its delay. The fields are those of [`crate::Outcome::Matched`].
pub(super) struct Match {
    /// The packet's place at A.
    pub(super) place: Time<Utc>,
    pub(super) sequence: u64,
    pub(super) reordered: bool,
    pub(super) since_previous: Option<Span>,
    pub(super) until_next: Option<Span>,
}

/// What became of a departure whose fate can change no more, or has to be given up.
pub(super) enum Departed {
    /// It was matched, and this is its place at B.
    Matched(Time<Utc>),
    Unmatched(Sent),
}

/// A packet at A, and its place among the packets of its flow.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) observation: Observation,
    pub(super) sequence: u64,
}

/// A queue of departures in the order of departure, with an index by identity and the state of
/// each flow. Each operation takes constant time on average.
pub(super) struct Departures {
    pub(super) queue: Queue<Departure>,
    pub(super) copies: Table<Copies>,
    pub(super) flows: Flows,
}

impl Departures {
    /// The bytes that each departure takes in the index.
    pub(super) const INDEX_BYTES_EACH: usize = Table::<Copies>::BYTES_EACH;

    /// The bytes that each departure takes.
    pub(super) const BYTES_EACH: usize = size_of::<Departure>() + Self::INDEX_BYTES_EACH;

    /// An empty queue, with room in the indices for this many departures and flows.
    pub(super) fn new(most: usize, most_flows: usize) -> Self {
        let seed = RandomState::new().hash_one(0);
        Self {
            queue: Queue::new(),
            copies: Table::new(most, seed),
            flows: Flows::new(most_flows, seed),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// How many have left the queue.
    pub(super) fn left(&self) -> u64 {
        self.queue.front_number()
    }

    pub(super) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// When the oldest of them left.
    pub(super) fn oldest(&self) -> Option<Time<Utc>> {
        self.queue.front().map(|departure| departure.time)
    }

    /// The flow with this key, or `None` if there is no room to remember it
    /// ([`Flows::enter`]).
    pub(super) fn flow(&mut self, key: &FlowKey, may_grow: bool) -> Option<FlowNumber> {
        self.flows.enter(key, may_grow)
    }

    /// Adds a departure of a flow that [`Self::flow`] knows; returns when the last one with the
    /// same identity left, if that one is still in the queue.
    pub(super) fn push(
        &mut self,
        sent: &Observation,
        flow: FlowNumber,
        time: Time<Utc>,
    ) -> Option<Time<Utc>> {
        if self.copies.is_crowded() {
            self.index_again();
        }
        let number = self.queue.next_number();
        let (previous, sequence) = self.follow_in_flow(flow, Link::to(number));
        self.queue.push(Departure {
            id: sent.id,
            raw: sent.stamp.raw.value,
            utc: sent.stamp.utc,
            error: sent.stamp.error,
            time,
            arrived: time,
            delay: Span::ZERO,
            sequence,
            length: sent.length,
            flow,
            twin: Link::NONE,
            previous,
            next: Link::NONE,
            domain: sent.stamp.raw.domain,
            matched: false,
        });
        let twin = self.index(number)?;
        let twin = self.linked_mut(twin)?;
        twin.twin = Link::to(number);
        Some(twin.time)
    }

    /// Enters a departure into the index as the last of its identity; returns the one before it.
    fn index(&mut self, number: u64) -> Option<Link> {
        let &Departure { id, matched, .. } = self.queue.get(number)?;
        let link = Link::to(number);
        let Some(slot) = self.slot(id) else {
            let (open, matched) = if matched { (Link::NONE, link) } else { (link, Link::NONE) };
            self.copies.insert(id.0, Copies { open, matched, last: link });
            return None;
        };
        let copies = self.copies.value(slot);
        if matched {
            // What was passed over then is passed over for good.
            (copies.open, copies.matched) = (Link::NONE, link);
        } else if copies.open == Link::NONE {
            copies.open = link;
        }
        Some(std::mem::replace(&mut copies.last, link))
    }

    /// Makes the index larger.
    fn index_again(&mut self) {
        self.copies.clear_larger();
        for number in self.queue.numbers() {
            self.index(number);
        }
    }

    /// Makes the departure with this link the last of its flow and returns the one before it, and its
    /// place in the flow.
    fn follow_in_flow(&mut self, flow: FlowNumber, link: Link) -> (Link, u64) {
        self.flows.depart(flow);
        let Some(flow) = self.flows.get_mut(flow) else { return (Link::NONE, 0) };
        let previous = std::mem::replace(&mut flow.last, link);
        let sequence = flow.next_sequence;
        flow.next_sequence += 1;
        if let Some(previous) = self.linked_mut(previous) {
            previous.next = link;
        }
        (previous, sequence)
    }

    #[inline]
    fn slot(&self, id: PacketId) -> Option<usize> {
        self.copies.find(id.0, |copies| self.linked(copies.last).is_some_and(|last| last.id == id))
    }

    #[inline]
    pub(super) fn linked(&self, link: Link) -> Option<&Departure> {
        self.queue.get(link.number(self.queue.front_number())?)
    }

    #[inline]
    fn linked_mut(&mut self, link: Link) -> Option<&mut Departure> {
        self.queue.get_mut(link.number(self.queue.front_number())?)
    }

    /// The departures of an identity, for [`Self::open`] and [`Self::matched`].
    pub(super) fn of(&self, id: PacketId) -> Option<Known> {
        self.slot(id).map(Known)
    }

    /// The first departure of an identity that has not been matched and left between `earliest`
    /// and `latest`, if there is one. Calls must have times that never go back.
    pub(super) fn open(
        &mut self,
        Known(slot): Known,
        earliest: Time<Utc>,
        latest: Time<Utc>,
    ) -> Option<Open> {
        let mut open = self.copies.value(slot).open;
        while let Some(departure) = self.linked(open)
            && departure.time < earliest
        {
            open = departure.twin;
        }
        self.copies.value(slot).open = open;
        let number = open.number(self.queue.front_number())?;
        let departure = self.queue.get(number).filter(|departure| departure.time <= latest)?;
        let sent = departure.observation(self.flows.get(departure.flow)?.key);
        Some(Open { slot, number, sent })
    }

    /// Marks the departure that [`Self::open`] found as matched.
    pub(super) fn set_matched(
        &mut self,
        open: &Open,
        arrived: Time<Utc>,
        delay: Span,
    ) -> Option<Match> {
        let departure = self.queue.get_mut(open.number)?;
        (departure.arrived, departure.delay, departure.matched) = (arrived, delay, true);
        let Departure { time: place, sequence, flow, twin, previous, next, .. } = *departure;

        let copies = self.copies.value(open.slot);
        copies.open = twin;
        copies.matched = Link::to(open.number);

        let after = self.linked(next).and_then(Departure::delay);
        let before = self.linked(previous).map(Departure::delay);
        let flow = self.flows.get_mut(flow)?;
        let before = before.unwrap_or(flow.gone);
        let reordered = open.number < flow.next_expected;
        if !reordered {
            flow.next_expected = open.number + 1;
        }
        Some(Match {
            place,
            sequence,
            reordered,
            since_previous: before.map(|before| delay - before),
            until_next: after.map(|after| after - delay),
        })
    }

    /// The last departure of an identity that has been matched, if it left no earlier than
    /// `earliest`.
    pub(super) fn matched(
        &mut self,
        Known(slot): Known,
        earliest: Time<Utc>,
    ) -> Option<Observation> {
        let matched = self.copies.value(slot).matched;
        let departure = self.linked(matched).filter(|departure| departure.time >= earliest)?;
        Some(departure.observation(self.flows.get(departure.flow)?.key))
    }

    /// Takes out the oldest departure, and says what its place at A was.
    pub(super) fn pop(&mut self) -> Option<(Time<Utc>, Departed)> {
        let link = Link::to(self.queue.front_number());
        let &Departure { id, twin, flow, .. } = self.queue.front()?;
        self.leave_copies(id, link, twin);
        let oldest = self.queue.front()?;
        let departed = if oldest.matched {
            Departed::Matched(oldest.arrived)
        } else {
            let observation = oldest.observation(self.flows.get(flow)?.key);
            Departed::Unmatched(Sent { observation, sequence: oldest.sequence })
        };
        let (time, delay) = (oldest.time, oldest.delay());
        self.flows.leave(flow, delay);
        self.queue.pop();
        Some((time, departed))
    }

    fn leave_copies(&mut self, id: PacketId, link: Link, twin: Link) {
        let Some(slot) = self.slot(id) else { return };
        let copies = self.copies.value(slot);
        if copies.last == link {
            self.copies.remove(slot);
            return;
        }
        if copies.open == link {
            copies.open = twin;
        }
        if copies.matched == link {
            copies.matched = Link::NONE;
        }
    }
}

/// An identity of which there are departures.
#[derive(Clone, Copy)]
pub(super) struct Known(usize);

/// A departure that an observation at B may be matched to.
pub(super) struct Open {
    slot: usize,
    number: u64,
    pub(super) sent: Observation,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(number: u64, port: u16) -> Observation {
        let stamp = Stamp {
            raw: RawStamp { domain: Domain::Counter, value: 0 },
            utc: Time::from_nanos(0),
            error: Span::ZERO,
        };
        let flow = FlowKey {
            source: ([10, 77, 1, 1], port).into(),
            destination: ([10, 77, 2, 2], 1).into(),
            protocol: 17,
        };
        Observation { id: PacketId(number), flow, length: 60, stamp }
    }

    /// Adds a departure as soon as there is room for its flow; returns how many left for it.
    fn add(departures: &mut Departures, sent: &Observation) -> usize {
        let mut left = 0;
        loop {
            if let Some(flow) = departures.flow(&sent.flow, true) {
                departures.push(sent, flow, sent.stamp.utc);
                return left;
            }
            departures.pop().expect("flows without departures make room");
            left += 1;
        }
    }

    /// Adds, matches and takes out a departure; returns its delay variation.
    fn pass(departures: &mut Departures, sent: &Observation) -> Option<Span> {
        let now = sent.stamp.utc;
        add(departures, sent);
        let known = departures.of(sent.id).expect("it was added");
        let open = departures.open(known, now, now).expect("it was not matched");
        let matched = departures.set_matched(&open, now, Span::ZERO).expect("it is open");
        departures.pop();
        matched.since_previous
    }

    #[test]
    fn a_flow_is_remembered_until_another_needs_its_place() {
        let mut departures = Departures::new(100, 2);
        let mut pass = |id, port| pass(&mut departures, &departure(id, port));
        assert_eq!([pass(1, 1), pass(2, 2)], [None, None]);
        assert_eq!(pass(3, 1), Some(Span::ZERO));
        // Flow 2 has been idle for the longest time.
        assert_eq!([pass(4, 3), pass(5, 1)], [None, Some(Span::ZERO)]);
        assert_eq!([pass(6, 2), pass(7, 1)], [None, Some(Span::ZERO)]);
    }

    #[test]
    fn places_in_a_flow_grow_even_if_it_was_forgotten() {
        let mut departures = Departures::new(100, 2);
        let mut places = Vec::new();
        for port in [1, 1, 2, 3, 4, 1] {
            add(&mut departures, &departure(port.into(), port));
            let Some((_, Departed::Unmatched(left))) = departures.pop() else {
                panic!("it was added, and not matched");
            };
            places.extend((port == 1).then_some(left.sequence));
        }
        assert_eq!(places[..2], [0, 1]);
        assert!(places[2] > 1, "{places:?}");
    }

    #[test]
    fn a_flow_that_finds_no_place_waits_until_one_is_idle() {
        let mut departures = Departures::new(100, 10);
        for port in 0..1000 {
            let left = add(&mut departures, &departure(port.into(), port));
            assert_eq!(left, usize::from(port >= 10));
            assert_eq!(departures.flows(), usize::from(port + 1).min(10));
        }
    }

    #[test]
    fn many_departures_are_found_and_leave_nothing_behind() {
        let mut departures = Departures::new(1000, 1);
        for id in 0..1000 {
            add(&mut departures, &departure(id % 700, 1));
        }
        let of = |departures: &Departures, id| departures.of(PacketId(id)).is_some();
        assert!((0..700).all(|id| of(&departures, id)) && !of(&departures, 700));
        while departures.pop().is_some() {}
        assert!((0..700).all(|id| !of(&departures, id)));
    }
}
