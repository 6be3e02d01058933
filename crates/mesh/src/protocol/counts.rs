//! Counts of a point, sent from probe to collector.

use prost::Message;
use thiserror::Error;
use wirestamp_clock::{Span, Time, Utc};

use crate::v1;

/// Counts at an observation point. Counts of one interval in several messages are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Counts by interval, each interval at most once.
    pub counts: Vec<Count>,
    /// All packets before this time are counted in this or earlier messages.
    pub complete_until: Time<Utc>,
}

/// Counts of a part of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Begin of the interval.
    pub begin: Time<Utc>,
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire, with link header, without frame check sequence.
    pub bytes: u64,
    /// Packets lost by the capture, of any kind.
    pub missed: u64,
    /// Observed time, not negative.
    pub watched: Span,
}

/// Why a message is not valid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MalformedCounts {
    /// It cannot be decoded.
    #[error("cannot decode counts: {0}")]
    Unreadable(#[from] prost::DecodeError),
    /// A count or time is too large.
    #[error("count {0} is out of range")]
    Beyond(usize),
}

/// Max value in a count: sums must fit into the signed integers of databases.
const MAX_COUNT: u64 = 1 << 56;

impl Counts {
    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let count = |it: &Count| v1::Count {
            begin: it.begin.as_nanos(),
            packets: it.packets,
            bytes: it.bytes,
            missed: it.missed,
            watched: it.watched.as_nanos().unsigned_abs(),
        };
        let counts = self.counts.iter().map(count).collect();
        v1::Counts { counts, complete_until: self.complete_until.as_nanos() }.encode_to_vec()
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn decode(message: &[u8]) -> Result<Self, MalformedCounts> {
        let message = v1::Counts::decode(message)?;
        let count = |(place, it): (usize, &v1::Count)| {
            let v1::Count { begin, packets, bytes, missed, watched } = *it;
            if [packets, bytes, missed, watched].iter().any(|count| *count > MAX_COUNT) {
                return Err(MalformedCounts::Beyond(place));
            }
            let begin = Time::from_nanos(begin);
            let watched = Span::from_nanos(watched.cast_signed());
            Ok(Count { begin, packets, bytes, missed, watched })
        };
        let counts = message.counts.iter().enumerate().map(count).collect::<Result<_, _>>()?;
        Ok(Self { counts, complete_until: Time::from_nanos(message.complete_until) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_round_trip(
            counts in prop::collection::vec(
                (any::<i64>(), 0..MAX_COUNT, 0..MAX_COUNT, 0..MAX_COUNT, 0..MAX_COUNT), 0..5),
            until: i64,
        ) {
            let counts = counts.into_iter().map(|(begin, packets, bytes, missed, watched)| Count {
                begin: Time::from_nanos(begin),
                packets,
                bytes,
                missed,
                watched: Span::from_nanos(watched.cast_signed()),
            });
            let complete_until = Time::from_nanos(until);
            let counts = Counts { counts: counts.collect(), complete_until };
            prop_assert_eq!(Counts::decode(&counts.encode()), Ok(counts));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            if let Ok(counts) = Counts::decode(&bytes) {
                prop_assert_eq!(Counts::decode(&counts.encode()), Ok(counts));
            }
        }
    }

    #[test]
    fn counts_out_of_range_are_rejected() {
        let count = v1::Count { packets: MAX_COUNT + 1, ..v1::Count::default() };
        let message = v1::Counts { counts: vec![v1::Count::default(), count], complete_until: 1 };
        let error = Counts::decode(&message.encode_to_vec()).unwrap_err();
        assert_eq!(error, MalformedCounts::Beyond(1));
    }
}
