//! An RTP stream.

use super::Packet;
use super::jitter::Jitter;
use super::outage::Advance;
use super::sequence::{Sequence, Step};
use super::skew::Skew;
use super::wireshark::Analysis;

/// Metrics of one RTP stream, in constant memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    /// Packets expected, received and lost by RFC 3550.
    pub sequence: Sequence,
    /// Interarrival jitter by RFC 3550, at the last packet.
    pub jitter: Jitter,
    /// Difference between the sender's clock and the capture clock.
    pub skew: Skew,
    /// Figures as Wireshark computes them.
    pub wireshark: Analysis,
    advance: Advance,
}

impl Stream {
    /// Records the next packet, in the order of arrival. Returns the classification of its sequence number.
    pub fn record(&mut self, packet: &Packet) -> Step {
        self.wireshark.record(packet);
        let has_outage_before = || self.advance.has_outage_before(packet);
        let step = self.sequence.record_with_outages(packet.sequence, has_outage_before);
        match step {
            Step::Ahead(_) => self.advance.record(packet),
            Step::Restarted(_) => {
                self.jitter.interrupt();
                self.skew.interrupt();
                self.advance = Advance::default();
                self.advance.record(packet);
            }
            Step::Behind(_) | Step::Stray => {}
        }
        if step != Step::Stray
            && let Some(clock_rate) = packet.clock_rate
        {
            self.jitter.record(packet.timestamp, clock_rate, packet.arrival);
            self.skew.record(packet.timestamp, clock_rate, packet.arrival);
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use wirestamp_clock::{Span, Time};

    use super::*;

    fn packet(number: u16, timestamp: u32, millis: i64) -> Packet {
        Packet {
            sequence: number,
            timestamp,
            marker: false,
            payload_type: 0,
            clock_rate: NonZeroU32::new(8000),
            arrival: Time::from_nanos(0) + Span::from_millis(millis),
        }
    }

    #[test]
    fn restart_causes_neither_loss_nor_jitter() {
        let mut stream = Stream::default();
        for number in 0..10u16 {
            let at = i64::from(number) * 20;
            stream.record(&packet(number, u32::from(number) * 160, at));
        }
        for number in 0..10u16 {
            let at = 200 + i64::from(number) * 20;
            stream.record(&packet(30_000 + number, 77_000 + u32::from(number) * 160, at));
        }
        assert_eq!(stream.sequence.lost(), 0);
        assert_eq!(stream.jitter.nanos, 0.0);
        assert_eq!(stream.skew.max(), Span::ZERO);
    }

    #[test]
    fn outage_of_thousands_of_packets_is_no_restart() {
        let mut stream = Stream::default();
        for number in (0..100u16).chain(3100..3200) {
            stream.record(&packet(number, u32::from(number) * 160, i64::from(number) * 20));
        }
        assert_eq!((stream.sequence.lost(), stream.sequence.expected()), (3000, 3200));
        assert_eq!((stream.sequence.restarts, stream.sequence.stray), (0, 0));
        assert_eq!((stream.jitter.nanos, stream.skew.max()), (0.0, Span::ZERO));
    }

    #[test]
    fn telephone_events_and_strays_are_excluded_from_jitter() {
        let mut stream = Stream::default();
        stream.record(&packet(1, 160, 0));
        stream.record(&Packet { clock_rate: None, ..packet(2, 160, 50) });
        stream.record(&packet(40_000, 999_999, 55));
        stream.record(&packet(3, 640, 60));
        assert_eq!(stream.jitter.nanos, 0.0);
        assert_eq!((stream.sequence.received, stream.sequence.stray), (3, 1));
    }
}
