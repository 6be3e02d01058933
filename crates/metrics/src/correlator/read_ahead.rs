//! Reading memory before it is needed.

use std::hint::black_box;

use super::departures::{Departure, Departures};
use crate::{Observation, Point};

impl Departures {
    /// Reads what these observations, and as many calls of [`Departures::pop`], are going to read.
    ///
    /// With a million packets under way nearly every look-up meets memory that is in none of the
    /// processor's caches, and waits for it as long as for everything else it does. Reads that do not
    /// depend on one another are under way at once; so all look-ups take their first step together,
    /// then all their second, then all their third. What is read is not used: it stays in the cache.
    pub(super) fn read_ahead(&self, seen: &[(Point, Observation)]) {
        let at = |point| move |seen: &&(Point, Observation)| seen.0 == point;
        let sent = || seen.iter().filter(at(Point::A)).map(|(_, observation)| observation);
        let received = || seen.iter().filter(at(Point::B)).map(|(_, observation)| observation);
        let leaving = || self.queue.numbers().take(seen.len()).filter_map(|it| self.queue.get(it));
        let mut read = 0;

        let ids = leaving().map(|it| it.id).chain(seen.iter().map(|(_, seen)| seen.id));
        for id in ids {
            read ^= self.copies.likely(id.0).map_or(0, |copies| copies.last.bits());
        }
        for observation in sent() {
            read ^= self.flows.likely(&observation.flow).map_or(0, |number| number.bits());
        }

        let matching = || {
            let last = |seen: &Observation| Some(self.copies.likely(seen.id.0)?.last);
            received().filter_map(last).filter_map(|link| self.linked(link))
        };
        for departure in matching() {
            read ^= departure.read();
        }
        let flows = || sent().filter_map(|seen| self.flows.get(self.flows.likely(&seen.flow)?));
        for flow in flows() {
            read ^= flow.read();
        }
        for flow in leaving().filter_map(|departure| self.flows.get(departure.flow)) {
            read ^= flow.read();
        }

        for departure in matching() {
            let neighbours = [departure.previous, departure.next].map(|link| self.linked(link));
            read ^= neighbours.into_iter().flatten().fold(0, |read, it| read ^ it.read());
            read ^= self.flows.get(departure.flow).map_or(0, |flow| flow.read());
        }
        for previous in flows().filter_map(|flow| self.linked(flow.last)) {
            read ^= previous.read();
        }
        black_box(read);
    }
}

impl Departure {
    /// Reads from both of the cache lines that it lies in: its fields are laid out by their size.
    #[inline]
    fn read(&self) -> u32 {
        u32::from(self.id.0 == 0) ^ u32::from(self.matched)
    }
}
