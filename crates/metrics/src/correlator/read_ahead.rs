//! Reading memory before it is needed.
//!
//! With a million packets under way nearly every look-up meets memory that is in none of the
//! processor's caches, and waits for it as long as for everything else it does. Reads that do not
//! depend on one another are under way at once; so the look-ups of several packets take their first
//! step together, then all their second, then all their third. What is read is not used, it stays in
//! the cache; in particular nothing is decided by it before the next step.

use std::hint::black_box;

use wirestamp_packet::PacketId;

use super::departure::Departure;
use super::departures::Departures;
use super::flow::FlowNumber;
use super::queue::Link;
use super::table::Value;
use crate::Observation;

/// For how many observations memory is read at once: more than there can be reads under way in a
/// core (some tens of cache lines), and few enough for the innermost cache.
pub(super) const READ_AHEAD: usize = 64;

/// The states of so many flows stay in the cache of themselves.
const FEW_FLOWS: usize = 2000;

impl Departures {
    /// Reads what [`Departures::flow`] and [`Departures::push`] are going to read for these.
    pub(super) fn read_ahead_to_push<'a>(
        &self,
        sent: impl Iterator<Item = &'a Observation> + Clone,
    ) {
        read(sent.clone().map(|seen| self.index.touch(seen.id.0)));
        if self.flows.len() <= FEW_FLOWS {
            return;
        }
        let hashes = Found::new(0, sent.map(|seen| self.flows.hash(&seen.flow)));
        read(hashes.iter().map(|hash| self.flows.touch(hash)));
        let known = hashes.iter().filter_map(|hash| self.flows.likely(hash));
        self.read_flows(&Found::new(FlowNumber::FREE, known));
    }

    /// Reads what matching departures with these identities is going to read: the next ones that are
    /// expected, and by the index those that are away from there.
    pub(super) fn read_ahead_to_match(&self, ids: impl Iterator<Item = PacketId> + Clone) {
        let expected = self.expected..;
        let next = expected.clone().take(READ_AHEAD);
        read(next.filter_map(|number| Some(self.queue.get(number)?.touch())));
        let near = ids.clone().zip(expected).map(|(id, number)| self.near(number, id));
        let near = Found::new(None, near);
        let away = ids.zip(near.iter()).filter(|(_, near)| near.is_none()).map(|(id, _)| id);
        read(away.clone().map(|id| self.index.touch(id.0)));
        let away = Found::new(Link::NONE, away.filter_map(|id| self.index.likely(id.0)));
        read(away.iter().filter_map(|link| Some(self.linked(link)?.touch())));
        let near = near.iter().flatten().filter_map(|number| self.queue.get(number));
        self.read_flows_of(near.map(|departure| departure.flow));
        let away = away.iter().filter_map(|link| self.linked(link));
        self.read_flows_of(away.map(|departure| departure.flow));
    }

    /// Reads what so many calls of [`Departures::pop`] are going to read.
    pub(super) fn read_ahead_to_pop(&self, calls: usize) {
        let leaving = self.queue.numbers().take(calls).filter_map(|it| self.queue.get(it));
        read(leaving.clone().map(Departure::touch));
        read(leaving.clone().map(|it| self.index.touch(it.id.0)));
        if self.flows.len() > FEW_FLOWS {
            let flows = Found::new(FlowNumber::FREE, leaving.map(|departure| departure.flow));
            read(flows.iter().filter_map(|flow| Some(self.flows.get(flow)?.touch_state())));
        }
    }

    fn read_flows_of(&self, flows: impl Iterator<Item = FlowNumber>) {
        if self.flows.len() > FEW_FLOWS {
            self.read_flows(&Found::new(FlowNumber::FREE, flows));
        }
    }

    fn read_flows(&self, flows: &Found<FlowNumber>) {
        read(flows.iter().filter_map(|flow| Some(self.flows.get(flow)?.touch())));
    }
}

/// Reads what nobody uses.
fn read(values: impl Iterator<Item = u32>) {
    black_box(values.fold(0, |read, value| read ^ value));
}

/// What one step finds out for the next. It is put down, because the fewer instructions there are
/// between two reads the more of them are under way at once.
struct Found<T> {
    found: [T; READ_AHEAD],
    len: usize,
}

impl<T: Copy> Found<T> {
    /// What does not fit is left out. The places left over are filled with `nothing`.
    fn new(nothing: T, values: impl Iterator<Item = T>) -> Self {
        let mut all = Self { found: [nothing; READ_AHEAD], len: 0 };
        for (place, value) in all.found.iter_mut().zip(values) {
            *place = value;
            all.len += 1;
        }
        all
    }

    fn iter(&self) -> impl Iterator<Item = T> + Clone {
        self.found.iter().take(self.len).copied()
    }
}
