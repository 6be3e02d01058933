//! How much traffic passed a point, and in what time.

use wirestamp_clock::{Time, Utc};

use crate::Observation;
use crate::numeric::{count_to_f64, nanos_to_f64};

/// The bytes of the packets that passed a point, with link headers and without check sequences.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Volume {
    pub(super) bytes: u64,
    ends: Option<Ends>,
}

/// When traffic began and ended.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: Time<Utc>,
    /// The length of the first packet.
    length: u32,
    last: Time<Utc>,
}

impl Volume {
    /// Takes a packet, in any order of time.
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

    /// Bits per second from the first to the last packet. The first one's bits are left out, because
    /// they passed before that time began. `None` below two packets, or if all have one stamp.
    pub(super) fn bits_per_second(&self) -> Option<f64> {
        let Ends { first, length, last } = self.ends?;
        let nanos = (last - first).as_nanos();
        let bytes = self.bytes.saturating_sub(length.into());
        (nanos > 0).then(|| count_to_f64(bytes) * 8e9 / nanos_to_f64(nanos))
    }
}
