//! Due times of the packets of a stream.

use std::num::NonZeroU32;

use wirestamp_clock::{Span, Time, Utc};

/// Max deviation of a packet, as a multiple of the mean deviation (the jitter of RFC 3550). About one in a hundred
/// packets deviates by more, if deviations fall off exponentially.
const DEVIATIONS: f64 = 5.0;

/// Highest packet of a stream so far, and the last timestamp step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    highest: Option<PacketTiming>,
    step: u32,
}

/// Sequence number, timestamp and arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketTiming {
    pub(super) number: u64,
    pub(super) timestamp: u32,
    pub(super) arrival: Time<Utc>,
}

/// Timing of a gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct GapTiming {
    /// Arrival time of the packet before the gap.
    pub(super) since: Time<Utc>,
    /// Max distance between due time and possible passing time, for packets due at equal intervals.
    pub(super) reach: Option<Span>,
}

impl Pacing {
    /// Records the packet with the highest number so far, the clock rate, and the jitter in nanoseconds. None if no
    /// packet is missing before it.
    pub(super) fn record(
        &mut self,
        timing: PacketTiming,
        clock_rate: Option<NonZeroU32>,
        jitter: f64,
    ) -> Option<GapTiming> {
        let before = self.highest.replace(timing)?;
        let timestamp_step = timing.timestamp.wrapping_sub(before.timestamp);
        let numbers = timing.number.saturating_sub(before.number);
        if numbers == 1 {
            self.step = timestamp_step;
            return None;
        }
        let reach = clock_rate.and_then(|rate| {
            let is_regular = self.step > 0
                && u32::try_from(numbers).ok().and_then(|it| it.checked_mul(self.step))
                    == Some(timestamp_step);
            let nominal = i128::from(timestamp_step) * 1_000_000_000 / i128::from(rate.get());
            let passed = i128::from((timing.arrival - before.arrival).as_nanos());
            let deviation = i64::try_from((passed - nominal).abs()).ok()?;
            is_regular
                .then(|| Span::from_nanos(deviation.saturating_add(nanos(DEVIATIONS * jitter))))
        });
        Some(GapTiming { since: before.arrival, reach })
    }

    /// Clears the state: the sender restarted its numbers and timestamps.
    pub(super) fn interrupt(&mut self) {
        *self = Self::default();
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
const fn nanos(nanos: f64) -> i64 {
    nanos as i64
}
