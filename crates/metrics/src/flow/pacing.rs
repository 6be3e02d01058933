//! When the packets of a stream are due.

use std::num::NonZeroU32;

use wirestamp_clock::{Span, Time, Utc};

/// How many times the mean deviation (the jitter of RFC 3550) a packet may deviate: by more than
/// this one in some hundred does, where deviations fall off as steeply as an exponential does.
const DEVIATIONS: f64 = 5.0;

/// The highest packet of a stream so far, and the step that timestamps took to it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    highest: Option<PacketTiming>,
    step: u32,
}

/// What tells when a packet was due.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketTiming {
    pub(super) number: u64,
    pub(super) timestamp: u32,
    pub(super) arrival: Time<Utc>,
}

/// What is known of the packets between the highest two.
#[derive(Clone, Copy, Debug)]
pub(super) struct GapTiming {
    /// When the first of the two came.
    pub(super) since: Time<Utc>,
    /// How far from when it was due a packet may have passed, if they were due at equal intervals.
    pub(super) reach: Option<Span>,
}

impl Pacing {
    /// Takes the packet with the highest number so far, the rate of its timestamps, and the jitter in
    /// nanoseconds. None if none are missing before it.
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

    /// The sender has begun its numbers and timestamps anew.
    pub(super) fn interrupt(&mut self) {
        *self = Self::default();
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
const fn nanos(nanos: f64) -> i64 {
    nanos as i64
}
