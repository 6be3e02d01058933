//! Reading memory before it is needed.
//!
//! With a million packets under way nearly every look-up meets memory that is in none of the
//! processor's caches, and waits for it as long as for everything else it does. Reads that do not
//! depend on one another are under way at once; so the look-ups of several packets take their first
//! step together, then all their second, then all their third. What is read is not used, it stays in
//! the cache; in particular nothing is decided by it before the next step.

use std::hint::black_box;

use wirestamp_packet::PacketId;

use super::departures::Departures;
use crate::Observation;

/// The states of so many flows stay in the cache of themselves.
const FEW_FLOWS: usize = 2000;

impl Departures {
    /// Reads what [`Departures::flow`] and [`Departures::push`] are going to read for these.
    pub(super) fn read_ahead_to_push<'a>(
        &self,
        sent: impl Iterator<Item = &'a Observation> + Clone,
    ) {
        let mut read = sent.clone().fold(0, |read, seen| read ^ self.copies.touch(seen.id.0));
        if self.flows.len() > FEW_FLOWS {
            read ^= sent.clone().fold(0, |read, seen| read ^ self.flows.touch(&seen.flow));
            let known = |seen: &Observation| self.flows.get(self.flows.likely(&seen.flow)?);
            let flows = || sent.clone().filter_map(known);
            read ^= flows().fold(0, |read, flow| read ^ flow.touch());
            let last = flows().filter_map(|flow| self.linked(flow.last));
            read ^= last.fold(0, |read, departure| read ^ departure.touch());
        }
        black_box(read);
    }

    /// Reads what matching departures with these identities is going to read.
    pub(super) fn read_ahead_to_match(&self, ids: impl Iterator<Item = PacketId> + Clone) {
        let mut read = ids.clone().fold(0, |read, id| read ^ self.copies.touch(id.0));
        let last = |id: PacketId| self.linked(self.copies.likely(id.0)?.last);
        let known = || ids.clone().filter_map(last);
        read ^= known().fold(0, |read, departure| read ^ departure.touch());
        if self.flows.len() > FEW_FLOWS {
            let flows = known().filter_map(|departure| self.flows.get(departure.flow));
            read ^= flows.fold(0, |read, flow| read ^ flow.touch());
        }
        black_box(read);
    }

    /// Reads what so many calls of [`Departures::pop`] are going to read.
    pub(super) fn read_ahead_to_pop(&self, calls: usize) {
        let leaving = || self.queue.numbers().take(calls).filter_map(|it| self.queue.get(it));
        let mut read = leaving().fold(0, |read, it| read ^ self.copies.touch(it.id.0));
        if self.flows.len() > FEW_FLOWS {
            let flows = leaving().filter_map(|it| self.flows.get(it.flow));
            read ^= flows.fold(0, |read, flow| read ^ flow.touch());
        }
        black_box(read);
    }
}
