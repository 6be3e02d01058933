//! State of a correlator, and the limits of its memory.

use wirestamp_clock::{DifferenceClock, Span, Time, Utc};
use wirestamp_packet::PacketId;

use super::config::Config;
use super::departures::{Departed, Departures, SentPacket};
use super::flows::Flows;
use super::queue::Queue;
use super::suspects::SuspectTracker;
use crate::{Observation, Outcome, Point, UndeterminedReason};

/// Bytes per packet that left A.
pub(super) const DEPARTURE: usize = Departures::BYTES_EACH;
/// Bytes per packet that a capture may have missed: the size for packets from A, which is larger.
pub(super) const SUSPECT: usize = SuspectTracker::<SentPacket>::BYTES_EACH;
/// Bytes per packet that waits at B. Includes the index, whose memory remains when such packets replace packets that
/// left A.
pub(super) const ARRIVAL: usize = size_of::<Arrival>() + Departures::INDEX_BYTES_EACH;
/// Max memory of flows: two thirds, because a flow takes nearly twice as much as a packet. So all memory is usable even
/// if every packet has its own flow.
pub(super) const fn flows_share(memory: usize) -> usize {
    memory / 3 * 2
}
/// Divisors of the memory for waiting and for missed packets.
pub(super) const WAITING_SHARE: usize = 4;
pub(super) const MISSED_SHARE: usize = 8;

/// An observation at B that may have to wait.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    pub(super) received: Observation,
    pub(super) place: Time<Utc>,
}

/// Matches the observations of two points and reports the outcome of each.
///
/// # The rule
///
/// Each point has an order of observations, the order of capture. The time of a point is its latest stamp so far; the
/// *place* of an observation is the time of its point just after it. So places never decrease, even where neighbouring
/// stamps do.
///
/// B's observations are processed in B's order. Each is matched to the first packet at A, in A's order, that has the
/// same identity, is unmatched, and whose place is between `timeout` before and `skew` after its own. If only matched
/// packets fit, the observation is a duplicate of the last of them. If none fits, it is unexpected. Packets at A
/// without a match are lost.
///
/// The outcomes depend only on the two streams, not on the interleaving of calls for A and B (unless memory runs out).
/// The interleaving only changes when an outcome is reported. An observation at B without a matching packet waits, with
/// all after it, until A has delivered the packet or A's time has passed it by `skew`. A loss is reported when the
/// times of both points have passed the packet by `timeout`.
///
/// After a wrong stamp far in the future, its point's time stays there, and so does the window of the rule. Stamps must
/// come from one clock for each point, without backward steps above `skew`.
///
/// # Cost
///
/// Constant time per observation on average; for shared identities it grows with the logarithm of their number. Memory
/// is bounded by [`Config::memory`]. Where one stream can run far ahead of the other, as with two files, the caller
/// must deliver the observations of both in the order of their stamps, or the memory is not sufficient.
pub struct Correlator {
    pub(super) config: Config,
    pub(super) difference_clock: Option<DifferenceClock>,
    pub(super) departures: Departures,
    /// Undecided observations at B, in the order of B.
    pub(super) waiting: Queue<Arrival>,
    /// Condition for the first of them: a departure with this identity, or A's time after this one.
    pub(super) blocked: Option<(PacketId, Time<Utc>)>,
    /// Time of A.
    pub(super) sent_until: Time<Utc>,
    /// Time of B.
    pub(super) delivered_until: Time<Utc>,
    /// Time of B up to which observations are decided.
    pub(super) received_until: Time<Utc>,
    /// Packets that passed A but were not captured there.
    pub(super) suspects_at_a: SuspectTracker<Observation>,
    /// Packets that passed B but were not captured there.
    pub(super) suspects_at_b: SuspectTracker<SentPacket>,
    pub(super) finished: bool,
}

impl Correlator {
    /// An empty correlator. Negative spans are taken as 0.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let beginning = Time::from_nanos(i64::MIN);
        let Config { memory, timeout, skew } = config;
        let config =
            Config { timeout: timeout.max(Span::ZERO), skew: skew.max(Span::ZERO), memory };
        let Config { timeout, skew, .. } = config;
        let suspects = memory / MISSED_SHARE / 2 / SUSPECT;
        let (max, flows) = (memory / DEPARTURE, flows_share(memory) / Flows::BYTES_EACH);
        Self {
            config,
            difference_clock: None,
            departures: Departures::new(max, flows),
            waiting: Queue::new(),
            blocked: None,
            sent_until: beginning,
            delivered_until: beginning,
            received_until: beginning,
            suspects_at_a: SuspectTracker::new(timeout, skew, suspects),
            suspects_at_b: SuspectTracker::new(skew, timeout, suspects),
            finished: false,
        }
    }

    /// Advances the time of a point.
    pub(super) fn pass(&mut self, point: Point, time: Time<Utc>) {
        let until = match point {
            Point::A => &mut self.sent_until,
            Point::B => &mut self.delivered_until,
        };
        *until = time.max(*until);
    }

    /// Free memory in bytes.
    pub(super) fn free(&self) -> usize {
        let suspects = self.suspects_at_a.suspects() + self.suspects_at_b.suspects();
        let taken = self.departures.queue.len() * DEPARTURE
            + self.departures.shared.len() * Departures::SHARED_BYTES_EACH
            + self.departures.flows.len() * Flows::BYTES_EACH
            + self.waiting.len() * ARRIVAL
            + suspects * SUSPECT;
        self.config.memory.saturating_sub(taken)
    }

    /// Whether a departure must be evicted before one more packet is added.
    pub(super) fn is_full(&self) -> bool {
        self.departures.queue.len() > 0 && self.free() < ARRIVAL
    }

    pub(super) fn evict_departure(&mut self, sink: &mut impl FnMut(Outcome)) {
        let Some((time, departed)) = self.departures.pop() else { return };
        // Later duplicates of this packet can no longer be recognised, whether it was matched or not.
        self.suspects_at_a.forget(time);
        match departed {
            Departed::Matched(place) => self.suspects_at_b.seen(place),
            Departed::Unmatched(SentPacket { observation, sequence }) => {
                sink(Outcome::not_at_b(observation, sequence, Some(UndeterminedReason::Memory)));
            }
        }
    }

    pub(super) fn evict_arrival(&mut self, sink: &mut impl FnMut(Outcome)) {
        self.blocked = None;
        if let Some(Arrival { received, place }) = self.waiting.pop() {
            self.received_until = place;
            self.suspects_at_b.forget(place);
            sink(Outcome::not_at_a(received, Some(UndeterminedReason::Memory)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_match_the_documentation() {
        let shared = Departures::SHARED_BYTES_EACH;
        assert_eq!([DEPARTURE, ARRIVAL, shared, Flows::BYTES_EACH], [80, 136, 32, 144]);
        assert!((270..370).contains(&SUSPECT), "{SUSPECT}");
    }
}
