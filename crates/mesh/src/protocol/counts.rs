//! What a probe has counted at a point, as it goes to the collector.

use prost::Message;
use thiserror::Error;
use wirestamp_clock::{Span, Time, Utc};

use crate::v1;

/// What was counted at one observation point. Counts of one interval in several messages add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Parts of what passed in intervals, of each interval one at the most.
    pub counts: Vec<Count>,
    /// Every packet that passed before this time is counted, here or before.
    pub complete_until: Time<Utc>,
}

/// A part of what passed in an interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// When the interval begins.
    pub begin: Time<Utc>,
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire, with the link header, without the frame check sequence.
    pub bytes: u64,
    /// Packets that the capture lost, of whatever kind.
    pub missed: u64,
    /// For how long somebody looked, not below 0.
    pub watched: Span,
}

/// Why a message makes no sense.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MalformedCounts {
    /// It is no message of protocol buffers.
    #[error("counts cannot be read: {0}")]
    Unreadable(#[from] prost::DecodeError),
    /// Nobody counts so much, or looks for so long.
    #[error("count {0} is beyond what can be counted")]
    Beyond(usize),
}

/// More than this nobody counts in an interval: what databases keep as signed can still be added up.
const MOST: u64 = 1 << 56;

impl Counts {
    /// The message.
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

    /// What a message says.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn decode(message: &[u8]) -> Result<Self, MalformedCounts> {
        let message = v1::Counts::decode(message)?;
        let count = |(place, it): (usize, &v1::Count)| {
            let v1::Count { begin, packets, bytes, missed, watched } = *it;
            if [packets, bytes, missed, watched].iter().any(|count| *count > MOST) {
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
        fn what_was_counted_is_read_as_it_was_written(
            counts in prop::collection::vec(
                (any::<i64>(), 0..MOST, 0..MOST, 0..MOST, 0..MOST), 0..5),
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
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok(counts) = Counts::decode(&bytes) {
                prop_assert_eq!(Counts::decode(&counts.encode()), Ok(counts));
            }
        }
    }

    #[test]
    fn what_nobody_can_count_is_refused() {
        let count = v1::Count { packets: MOST + 1, ..v1::Count::default() };
        let message = v1::Counts { counts: vec![v1::Count::default(), count], complete_until: 1 };
        let error = Counts::decode(&message.encode_to_vec()).unwrap_err();
        assert_eq!(error, MalformedCounts::Beyond(1));
    }
}
