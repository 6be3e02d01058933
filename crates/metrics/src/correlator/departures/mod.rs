//! The packets that left point A and whose fate may still change.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::{FlowKey, PacketId};

use super::copies::Copies;
use super::departure::{Arrived, Departure, State, Unmatched};
use super::flow::{FlowNumber, Order};
use super::flows::Flows;
use super::queue::{Link, Queue};
use super::table::Table;
use crate::Observation;

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
/// each flow. Each operation takes constant time on average, but for identities that several
/// departures share.
pub(super) struct Departures {
    pub(super) queue: Queue<Departure>,
    /// The last departure of each identity.
    pub(super) index: Table<Link>,
    /// The identities that more than one departure has, or had.
    shared: BTreeMap<PacketId, Copies>,
    /// The one behind that which was matched last.
    pub(super) expected: u64,
    pub(super) flows: Flows,
}

impl Departures {
    /// The bytes that each departure takes in the index.
    pub(super) const INDEX_BYTES_EACH: usize = Table::<Link>::BYTES_EACH;

    /// The bytes that each departure takes.
    pub(super) const BYTES_EACH: usize = size_of::<Departure>() + Self::INDEX_BYTES_EACH;

    /// The bytes that each shared identity takes: a B-tree's nodes may be half empty.
    pub(super) const SHARED_BYTES_EACH: usize = 2 * size_of::<(PacketId, Copies)>();

