//! Packets that left point A and are not decided for good.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::{FlowKey, PacketId};

use super::departure::{Arrived, Departure, State, Unmatched};
use super::flow::{FlowNumber, Order};
use super::flows::Flows;
use super::identical::IdenticalDepartures;
use super::queue::{Link, Queue};
use super::table::Table;
use crate::Observation;

/// Details of a match beyond its delay. The fields are those of [`crate::Outcome::Matched`].
pub(super) struct Match {
    /// Position at A.
    pub(super) place: Time<Utc>,
    pub(super) sequence: u64,
    pub(super) reordered: bool,
    pub(super) since_previous: Option<Span>,
    pub(super) until_next: Option<Span>,
}

/// Result for a departure that leaves the queue.
pub(super) enum Departed {
    /// Matched, with its position at B.
    Matched(Time<Utc>),
    Unmatched(SentPacket),
}

/// A packet at A, and its position in its flow.
#[derive(Clone, Copy)]
pub(super) struct SentPacket {
    pub(super) observation: Observation,
    pub(super) sequence: u64,
}

/// Queue of departures in the order of departure, with an index by identity and the state of each flow. Operations
/// take constant time on average, except for identities shared by several departures.
pub(super) struct Departures {
    pub(super) queue: Queue<Departure>,
    /// Last departure of each identity.
    pub(super) index: Table<Link>,
    /// Identities that several departures have or had.
    pub(super) shared: BTreeMap<PacketId, IdenticalDepartures>,
    /// Number after the last matched departure.
    pub(super) expected: u64,
    pub(super) flows: Flows,
}

impl Departures {
    /// Bytes per departure in the index.
    pub(super) const INDEX_BYTES_EACH: usize = Table::<Link>::BYTES_EACH;

    /// Bytes per departure.
    pub(super) const BYTES_EACH: usize = size_of::<Departure>() + Self::INDEX_BYTES_EACH;

    /// Bytes per shared identity: nodes of a B-tree may be half empty.
    pub(super) const SHARED_BYTES_EACH: usize = 2 * size_of::<(PacketId, IdenticalDepartures)>();

    /// An empty queue; the indexes are sized for this many departures and flows.
    pub(super) fn new(max: usize, max_flows: usize) -> Self {
        let seed = RandomState::new().hash_one(0);
        Self {
            queue: Queue::new(),
            index: Table::new(max, seed),
            shared: BTreeMap::new(),
            expected: 0,
            flows: Flows::new(max_flows, seed),
        }
    }

    /// Departure time of the oldest.
    pub(super) fn oldest(&self) -> Option<Time<Utc>> {
        self.queue.front().map(|departure| departure.time)
    }

    /// Number of the flow with this key, or `None` if there is no room for it ([`Flows::enter`]).
    pub(super) fn flow(&mut self, key: &FlowKey, may_grow: bool) -> Option<FlowNumber> {
        self.flows.enter(key, may_grow)
    }

    /// Adds a departure of a flow returned by [`Self::flow`]. Returns the departure time of the previous one with the
    /// same identity, if still in the queue.
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

    /// Sets a departure as the last of its identity; returns the previous one.
    fn set_last(&mut self, id: PacketId, link: Link) -> Option<Link> {
        match self.index.search(id.0, |last| self.has(last, id)) {
            Ok(slot) => Some(std::mem::replace(self.index.value(slot), link)),
            Err(free) => {
                self.index.fill(free, id.0, link);
                None
            }
        }
    }

    /// Marks the identity of a departure as shared; returns when the previous one left.
    fn share(&mut self, before: Link, link: Link) -> Option<Time<Utc>> {
        self.linked_mut(link)?.set_shared();
        let twin = self.linked_mut(before)?;
        twin.set_shared();
        let (id, time) = (twin.id, twin.time);
        let open = twin.unmatched_mut();
        let identical = IdenticalDepartures::of(before, open.is_some());
        if let Some(open) = open {
            open.twin = link;
        }
        self.shared.entry(id).or_insert(identical).add(link);
        Some(time)
    }

    /// Enlarges the index.
    fn index_again(&mut self) {
        self.index.clear_larger();
        for number in self.queue.numbers() {
            if let Some(id) = self.queue.get(number).map(|departure| departure.id) {
                self.set_last(id, Link::to(number));
            }
        }
    }

