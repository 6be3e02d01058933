//! A packet that left point A, packed.

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_packet::{FlowKey, PacketId};

use super::flow::FlowNumber;
use super::queue::Link;
use crate::Observation;

/// A packet that left point A. Its number is its place in the order of departure at A.
///
/// There may be millions of them, and each is met three times, after so long that it has left the
/// processor's caches: when it leaves A, when it comes to B, and when it is forgotten. So it is packed
/// into one cache line: an [`Observation`] taken apart, its flow as a number, links where there
/// could be references, and in one place what is needed until it is matched and from then on.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Departure {
    pub(super) id: PacketId,
    raw: u64,
    utc: Time<Utc>,
    /// Its place: when it left, in the order of departure.
    pub(super) time: Time<Utc>,
    length: u32,
    pub(super) flow: FlowNumber,
    pub(super) state: State,
}

/// Whether a departure has been matched. There is more in here because it fits in beside the
/// discriminant.
#[derive(Clone, Copy)]
pub(super) enum State {
    Open { beside: Beside, open: Unmatched },
    Matched { beside: Beside, arrival: Arrived },
}

/// What does not change when a departure is matched.
#[derive(Clone, Copy)]
pub(super) struct Beside {
    quality: Quality,
    /// Whether others in the queue have the same identity, or had it.
    is_shared: bool,
}

/// What is known of a departure while it has not been matched.
#[derive(Clone, Copy)]
pub(super) struct Unmatched {
    /// The next departure with the same identity.
    pub(super) twin: Link,
    /// The departure of the same flow just before this one.
    pub(super) previous: Link,
    /// The one just after it, if that has been matched.
    pub(super) next: Link,
    /// Its place among the packets of its flow, the lower half of it
    /// ([`Flow::sequence`](super::flow::Flow::sequence)).
    pub(super) sequence: u32,
}

/// The arrival that a departure has been matched to.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    /// Its place at B.
    pub(super) place: Time<Utc>,
    /// The one-way delay.
    pub(super) delay: Span,
}

impl Departure {
    /// An observation at A, at this place.
    pub(super) fn new(
        sent: &Observation,
        time: Time<Utc>,
        flow: FlowNumber,
        open: Unmatched,
    ) -> Self {
        let Stamp { raw, utc, error } = sent.stamp;
        let quality = Quality::new(raw.domain, error);
        let state = State::Open { beside: Beside { quality, is_shared: false }, open };
        Self { id: sent.id, raw: raw.value, utc, time, length: sent.length, flow, state }
    }

    /// The observation again, in the flow with this key.
    pub(super) fn observation(&self, flow: FlowKey) -> Observation {
        let quality = self.beside().quality;
        let raw = RawStamp { domain: quality.domain, value: self.raw };
        let stamp = Stamp { raw, utc: self.utc, error: quality.error() };
        Observation { id: self.id, flow, length: self.length, stamp }
    }

    #[inline]
    fn beside(&self) -> &Beside {
        match &self.state {
            State::Open { beside, .. } | State::Matched { beside, .. } => beside,
        }
    }

    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.beside().is_shared
    }

    /// There is another with the same identity.
    pub(super) fn set_shared(&mut self) {
        match &mut self.state {
            State::Open { beside, .. } | State::Matched { beside, .. } => beside.is_shared = true,
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

    /// The next departure with the same identity, of those that have not been matched.
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
        self.state = State::Matched { beside: *self.beside(), arrival };
    }

    /// Reads from the cache line that it lies in.
    #[inline]
    pub(super) fn touch(&self) -> u32 {
        self.length
    }
}

/// The clock that a stamp is of, and its error in nanoseconds, of which 40 bits are kept: 18 minutes.
/// An error that does not fit is as good as none known, and comes back as [`Span::MAX`].
#[derive(Clone, Copy)]
pub(super) struct Quality {
    domain: Domain,
    error: [u8; 5],
}

const UNBOUNDED: [u8; 5] = [u8::MAX; 5];

impl Quality {
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
    fn an_error_comes_back_as_it_was_up_to_18_minutes_and_unbounded_beyond() {
        let kept = |nanos| Quality::new(Domain::Nic, Span::from_nanos(nanos)).error().as_nanos();
        let minutes = 18 * 60 * 1_000_000_000;
        for nanos in [0, 70, 16_000_000_000, minutes, (1 << 40) - 2] {
            assert_eq!(kept(nanos), nanos);
        }
        for nanos in [(1 << 40) - 1, 1 << 40, i64::MAX, -1] {
            assert_eq!(kept(nanos), i64::MAX);
        }
    }
}
