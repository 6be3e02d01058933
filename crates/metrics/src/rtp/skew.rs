//! Difference between the sender's clock and the capture clock.

use std::num::NonZeroU32;

use wirestamp_clock::{Span, Time, Utc};

use super::jitter::nominal_nanos;
use crate::numeric::{nanos_to_f64, round_to_span};

/// Skew of a stream: time since its first packet by its timestamps, minus that by the arrivals.
///
/// Positive where the timestamps run ahead: the sender's clock is fast, or packets come earlier than at first. Equals
/// the skew of Wireshark, with its sign, while packets arrive in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skew {
    first_arrival: Option<Time<Utc>>,
    /// Last timestamp, and the time that the timestamps advanced up to it, in nanoseconds.
    last: (u32, f64),
    now: f64,
    max: f64,
}

impl Skew {
    /// Records the next packet, in the order of arrival: its timestamp, the clock rate in Hz, and its arrival.
    pub fn record(&mut self, timestamp: u32, clock_rate: NonZeroU32, arrival: Time<Utc>) {
        let Some(first_arrival) = self.first_arrival else {
            self.first_arrival = Some(arrival);
            self.last = (timestamp, 0.0);
            return;
        };
        let (before, elapsed) = self.last;
        let step = nominal_nanos(timestamp.wrapping_sub(before).cast_signed(), clock_rate);
        self.last = (timestamp, elapsed + step);
        self.now = elapsed + step - nanos_to_f64((arrival - first_arrival).as_nanos());
        if self.now.abs() > self.max.abs() {
            self.max = self.now;
        }
    }

    /// Restarts with the next packet, after the sender's timestamps did. The max skew remains.
    pub const fn interrupt(&mut self) {
        (self.first_arrival, self.now) = (None, 0.0);
    }

    /// Skew at the last packet.
    #[must_use]
    pub fn now(&self) -> Span {
        round_to_span(self.now)
    }

    /// Max skew so far, by magnitude, with its sign.
    #[must_use]
    pub fn max(&self) -> Span {
        round_to_span(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: NonZeroU32 = NonZeroU32::new(8000).expect("not 0");

    fn skew(packets: &[(u32, i64)]) -> Skew {
        let mut skew = Skew::default();
        for (timestamp, millis) in packets {
            skew.record(*timestamp, RATE, Time::from_nanos(0) + Span::from_millis(*millis));
        }
        skew
    }

    #[test]
    fn late_packets_have_a_negative_skew() {
        let skew = skew(&[(0, 100), (160, 127), (320, 137)]);
        assert_eq!(skew.now(), Span::from_millis(3));
        assert_eq!(skew.max(), Span::from_millis(-7));
    }

    #[test]
    fn reordered_packets_do_not_change_the_skew() {
        let skew = skew(&[(u32::MAX, 0), (319, 40), (159, 40), (479, 60)]);
        assert_eq!(skew.now(), Span::ZERO);
        assert_eq!(skew.max(), Span::from_millis(-20));
    }

    #[test]
    fn a_sender_whose_clock_is_fast_drifts_away() {
        let packets: Vec<_> = (0..1000u32).map(|it| (it * 168, i64::from(it) * 20)).collect();
        assert_eq!(skew(&packets).now(), Span::from_millis(999));
    }
}