    /// Whether the linked departure has this identity.
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

    /// Number of a departure with this identity at or next to `number`. Packets mostly arrive in the order of
    /// departure; this saves reading the index, which may be in none of the caches.
    #[inline]
    pub(super) fn near(&self, number: u64, id: PacketId) -> Option<u64> {
        let has_it = |number: &u64| self.queue.get(*number).is_some_and(|it| it.id == id);
        [number, number + 1, number.wrapping_sub(1)].into_iter().find(has_it)
    }

    /// Departures of an identity, for [`Self::open`] and [`Self::matched`].
    pub(super) fn of(&self, id: PacketId) -> Option<IdenticalDepartures> {
        let link = match self.near(self.expected, id) {
            Some(number) => Link::to(number),
            None => self.index.get(self.index.find(id.0, |last| self.has(last, id))?),
        };
        let departure = self.linked(link)?;
        match departure.is_shared() {
            false => Some(IdenticalDepartures::of(link, departure.unmatched().is_some())),
            true => self.shared.get(&id).copied(),
        }
    }

    /// First unmatched departure of an identity that left between `earliest` and `latest`. Times must not decrease
    /// between calls.
    pub(super) fn open(
        &mut self,
        identical: IdenticalDepartures,
        earliest: Time<Utc>,
        latest: Time<Utc>,
    ) -> Option<Open> {
        let mut link = identical.open;
        while let Some(departure) = self.linked(link)
            && departure.time < earliest
        {
            let (id, twin) = (departure.id, departure.twin());
            if let Some(identical) = self.shared.get_mut(&id) {
                identical.open = twin;
            }
            link = twin;
        }
        let departure = self.linked(link).filter(|departure| departure.time <= latest)?;
        let sent = departure.observation(self.flows.get(departure.flow)?.key);
        Some(Open { link, sent })
    }

    /// Marks the departure returned by [`Self::open`] as matched.
    pub(super) fn set_matched(&mut self, open: &Open, arrival: Arrived) -> Option<Match> {
        self.expected = open.link.number(self.queue.front_number())? + 1;
        let departure = self.linked_mut(open.link)?;
        let &Unmatched { twin, previous, next, sequence } = departure.unmatched()?;
        let (place, flow) = (departure.time, departure.flow);
        departure.set_matched(arrival);
        if departure.is_shared()
            && let Some(identical) = self.shared.get_mut(&open.sent.id)
        {
            identical.set_matched(open.link, twin);
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
                let last_removed = flow.last_removed_delay;
                self.set_next(previous, open.link);
                let delay_of = |it: &Departure| it.arrival().map(|arrival| arrival.delay);
                let before = self.linked(previous).map_or(last_removed, delay_of);
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

    /// Records that the next departure of the flow was matched before this one.
    fn set_next(&mut self, departure: Link, next: Link) {
        if let Some(open) = self.linked_mut(departure).and_then(Departure::unmatched_mut) {
            open.next = next;
        }
    }

    /// Last matched departure of an identity, if it left no earlier than `earliest`.
    pub(super) fn matched(
        &self,
        identical: IdenticalDepartures,
        earliest: Time<Utc>,
    ) -> Option<Observation> {
        let matched = self.linked(identical.matched);
        let departure = matched.filter(|departure| departure.time >= earliest)?;
        Some(departure.observation(self.flows.get(departure.flow)?.key))
    }

    /// Removes the oldest departure. Returns its position at A and its result.
    pub(super) fn pop(&mut self) -> Option<(Time<Utc>, Departed)> {
        let link = Link::to(self.queue.front_number());
        let &oldest = self.queue.front()?;
        self.leave_index(&oldest, link);
        let arrival = oldest.arrival();
        let flow = self.flows.leave(oldest.flow, link, arrival.map(|it| it.delay))?;
        let departed = match oldest.state {
            State::Matched { arrival, .. } => Departed::Matched(arrival.place),
            State::Open { open, .. } => Departed::Unmatched(SentPacket {
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
        } else if let Some(identical) = self.shared.get_mut(&id) {
            identical.leave(link, departure.twin());
        }
    }
}

/// A departure to match with an observation at B.
pub(super) struct Open {
    link: Link,
    pub(super) sent: Observation,
}

#[cfg(test)]
mod tests;
