//! What a correlator's memory is spent on, and what is forgotten where it does not do.

use super::Correlator;
use super::arrivals::Arrival;
use super::departures::{Departed, Departures, Sent};
use super::flows::Flows;
use super::unseen::Unseen;
use crate::{Outcome, Reason};

/// The bytes that a packet takes which has left A.
pub(super) const DEPARTURE: usize = Departures::BYTES_EACH;
/// The bytes that a packet takes which a capture may have missed: those seen at A take more.
pub(super) const SUSPECT: usize = Unseen::<Sent>::BYTES_EACH;
/// The bytes that a packet takes which waits at B. Those of the index are counted, because they
/// stay with it when such packets take the place of others that have left A.
pub(super) const ARRIVAL: usize = size_of::<Arrival>() + Departures::INDEX_BYTES_EACH;
/// What flows may take at most of this memory: two thirds, so that even where every packet is of a
/// flow of its own, and a flow takes nearly twice as much as a packet, all of it can be used.
pub(super) const fn flows_share(memory: usize) -> usize {
    memory / 3 * 2
}
/// Which part of the memory packets waiting, and packets missed may take at most.
pub(super) const WAITING_SHARE: usize = 4;
pub(super) const MISSED_SHARE: usize = 8;

impl Correlator {
    /// The bytes that are left.
    pub(super) fn free(&self) -> usize {
        let suspects = self.unseen_at_a.suspects() + self.unseen_at_b.suspects();
        let taken = self.departures.len() * DEPARTURE
            + self.departures.shared() * Departures::SHARED_BYTES_EACH
            + self.departures.flows() * Flows::BYTES_EACH
            + self.waiting.len() * ARRIVAL
            + suspects * SUSPECT;
        self.config.memory.saturating_sub(taken)
    }

    /// Whether a departure has to be forgotten before there is room for one more packet.
    pub(super) fn is_full(&self) -> bool {
        self.departures.len() > 0 && self.free() < ARRIVAL
    }

    pub(super) fn forget_departure(&mut self, sink: &mut impl FnMut(Outcome)) {
        let Some((time, departed)) = self.departures.pop() else { return };
        // Matched or not: a copy that arrives later can no longer be recognised.
        self.unseen_at_a.forget(time);
        match departed {
            Departed::Matched(place) => self.unseen_at_b.seen(place),
            Departed::Unmatched(Sent { observation, sequence }) => {
                sink(Outcome::not_at_b(observation, sequence, Some(Reason::Memory)));
            }
        }
    }

    pub(super) fn forget_arrival(&mut self, sink: &mut impl FnMut(Outcome)) {
        self.held = None;
        if let Some(Arrival { received, place }) = self.waiting.pop() {
            self.received_until = place;
            self.unseen_at_b.forget(place);
            sink(Outcome::not_at_a(received, Some(Reason::Memory)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_flows_take_the_bytes_that_the_configuration_is_documented_with() {
        let shared = Departures::SHARED_BYTES_EACH;
        assert_eq!([DEPARTURE, ARRIVAL, shared, Flows::BYTES_EACH], [80, 136, 32, 144]);
        assert!((270..370).contains(&SUSPECT), "{SUSPECT}");
    }
}
