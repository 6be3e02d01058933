//! Interarrival jitter.

use std::num::NonZeroU32;

use wirestamp_clock::{Time, Utc};

use crate::numeric::nanos_to_f64;

/// Interarrival jitter of RFC 3550 section 6.4.1: J += (|D| - J) / 16, where D is the time between two neighbours in
/// the order of arrival minus the time between their timestamps.
///
/// Includes late packets and duplicates. Arrivals are not rounded to timestamp units first, unlike in appendix A.8.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    previous: Option<(u32, Time<Utc>)>,
    /// Jitter in nanoseconds; 0 below two packets.
    pub nanos: f64,
    /// Whether two neighbours were compared.
    is_known: bool,
}

impl Jitter {
    /// Records the next packet, in the order of arrival: its timestamp, the clock rate in Hz, and its arrival.
    pub fn record(&mut self, timestamp: u32, clock_rate: NonZeroU32, arrival: Time<Utc>) {
        if let Some((before, arrived_before)) = self.previous.replace((timestamp, arrival)) {
            let nominal = nominal_nanos(timestamp.wrapping_sub(before).cast_signed(), clock_rate);
            let difference = nanos_to_f64((arrival - arrived_before).as_nanos()) - nominal;
            self.nanos += (difference.abs() - self.nanos) / 16.0;
            self.is_known = true;
        }
    }

    /// Jitter in nanoseconds; none below two packets.
    #[must_use]
    pub fn known_nanos(&self) -> Option<f64> {
        self.is_known.then_some(self.nanos)
    }

    /// Removes the last packet, which is unrelated to the next. The jitter remains.
    pub const fn interrupt(&mut self) {
        self.previous = None;
    }
}

/// Timestamp units in nanoseconds.
pub(super) fn nominal_nanos(units: i32, clock_rate: NonZeroU32) -> f64 {
    f64::from(units) * 1e9 / f64::from(clock_rate.get())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirestamp_clock::Span;

    use super::*;

    const RATE: NonZeroU32 = NonZeroU32::new(8000).expect("not 0");

    fn jitter(packets: impl IntoIterator<Item = (u32, i64)>) -> Jitter {
        let mut jitter = Jitter::default();
        for (timestamp, micros) in packets {
            jitter.record(timestamp, RATE, Time::from_nanos(0) + Span::from_micros(micros));
        }
        jitter
    }

    #[test]
    fn a_packet_16_ms_late_adds_a_millisecond() {
        assert_eq!((jitter([(0, 0)]).nanos, jitter([(0, 0)]).known_nanos()), (0.0, None));
        assert_eq!(jitter([(0, 0), (160, 20_000)]).known_nanos(), Some(0.0));
        let once = jitter([(0, 0), (160, 36_000)]);
        assert!((once.nanos - 1e6).abs() < 1e-6);
        // And the next one, which is on time, is 16 ms early after it.
        let twice = jitter([(0, 0), (160, 36_000), (320, 40_000)]);
        assert!((twice.nanos - 1.9375e6).abs() < 1e-6);
    }

    #[test]
    fn a_wrap_of_the_timestamp_is_no_jitter() {
        assert_eq!(jitter([(u32::MAX - 79, 0), (80, 20_000)]).nanos, 0.0);
    }

    proptest! {
        /// Both forms of appendix A.8, of arrivals in whole units. The one without floating point loses
        /// up to one unit by rounding.
        #[test]
        fn jitter_matches_appendix_a8(delays in prop::collection::vec(0u32..800, 1..100)) {
            let packets = (0..).zip(&delays).map(|(number, delay)| (number * 160, number * 160 + delay));
            let found = jitter(packets.clone().map(|(sent, at)| (sent, i64::from(at) * 125)));
            let (mut jitter, mut scaled, mut previous) = (0.0, 0u32, None::<u32>);
            for transit in packets.map(|(sent, at)| at - sent) {
                if let Some(previous) = previous.replace(transit) {
                    let difference = transit.abs_diff(previous);
                    jitter += (f64::from(difference) - jitter) / 16.0;
                    scaled = scaled + difference - ((scaled + 8) >> 4);
                }
            }
            let units = found.nanos * f64::from(RATE.get()) / 1e9;
            prop_assert!((units - jitter).abs() < 1e-6);
            prop_assert!((units - f64::from(scaled) / 16.0).abs() < 1.0);
        }
    }
}
