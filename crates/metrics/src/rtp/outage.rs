//! Distinction of an outage, in which thousands of packets were lost, from a restart of the sender.

use wirestamp_clock::{Time, Utc};

use super::Packet;
use crate::numeric::{count_to_f64, nanos_to_f64};

/// Max change of the packet rate in an outage, as a factor: silence suppression and variable bitrates change it.
const MAX_RATE_CHANGE: f64 = 4.0;
/// Max difference between the advance of the timestamps and the time elapsed: a fixed part, in nanoseconds, for changed
/// delays, and a part of the time elapsed, for a clock rate that is estimated.
const MAX_DIFFERENCE: f64 = 1e9;
const MAX_DIFFERENCE_RATIO: f64 = 0.125;

/// Advance of a source since its first packet or its last restart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Advance(Option<Run>);

/// Packets without a restart.
#[derive(Clone, Copy, Debug)]
struct Run {
    first_arrival: Time<Utc>,
    /// Packet with the highest number.
    highest: Packet,
    /// Sequence numbers and timestamp units from the first packet to the highest.
    numbers: u64,
    units: f64,
}

impl Advance {
    /// Records a packet whose number is the highest so far.
    pub(super) fn record(&mut self, packet: &Packet) {
        let run = self.0.get_or_insert(Run {
            first_arrival: packet.arrival,
            highest: *packet,
            numbers: 0,
            units: 0.0,
        });
        run.numbers += u64::from(packet.sequence.wrapping_sub(run.highest.sequence));
        let units = packet.timestamp.wrapping_sub(run.highest.timestamp).cast_signed();
        run.units += f64::from(units);
        run.highest = *packet;
    }

    /// Whether a packet whose number is far from the highest follows an outage: number, timestamp and arrival time
    /// advanced alike. If the clock rate is unknown, it is estimated from the packets before. A restarted sender has
    /// random numbers and timestamps (RFC 3550 section 5.1).
    pub(super) fn has_outage_before(&self, packet: &Packet) -> bool {
        let Some(Run { first_arrival, highest, numbers, units }) = self.0 else { return false };
        let before = nanos_to_f64((highest.arrival - first_arrival).as_nanos());
        let elapsed = nanos_to_f64((packet.arrival - highest.arrival).as_nanos());
        if before <= 0.0 || elapsed <= 0.0 {
            return false;
        }
        let due = count_to_f64(numbers) * elapsed / before;
        let advance = f64::from(packet.sequence.wrapping_sub(highest.sequence));
        let is_at_rate = (due / MAX_RATE_CHANGE..=due * MAX_RATE_CHANGE).contains(&advance);
        let units_per_nano =
            packet.clock_rate.map_or(units / before, |rate| f64::from(rate.get()) / 1e9);
        let difference =
            f64::from(packet.timestamp.wrapping_sub(highest.timestamp)) - elapsed * units_per_nano;
        let max_difference = MAX_DIFFERENCE + elapsed * MAX_DIFFERENCE_RATIO;
        is_at_rate && difference.abs() <= max_difference * units_per_nano
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use wirestamp_clock::Span;

    use super::*;

    const RATE: Option<NonZeroU32> = NonZeroU32::new(8000);

    fn packet(number: u16, timestamp: u32, millis: i64, clock_rate: Option<NonZeroU32>) -> Packet {
        Packet {
            sequence: number,
            timestamp,
            marker: false,
            payload_type: 0,
            clock_rate,
            arrival: Time::from_nanos(0) + Span::from_millis(millis),
        }
    }

    /// Whether a packet after 100 of 20 ms, the last one at 1980 ms, has an outage before it.
    fn has_outage(
        number: u16,
        timestamp: u32,
        millis: i64,
        clock_rate: Option<NonZeroU32>,
    ) -> bool {
        let mut advance = Advance::default();
        for nth in 0..100u16 {
            let (timestamp, millis) = (u32::from(nth) * 160, i64::from(nth) * 20);
            advance.record(&packet(60_000 + nth, timestamp, millis, clock_rate));
        }
        advance.has_outage_before(&packet(number, timestamp, millis, clock_rate))
    }

    #[test]
    fn number_timestamp_and_arrival_advance_alike_in_an_outage() {
        // 5000 and 60,000 packets after the first one.
        for clock_rate in [RATE, None] {
            assert!(has_outage(65_000, 5000 * 160, 100_000, clock_rate));
            assert!(has_outage(65_000, 5000 * 160, 100_600, clock_rate), "delayed");
            assert!(has_outage(54_464, 60_000 * 160, 1_200_000, clock_rate));
        }
    }

    #[test]
    fn random_number_or_timestamp_is_no_outage() {
        for clock_rate in [RATE, None] {
            assert!(!has_outage(65_000, 5000 * 160, 2000, clock_rate), "at once");
            assert!(!has_outage(65_000, 100 * 160, 2000, clock_rate), "continued timestamps");
            assert!(!has_outage(65_000, 3_000_000_000, 100_000, clock_rate), "timestamp");
            assert!(!has_outage(65_000, 0, 100_000, clock_rate), "timestamp that begins again");
            assert!(!has_outage(40_000, 5000 * 160, 100_000, clock_rate), "number");
            assert!(!has_outage(59_900, 101 * 160, 2020, clock_rate), "late packet");
        }
        assert!(!Advance::default().has_outage_before(&packet(5000, 0, 100, RATE)));
    }
}
