//! The packets that left point A and whose fate may still change.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::{FlowKey, PacketId};

use crate::Observation;

/// A packet that left point A. It has a number, its place in the order of departure at A.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) sent: Observation,
    /// When it left, in the order of departure: never before the one ahead of it.
    pub(crate) time: Time<Utc>,
    /// Its one-way delay, once it has been matched.
    pub(crate) delay: Option<Span>,
    /// Its place in its flow.
    pub(crate) sequence: u64,
    /// The next departure with the same identity.
    twin: Option<u64>,
    /// The departure of the same flow just before this one.
    previous: Neighbour,
    /// The departure of the same flow just after this one.
    next: Option<u64>,
}

/// A departure next to another one in its flow.
#[derive(Clone, Copy, Debug)]
enum Neighbour {
    /// It is still in the queue, under this number.
    Live(u64),
    /// It has left the queue, with this delay if it had been matched.
    Gone(Option<Span>),
}

/// The departures of one identity.
#[derive(Clone, Copy, Debug)]
struct Copies {
    /// The first that may still be matched.
    open: Option<u64>,
    /// The last that was matched.
    matched: Option<u64>,
    /// The last of all.
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    last: Neighbour,
    /// NextExp of RFC 4737 section 3.3, in numbers of departures.
    next_expected: u64,
    /// The place in the flow that the next departure takes.
    next_sequence: u64,
    live: usize,
}

/// What a match says beyond its delay. The fields are those of [`crate::Outcome::Matched`].
pub(crate) struct Match {
    pub(crate) sent: Observation,
    pub(crate) sequence: u64,
    pub(crate) reordered: bool,
    pub(crate) since_previous: Option<Span>,
    pub(crate) until_next: Option<Span>,
}

/// A queue of departures in the order of departure, with an index by identity and the state of
/// each flow.
///
/// Each operation takes constant time on average. A flow's state outlives its departures, so that
/// the delay variation of a slow flow is known too; there are at most two flow states for each
/// departure that the queue may hold.
pub(crate) struct Departures {
    queue: VecDeque<Departure>,
    /// The number of the departure at the front of the queue.
    front: u64,
    copies: HashMap<PacketId, Copies>,
    flows: HashMap<FlowKey, Flow>,
    /// Whether states of flows had to go.
    swept: bool,
    capacity: usize,
}

