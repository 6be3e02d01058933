//! Traffic volume at a point, and its duration.

use wirestamp_clock::{Time, Utc};

use crate::Observation;
use crate::numeric::{count_to_f64, nanos_to_f64};

/// Bytes of the packets at a point, with link headers and without frame check sequences.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Volume {
    pub(super) bytes: u64,
    ends: Option<Ends>,
}

/// First and last packet.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: Time<Utc>,
    /// Length of the first packet.
    length: u32,
    last: Time<Utc>,
}

impl Volume {
    /// Records a packet, in any order of time.
    pub(super) fn record(&mut self, packet: &Observation) {
        self.bytes = self.bytes.saturating_add(packet.length.into());
        let time = packet.stamp.utc;
        self.extend(Ends { first: time, length: packet.length, last: time });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        if let Some(ends) = other.ends {
            self.extend(ends);
        }
    }

    fn extend(&mut self, more: Ends) {
        self.ends = Some(self.ends.map_or(more, |ends| {
            let earlier = if more.first < ends.first { more } else { ends };
            Ends { last: ends.last.max(more.last), ..earlier }
        }));
    }

    /// Bits per second from the first to the last packet. Excludes the bits of the first one, which passed before that
    /// time. `None` below two packets, or if all have one stamp.
    pub(super) fn bits_per_second(&self) -> Option<f64> {
        let Ends { first, length, last } = self.ends?;
        let nanos = (last - first).as_nanos();
        let bytes = self.bytes.saturating_sub(length.into());
        (nanos > 0).then(|| count_to_f64(bytes) * 8e9 / nanos_to_f64(nanos))
    }
}