    /// An empty queue, with room in the indices for this many departures and flows.
    pub(super) fn new(most: usize, most_flows: usize) -> Self {
        let seed = RandomState::new().hash_one(0);
        Self {
            queue: Queue::new(),
            index: Table::new(most, seed),
            shared: BTreeMap::new(),
            expected: 0,
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

    /// How many identities more than one departure has, or had.
    pub(super) fn shared(&self) -> usize {
        self.shared.len()
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
        if self.index.is_crowded() {
            self.index_again();
        }
        let link = Link::to(self.queue.next_number());
        let (previous, sequence) = self.flows.depart(flow, link).unwrap_or((Link::NONE, 0));
        let open = Unmatched { twin: Link::NONE, previous, next: Link::NONE, sequence };
        let twin = self.set_last(sent.id, link);
        self.queue.push(Departure::new(sent, time, flow, open));
        self.share(twin?, link)
    }

    /// Enters a departure into the index as the last of its identity; returns the one before it.
    fn set_last(&mut self, id: PacketId, link: Link) -> Option<Link> {
        match self.index.search(id.0, |last| self.has(last, id)) {
            Ok(slot) => Some(std::mem::replace(self.index.value(slot), link)),
            Err(free) => {
                self.index.fill(free, id.0, link);
                None
            }
        }
    }

    /// Takes down that a departure has the identity of the one before it; returns when that left.
    fn share(&mut self, before: Link, link: Link) -> Option<Time<Utc>> {
        self.linked_mut(link)?.set_shared();
        let twin = self.linked_mut(before)?;
        twin.set_shared();
        let (id, time) = (twin.id, twin.time);
        let open = twin.unmatched_mut();
        let copies = Copies::of(before, open.is_some());
        if let Some(open) = open {
            open.twin = link;
        }
        self.shared.entry(id).or_insert(copies).add(link);
        Some(time)
    }

    /// Makes the index larger.
    fn index_again(&mut self) {
        self.index.clear_larger();
        for number in self.queue.numbers() {
            if let Some(id) = self.queue.get(number).map(|departure| departure.id) {
                self.set_last(id, Link::to(number));
            }
        }
    }

    /// Whether the departure with this link has this identity.
    #[inline]
    fn has(&self, link: Link, id: PacketId) -> bool {
        self.linked(link).is_some_and(|departure| departure.id == id)
    }

    #[inline]
    pub(super) fn linked(&self, link: Link) -> Option<&Departure> {
        self.queue.get(link.number(self.queue.front_number())?)
    }

    #[inline]
    fn linked_mut(&mut self, link: Link) -> Option<&mut Departure> {
        self.queue.get_mut(link.number(self.queue.front_number())?)
    }

    /// A departure with this identity whose number is this one or a neighbour of it. Packets mostly
    /// arrive in the order in which they left, and then the index does not have to be read, which may
    /// be in none of the processor's caches.
    #[inline]
    pub(super) fn near(&self, number: u64, id: PacketId) -> Option<u64> {
        let has_it = |number: &u64| self.queue.get(*number).is_some_and(|it| it.id == id);
        [number, number + 1, number.wrapping_sub(1)].into_iter().find(has_it)
    }

    /// The departures of an identity, for [`Self::open`] and [`Self::matched`].
    pub(super) fn of(&self, id: PacketId) -> Option<Copies> {
        let link = match self.near(self.expected, id) {
            Some(number) => Link::to(number),
            None => self.index.get(self.index.find(id.0, |last| self.has(last, id))?),
        };
        let departure = self.linked(link)?;
        match departure.is_shared() {
            false => Some(Copies::of(link, departure.unmatched().is_some())),
            true => self.shared.get(&id).copied(),
        }
    }

    /// The first departure of an identity that has not been matched and left between `earliest`
    /// and `latest`, if there is one. Calls must have times that never go back.
    pub(super) fn open(
        &mut self,
        copies: Copies,
        earliest: Time<Utc>,
        latest: Time<Utc>,
    ) -> Option<Open> {
        let mut link = copies.open;
        while let Some(departure) = self.linked(link)
            && departure.time < earliest
        {
            let (id, twin) = (departure.id, departure.twin());
            if let Some(copies) = self.shared.get_mut(&id) {
                copies.open = twin;
            }
            link = twin;
        }
        let departure = self.linked(link).filter(|departure| departure.time <= latest)?;
        let sent = departure.observation(self.flows.get(departure.flow)?.key);
        Some(Open { link, sent })
    }

    /// Marks the departure that [`Self::open`] found as matched.
    pub(super) fn set_matched(&mut self, open: &Open, arrival: Arrived) -> Option<Match> {
        self.expected = open.link.number(self.queue.front_number())? + 1;
        let departure = self.linked_mut(open.link)?;
        let &Unmatched { twin, previous, next, sequence } = departure.unmatched()?;
        let (place, flow) = (departure.time, departure.flow);
        departure.set_matched(arrival);
        if departure.is_shared()
            && let Some(copies) = self.shared.get_mut(&open.sent.id)
        {
            copies.set_matched(open.link, twin);
        }

        let delay = arrival.delay;
        let flow = self.flows.get_mut(flow)?;
        let order = flow.arrive(sequence, delay);
        let sequence = flow.sequence(sequence);
        let (before, after) = match order {
            Order::Follows(Some(before)) => (Some(before), None),
            Order::Follows(None) => {
                self.set_next(previous, open.link);
                (None, None)
            }
            Order::Reordered => {
                let gone = flow.gone;
                self.set_next(previous, open.link);
                let delay_of = |it: &Departure| it.arrival().map(|arrival| arrival.delay);
                let before = self.linked(previous).map_or(gone, delay_of);
                (before, self.linked(next).and_then(delay_of))
            }
        };
        Some(Match {
            place,
            sequence,
            reordered: matches!(order, Order::Reordered),
            since_previous: before.map(|before| delay - before),
            until_next: after.map(|after| after - delay),
        })
    }

    /// The departure just after this one in its flow has been matched before it.
    fn set_next(&mut self, departure: Link, next: Link) {
        if let Some(open) = self.linked_mut(departure).and_then(Departure::unmatched_mut) {
            open.next = next;
        }
    }

    /// The last departure of an identity that has been matched, if it left no earlier than
    /// `earliest`.
    pub(super) fn matched(&self, copies: Copies, earliest: Time<Utc>) -> Option<Observation> {
        let matched = self.linked(copies.matched);
        let departure = matched.filter(|departure| departure.time >= earliest)?;
        Some(departure.observation(self.flows.get(departure.flow)?.key))
    }

    /// Takes out the oldest departure, and says what its place at A was.
    pub(super) fn pop(&mut self) -> Option<(Time<Utc>, Departed)> {
        let link = Link::to(self.queue.front_number());
        let &oldest = self.queue.front()?;
        self.leave_index(&oldest, link);
        let arrival = oldest.arrival();
        let flow = self.flows.leave(oldest.flow, link, arrival.map(|it| it.delay))?;
        let departed = match oldest.state {
            State::Matched { arrival, .. } => Departed::Matched(arrival.place),
            State::Open { open, .. } => Departed::Unmatched(Sent {
                observation: oldest.observation(flow.key),
                sequence: flow.sequence(open.sequence),
            }),
        };
        self.queue.pop();
        Some((oldest.time, departed))
    }

    fn leave_index(&mut self, departure: &Departure, link: Link) {
        let id = departure.id;
        if let Some(slot) = self.index.find(id.0, |last| last == link) {
            self.index.remove(slot);
            if departure.is_shared() {
                self.shared.remove(&id);
            }
        } else if let Some(copies) = self.shared.get_mut(&id) {
            copies.leave(link, departure.twin());
        }
    }
}

/// A departure that an observation at B may be matched to.
pub(super) struct Open {
    link: Link,
    pub(super) sent: Observation,
}

#[cfg(test)]
mod tests;
