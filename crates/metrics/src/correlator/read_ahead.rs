//! Prefetching of memory.
//!
//! With a million packets in flight, nearly every look-up accesses memory outside the processor's caches. The wait
//! takes as long as all other work. Independent reads overlap, so the look-ups of several packets take their first step
//! together, then their second, then their third. The values are only loaded into the cache. No decision depends on
//! them before the next step.

use std::hint::black_box;

use wirestamp_packet::PacketId;

use super::departure::Departure;
use super::departures::Departures;
use super::flow::FlowNumber;
use super::queue::Link;
use super::table::Value;
use crate::Observation;

/// Observations prefetched at once: more than a core can have reads in flight (some tens of cache lines), and few
/// enough for the L1 cache.
pub(super) const READ_AHEAD: usize = 64;

/// Max flows whose states stay in the cache without prefetching.
const CACHED_FLOWS: usize = 2000;

impl Departures {
    /// Prefetches for [`Departures::flow`] and [`Departures::push`].
    pub(super) fn read_ahead_to_push<'a>(
        &self,
        sent: impl Iterator<Item = &'a Observation> + Clone,
    ) {
        read(sent.clone().map(|seen| self.index.touch(seen.id.0)));
        if self.flows.len() <= CACHED_FLOWS {
            return;
        }
        let hashes = StepValues::new(0, sent.map(|seen| self.flows.hash(&seen.flow)));
        read(hashes.iter().map(|hash| self.flows.touch(hash)));
        let known = hashes.iter().filter_map(|hash| self.flows.likely(hash));
        self.read_flows(&StepValues::new(FlowNumber::FREE, known));
    }

    /// Prefetches for matching these identities: the next expected departures, and by the index those elsewhere.
    pub(super) fn read_ahead_to_match(&self, ids: impl Iterator<Item = PacketId> + Clone) {
        let expected = self.expected..;
        let next = expected.clone().take(READ_AHEAD);
        read(next.filter_map(|number| Some(self.queue.get(number)?.touch())));
        let near = ids.clone().zip(expected).map(|(id, number)| self.near(number, id));
        let near = StepValues::new(None, near);
        let away = ids.zip(near.iter()).filter(|(_, near)| near.is_none()).map(|(id, _)| id);
        read(away.clone().map(|id| self.index.touch(id.0)));
        let away = StepValues::new(Link::NONE, away.filter_map(|id| self.index.likely(id.0)));
        read(away.iter().filter_map(|link| Some(self.linked(link)?.touch())));
        let near = near.iter().flatten().filter_map(|number| self.queue.get(number));
        self.read_flows_of(near.map(|departure| departure.flow));
        let away = away.iter().filter_map(|link| self.linked(link));
        self.read_flows_of(away.map(|departure| departure.flow));
    }

    /// Prefetches for this many calls of [`Departures::pop`].
    pub(super) fn read_ahead_to_pop(&self, calls: usize) {
        let leaving = self.queue.numbers().take(calls).filter_map(|it| self.queue.get(it));
        read(leaving.clone().map(Departure::touch));
        read(leaving.clone().map(|it| self.index.touch(it.id.0)));
        if self.flows.len() > CACHED_FLOWS {
            let flows = StepValues::new(FlowNumber::FREE, leaving.map(|departure| departure.flow));
            read(flows.iter().filter_map(|flow| Some(self.flows.get(flow)?.touch_state())));
        }
    }

    fn read_flows_of(&self, flows: impl Iterator<Item = FlowNumber>) {
        if self.flows.len() > CACHED_FLOWS {
            self.read_flows(&StepValues::new(FlowNumber::FREE, flows));
        }
    }

    fn read_flows(&self, flows: &StepValues<FlowNumber>) {
        read(flows.iter().filter_map(|flow| Some(self.flows.get(flow)?.touch())));
    }
}

/// Reads values without using them.
fn read(values: impl Iterator<Item = u32>) {
    black_box(values.fold(0, |read, value| read ^ value));
}

/// Values of one step for the next. Stored, because the fewer instructions are between two reads, the more reads
/// overlap.
struct StepValues<T> {
    values: [T; READ_AHEAD],
    len: usize,
}

impl<T: Copy> StepValues<T> {
    /// Values that do not fit are left out. Empty places hold `filler`.
    fn new(filler: T, values: impl Iterator<Item = T>) -> Self {
        let mut all = Self { values: [filler; READ_AHEAD], len: 0 };
        for (place, value) in all.values.iter_mut().zip(values) {
            *place = value;
            all.len += 1;
        }
        all
    }

    fn iter(&self) -> impl Iterator<Item = T> + Clone {
        self.values.iter().take(self.len).copied()
    }
}