impl Departures {
    /// An empty queue for `capacity` departures, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            front: 0,
            copies: HashMap::new(),
            flows: HashMap::new(),
            swept: false,
            capacity: capacity.max(1),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.capacity
    }

    pub(crate) fn oldest(&self) -> Option<&Departure> {
        self.queue.front()
    }

    fn get(&self, number: u64) -> Option<&Departure> {
        self.queue.get(self.place(number)?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Departure> {
        let place = self.place(number)?;
        self.queue.get_mut(place)
    }

    fn place(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.front)?).ok()
    }

    /// Adds a departure; returns when the last one with the same identity left, if that one is
    /// still in the queue.
    pub(crate) fn push(&mut self, sent: Observation, time: Time<Utc>) -> Option<Time<Utc>> {
        let number = self.front + self.queue.len() as u64;
        let twin_before = match self.copies.entry(sent.id) {
            Entry::Occupied(mut known) => {
                let copies = known.get_mut();
                copies.open.get_or_insert(number);
                Some(std::mem::replace(&mut copies.last, number))
            }
            Entry::Vacant(unknown) => {
                unknown.insert(Copies { open: Some(number), matched: None, last: number });
                None
            }
        };
        let (previous, sequence) = self.enter_flow(sent.flow, number);
        if let Neighbour::Live(previous) = previous
            && let Some(previous) = self.get_mut(previous)
        {
            previous.next = Some(number);
        }
        let (delay, twin, next) = (None, None, None);
        let departure = Departure { sent, time, delay, sequence, twin, previous, next };
        self.queue.push_back(departure);
        let twin_before = self.get_mut(twin_before?)?;
        twin_before.twin = Some(number);
        Some(twin_before.time)
    }

    /// Makes `number` the last departure of its flow and returns the one before it, and the place
    /// in the flow.
    fn enter_flow(&mut self, key: FlowKey, number: u64) -> (Neighbour, u64) {
        let most = self.capacity.saturating_mul(2);
        if self.flows.len() >= most && !self.flows.contains_key(&key) {
            // At most half of the flows have a departure in the queue, so this sweep is paid for
            // by the departures that came since the last one.
            self.flows.retain(|_, flow| flow.live > 0);
            self.swept = true;
        }
        let flow = self.flows.entry(key).or_insert(Flow {
            last: Neighbour::Gone(None),
            next_expected: 0,
            // Above all that a flow can have had whose state was swept.
            next_sequence: if self.swept { number } else { 0 },
            live: 0,
        });
        flow.live += 1;
        let sequence = flow.next_sequence;
        flow.next_sequence += 1;
        (std::mem::replace(&mut flow.last, Neighbour::Live(number)), sequence)
    }

    /// The first departure with this identity that has not been matched and left between
    /// `earliest` and `latest`. Calls must have times that never go back.
    pub(crate) fn open(
        &mut self,
        id: PacketId,
        earliest: Time<Utc>,
        latest: Time<Utc>,
    ) -> Option<u64> {
        let mut open = self.copies.get(&id)?.open;
        while let Some(departure) = open.and_then(|number| self.get(number))
            && departure.time < earliest
        {
            open = departure.twin;
        }
        self.copies.get_mut(&id)?.open = open;
        open.filter(|number| self.get(*number).is_some_and(|departure| departure.time <= latest))
    }

    /// The observation behind the departure that [`Self::open`] found.
    pub(crate) fn sent(&self, number: u64) -> Option<&Observation> {
        self.get(number).map(|departure| &departure.sent)
    }

    /// Marks the departure that [`Self::open`] found as matched.
    pub(crate) fn set_matched(&mut self, number: u64, delay: Span) -> Option<Match> {
        let departure = self.get_mut(number)?;
        departure.delay = Some(delay);
        let Departure { sent, sequence, twin, previous, next, .. } = *departure;

        let copies = self.copies.get_mut(&sent.id)?;
        copies.open = twin;
        copies.matched = Some(number);

        let flow = self.flows.get_mut(&sent.flow)?;
        let reordered = number < flow.next_expected;
        if !reordered {
            flow.next_expected = number + 1;
        }

        let before = match previous {
            Neighbour::Live(previous) => self.get(previous).and_then(|previous| previous.delay),
            Neighbour::Gone(delay) => delay,
        };
        let after = next.and_then(|next| self.get(next)).and_then(|next| next.delay);
        Some(Match {
            sent,
            sequence,
            reordered,
            since_previous: before.map(|before| delay - before),
            until_next: after.map(|after| after - delay),
        })
    }

    /// The last departure with this identity that has been matched, if it left no earlier than
    /// `earliest`.
    pub(crate) fn matched(&self, id: PacketId, earliest: Time<Utc>) -> Option<&Observation> {
        let departure = self.get(self.copies.get(&id)?.matched?)?;
        (departure.time >= earliest).then_some(&departure.sent)
    }

    /// Takes out the oldest departure.
    pub(crate) fn pop(&mut self) -> Option<Departure> {
        let departure = self.queue.pop_front()?;
        let number = self.front;
        self.front += 1;
        self.leave_copies(departure.sent.id, number, departure.twin);
        self.leave_flow(&departure);
        Some(departure)
    }

    fn leave_copies(&mut self, id: PacketId, number: u64, twin: Option<u64>) {
        let Some(copies) = self.copies.get_mut(&id) else { return };
        if copies.last == number {
            self.copies.remove(&id);
        } else if copies.open == Some(number) {
            copies.open = twin;
        }
    }

    fn leave_flow(&mut self, departure: &Departure) {
        let gone = Neighbour::Gone(departure.delay);
        if let Some(next) = departure.next.and_then(|next| self.get_mut(next)) {
            next.previous = gone;
        }
        if let Some(flow) = self.flows.get_mut(&departure.sent.flow) {
            flow.live -= 1;
            if departure.next.is_none() {
                flow.last = gone;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Stamp};

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

    #[test]
    fn places_in_a_flow_grow_even_if_its_state_was_swept() {
        let mut departures = Departures::new(1);
        let mut places = Vec::new();
        for port in [1, 1, 2, 3, 4, 5, 1] {
            departures.pop().inspect(|left| {
                places.extend((left.sent.flow.source.port() == 1).then_some(left.sequence));
            });
            departures.push(departure(port.into(), port), Time::from_nanos(0));
        }
        places.push(departures.pop().expect("the last").sequence);
        assert_eq!(places[..2], [0, 1]);
        assert!(places[2] > 1, "{places:?}");
    }

    #[test]
    fn many_short_flows_do_not_grow_the_state() {
        const CAPACITY: usize = 10;
        let mut departures = Departures::new(CAPACITY);
        for port in 0..1000 {
            if departures.is_full() {
                departures.pop();
            }
            departures.push(departure(port.into(), port), Time::from_nanos(0));
            assert!(departures.flows.len() <= 2 * CAPACITY, "{}", departures.flows.len());
            assert!(departures.copies.len() <= CAPACITY, "{}", departures.copies.len());
        }
        while departures.pop().is_some() {}
        assert!(departures.copies.is_empty());
    }
}
