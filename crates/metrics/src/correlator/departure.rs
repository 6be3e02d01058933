//! A packet that left point A, in one cache line.

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_packet::{FlowKey, PacketId};

use super::flow::FlowNumber;
use super::queue::Link;
use crate::Observation;

/// A packet that left point A. Its number is its position in the order of departure at A.
///
/// There may be millions of them. Each is accessed three times, after it has left the processor's caches: when it
/// leaves A, when it arrives at B, and when it is removed. It is therefore packed into one cache line: the fields of
/// an [`Observation`], its flow as a number, links in place of references, and one place for the data needed before
/// and after the match.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Departure {
    pub(super) id: PacketId,
    raw: u64,
    utc: Time<Utc>,
    /// Departure time, in the order of departure.
    pub(super) time: Time<Utc>,
    length: u32,
    pub(super) flow: FlowNumber,
    pub(super) state: State,
}

/// Match state of a departure, with further fields in the space next to the discriminant.
#[derive(Clone, Copy)]
pub(super) enum State {
    Open { shared_state: SharedState, open: Unmatched },
    Matched { shared_state: SharedState, arrival: Arrived },
}

/// State that a match does not change.
#[derive(Clone, Copy)]
pub(super) struct SharedState {
    quality: StampQuality,
    /// Whether others in the queue have or had the same identity.
    is_shared: bool,
}

/// State of an unmatched departure.
#[derive(Clone, Copy)]
pub(super) struct Unmatched {
    /// Next departure with the same identity.
    pub(super) twin: Link,
    /// Previous departure of the same flow.
    pub(super) previous: Link,
    /// Next departure of the same flow, if matched.
    pub(super) next: Link,
    /// Lower half of its position among the packets of its flow ([`Flow::sequence`](super::flow::Flow::sequence)).
    pub(super) sequence: u32,
}

/// Arrival of a matched departure.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    /// Position at B.
    pub(super) place: Time<Utc>,
    /// One-way delay.
    pub(super) delay: Span,
}

impl Departure {
    /// A departure from an observation at A, at this position.
    pub(super) fn new(
        sent: &Observation,
        time: Time<Utc>,
        flow: FlowNumber,
        open: Unmatched,
    ) -> Self {
        let Stamp { raw, utc, error } = sent.stamp;
        let quality = StampQuality::new(raw.domain, error);
        let state = State::Open { shared_state: SharedState { quality, is_shared: false }, open };
        Self { id: sent.id, raw: raw.value, utc, time, length: sent.length, flow, state }
    }

    /// The observation, with the key of its flow.
    pub(super) fn observation(&self, flow: FlowKey) -> Observation {
        let quality = self.shared_state().quality;
        let raw = RawStamp { domain: quality.domain, value: self.raw };
        let stamp = Stamp { raw, utc: self.utc, error: quality.error() };
        Observation { id: self.id, flow, length: self.length, stamp }
    }

    #[inline]
    fn shared_state(&self) -> &SharedState {
        match &self.state {
            State::Open { shared_state, .. } | State::Matched { shared_state, .. } => shared_state,
        }
    }

    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.shared_state().is_shared
    }

    /// Marks the identity as shared.
    pub(super) fn set_shared(&mut self) {
        match &mut self.state {
            State::Open { shared_state, .. } | State::Matched { shared_state, .. } => {
                shared_state.is_shared = true
            }
        }
    }

    #[inline]
    pub(super) fn unmatched(&self) -> Option<&Unmatched> {
        match &self.state {
            State::Open { open, .. } => Some(open),
            State::Matched { .. } => None,
        }
    }

    #[inline]
    pub(super) fn unmatched_mut(&mut self) -> Option<&mut Unmatched> {
        match &mut self.state {
            State::Open { open, .. } => Some(open),
            State::Matched { .. } => None,
        }
    }

    /// Next unmatched departure with the same identity.
    #[inline]
    pub(super) fn twin(&self) -> Link {
        self.unmatched().map_or(Link::NONE, |open| open.twin)
    }

    #[inline]
    pub(super) fn arrival(&self) -> Option<&Arrived> {
        match &self.state {
            State::Open { .. } => None,
            State::Matched { arrival, .. } => Some(arrival),
        }
    }

    #[inline]
    pub(super) fn set_matched(&mut self, arrival: Arrived) {
        self.state = State::Matched { shared_state: *self.shared_state(), arrival };
    }

    /// Reads one field, to load the cache line.
    #[inline]
    pub(super) fn touch(&self) -> u32 {
        self.length
    }
}

/// Clock domain of a stamp, and its error in nanoseconds in 40 bits (18 minutes). A larger error counts as unknown and
/// is read back as [`Span::MAX`].
#[derive(Clone, Copy)]
pub(super) struct StampQuality {
    domain: Domain,
    error: [u8; 5],
}

const UNBOUNDED: [u8; 5] = [u8::MAX; 5];

impl StampQuality {
    fn new(domain: Domain, error: Span) -> Self {
        let error = match error.as_nanos().to_le_bytes() {
            [a, b, c, d, e, 0, 0, 0] => [a, b, c, d, e],
            _ => UNBOUNDED,
        };
        Self { domain, error }
    }

    fn error(self) -> Span {
        let [a, b, c, d, e] = self.error;
        match self.error {
            UNBOUNDED => Span::MAX,
            _ => Span::from_nanos(i64::from_le_bytes([a, b, c, d, e, 0, 0, 0])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_departure_takes_one_cache_line() {
        assert_eq!((size_of::<Departure>(), align_of::<Departure>()), (64, 64));
    }

    #[test]
    fn errors_above_18_minutes_become_unbounded() {
        let kept =
            |nanos| StampQuality::new(Domain::Nic, Span::from_nanos(nanos)).error().as_nanos();
        let minutes = 18 * 60 * 1_000_000_000;
        for nanos in [0, 70, 16_000_000_000, minutes, (1 << 40) - 2] {
            assert_eq!(kept(nanos), nanos);
        }
        for nanos in [(1 << 40) - 1, 1 << 40, i64::MAX, -1] {
            assert_eq!(kept(nanos), i64::MAX);
        }
    }
}
