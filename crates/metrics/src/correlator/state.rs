//! State of a correlator, and the limits of its memory.

use wirestamp_clock::{DifferenceClock, Span, Time, Utc};
use wirestamp_packet::PacketId;

use super::config::Config;
use super::departures::{Departed, Departures, Sent};
use super::flows::Flows;
use super::queue::Queue;
use super::unseen::Unseen;
use crate::{Observation, Outcome, Point, UndeterminedReason};

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

/// An observation at B that may have to wait.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    pub(super) received: Observation,
    pub(super) place: Time<Utc>,
}

/// Matches the observations of two points and says of each what became of it.
///
/// # The rule
///
/// Each point's observations have an order, that in which the point captured them. A point's time
/// is the latest stamp it has delivered; the *place* of an observation is its point's time just
/// after it, so places never go back even where neighbouring stamps do.
///
/// B's observations are taken in B's order. Each is matched to the first packet at A, in A's order,
/// that has its identity, was not matched before, and whose place lies between `timeout` before
/// and `skew` after its own. If there is none, but one that was matched already, it is a
/// duplicate of the last such; otherwise it is unexpected. Packets at A that nothing at B was
/// matched to are lost.
///
/// So the outcomes depend on the two streams only, and not on how the calls for A and B interleave
/// (unless memory runs out). What changes with the interleaving is when an outcome is
/// reported: an observation at B for which no packet is at hand waits, and all behind it wait,
/// until A has delivered the packet or A's time has passed it by `skew`. A loss is reported when
/// the times of both points have passed the packet by `timeout`.
///
/// A stamp that is wrong and far ahead holds its point's time there, and with it the rule's
/// window. Stamps must come from one clock for each point, without steps backwards larger than
/// `skew`.
///
/// # Cost
///
/// Time is constant for each observation on average, but grows with the logarithm of how many
/// identities several packets share where they do; memory is bounded by [`Config::memory`].
/// Where one stream can run far ahead of the other, as with two files, the caller delivers the
/// observations of both in the order of their stamps, or the memory does not do.
pub struct Correlator {
    pub(super) config: Config,
    pub(super) difference_clock: Option<DifferenceClock>,
    pub(super) departures: Departures,
    /// Observations at B that are not decided yet, in B's order.
    pub(super) waiting: Queue<Arrival>,
    /// What the first of them waits for: a departure with its identity, or A's time to pass this.
    pub(super) held: Option<(PacketId, Time<Utc>)>,
    /// A's time.
    pub(super) sent_until: Time<Utc>,
    /// B's time.
    pub(super) delivered_until: Time<Utc>,
    /// B's time, as far as B's observations are decided.
    pub(super) received_until: Time<Utc>,
    /// What passed A without being seen there.
    pub(super) unseen_at_a: Unseen<Observation>,
    /// What passed B without being seen there.
    pub(super) unseen_at_b: Unseen<Sent>,
    pub(super) finished: bool,
}

impl Correlator {
    /// A correlator that has seen nothing. Negative spans are taken as 0.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let beginning = Time::from_nanos(i64::MIN);
        let Config { memory, timeout, skew } = config;
        let config =
            Config { timeout: timeout.max(Span::ZERO), skew: skew.max(Span::ZERO), memory };
        let Config { timeout, skew, .. } = config;
        let suspects = memory / MISSED_SHARE / 2 / SUSPECT;
        let (most, flows) = (memory / DEPARTURE, flows_share(memory) / Flows::BYTES_EACH);
        Self {
            config,
            difference_clock: None,
            departures: Departures::new(most, flows),
            waiting: Queue::new(),
            held: None,
            sent_until: beginning,
            delivered_until: beginning,
            received_until: beginning,
            unseen_at_a: Unseen::new(timeout, skew, suspects),
            unseen_at_b: Unseen::new(skew, timeout, suspects),
            finished: false,
        }
    }

    /// Moves a point's time on.
    pub(crate) fn pass(&mut self, point: Point, time: Time<Utc>) {
        let until = match point {
            Point::A => &mut self.sent_until,
            Point::B => &mut self.delivered_until,
        };
        *until = time.max(*until);
    }

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
                sink(Outcome::not_at_b(observation, sequence, Some(UndeterminedReason::Memory)));
            }
        }
    }

    pub(super) fn forget_arrival(&mut self, sink: &mut impl FnMut(Outcome)) {
        self.held = None;
        if let Some(Arrival { received, place }) = self.waiting.pop() {
            self.received_until = place;
            self.unseen_at_b.forget(place);
            sink(Outcome::not_at_a(received, Some(UndeterminedReason::Memory)));
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
