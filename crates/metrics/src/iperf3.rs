//! Figures of an iperf3 UDP test, counted as iperf3's server counts them.

use std::num::NonZeroU32;

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::iperf3::Iperf3;

use crate::rtp::Jitter;

/// Unit of the sender's clock.
const MICROSECONDS: NonZeroU32 = NonZeroU32::new(1_000_000).expect("not 0");

/// Datagrams of one test at one point, counted as `iperf_udp_recv` does in iperf's `src/iperf_udp.c`: from the first
/// datagram on, including omitted seconds (`--omit`).
///
/// Two properties are iperf3's, not the network's: losses after the last received datagram are not counted, and each
/// late datagram cancels a loss, also if it is a duplicate, so that duplicates hide losses ([`Stream::out_of_order`]
/// counts both).
///
/// The jitter is that of RFC 3550 section 6.4.1 in units of microseconds. iperf3 reads its clock after the datagram,
/// so its jitter includes the wake-up latency of the server; a capture stamp does not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    /// Datagrams before the first, which are not counted.
    pub(crate) before: u64,
    highest: u64,
    /// Datagrams received, including duplicates.
    pub received: u64,
    /// Datagrams missing, as iperf3 counts them: `lost_packets`.
    pub lost: u64,
    /// Datagrams that came after one with a higher count, and duplicates: `out_of_order`.
    pub out_of_order: u64,
    /// Interarrival jitter at the last datagram. In milliseconds it is iperf3's `jitter_ms`.
    pub jitter: Jitter,
}

impl Stream {
    /// A test of which this many datagrams were sent before the capture.
    #[must_use]
    pub fn after(datagrams: u64) -> Self {
        Self { before: datagrams, highest: datagrams, ..Self::default() }
    }

    /// Records the next datagram, in the order of arrival.
    pub fn record(&mut self, datagram: &Iperf3, arrival: Time<Utc>) {
        self.received += 1;
        if datagram.count > self.highest {
            self.lost += datagram.count - self.highest - 1;
            self.highest = datagram.count;
        } else {
            self.out_of_order += 1;
            // One sent before the capture was not counted as lost.
            self.lost = self.lost.saturating_sub(u64::from(datagram.count > self.before));
        }
        self.jitter.record(wrapped(datagram.sent_micros), MICROSECONDS, arrival);
    }

    /// Datagrams expected: the highest count so far minus those sent before the capture. iperf3's `packets`.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.highest - self.before
    }
}

/// The clock as a 32-bit timestamp, which wraps after 71 minutes: neighbours may be half as far apart.
#[expect(clippy::cast_possible_truncation, reason = "takes the low 32 bits")]
const fn wrapped(micros: u64) -> u32 {
    micros as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirestamp_clock::Span;

    use super::*;

    fn stream(counts: &[u64]) -> Stream {
        let mut stream = Stream::default();
        for count in counts {
            let sent_micros = count * 1000;
            stream.record(&Iperf3 { sent_micros, count: *count }, Time::from_nanos(0));
        }
        stream
    }

    fn counts(stream: &Stream) -> [u64; 4] {
        [stream.packets(), stream.received, stream.lost, stream.out_of_order]
    }

    #[test]
    fn late_datagrams_fill_gaps() {
        assert_eq!(counts(&stream(&[])), [0; 4]);
        assert_eq!(counts(&stream(&[1, 2, 3])), [3, 3, 0, 0]);
        assert_eq!(counts(&stream(&[3])), [3, 1, 2, 0]);
        assert_eq!(counts(&stream(&[1, 5, 3])), [5, 3, 2, 1]);
    }

    #[test]
    fn datagrams_before_the_capture_are_not_counted() {
        let mut stream = Stream::after(1000);
        for count in [1001, 1003] {
            stream.record(&Iperf3 { sent_micros: count, count }, Time::from_nanos(0));
        }
        assert_eq!(counts(&stream), [3, 2, 1, 0]);
        stream.record(&Iperf3 { sent_micros: 1000, count: 1000 }, Time::from_nanos(0));
        assert_eq!(counts(&stream), [3, 3, 1, 1], "fills no gap");
    }

    #[test]
    fn duplicate_hides_a_loss() {
        assert_eq!(counts(&stream(&[1, 3, 3])), [3, 3, 0, 1]);
        assert_eq!(counts(&stream(&[1, 1, 1])), [1, 3, 0, 2]);
    }

    #[test]
    fn datagram_16_ms_late_adds_1_ms_of_jitter() {
        let mut stream = Stream::default();
        let start = 0xffff_ff00; // the low 32 bits wrap on the way
        for (count, at) in [(1, 0), (2, 36)] {
            let sent_micros = start + (count - 1) * 20_000;
            let arrival = Time::from_nanos(0) + Span::from_millis(at);
            stream.record(&Iperf3 { sent_micros, count }, arrival);
        }
        assert!((stream.jitter.nanos - 1e6).abs() < 1e-6);
    }

    proptest! {
        /// iperf3's own arithmetic: seconds as floating point numbers, from the first datagram on.
        #[test]
        fn jitter_matches_iperf3(
            delays in prop::collection::vec(0_u64..50_000, 1..200),
        ) {
            let mut stream = Stream::default();
            let (mut jitter, mut transit_before) = (0.0, None);
            for (delay, count) in delays.iter().zip(1..) {
                let sent_micros = 1_000_000 + count * 700;
                let arrival_micros = sent_micros + delay;
                let arrival = Time::from_nanos(i64::try_from(arrival_micros * 1000).unwrap());
                stream.record(&Iperf3 { sent_micros, count }, arrival);
                let transit = f64::from(u32::try_from(*delay).unwrap()) / 1e6;
                let difference: f64 = transit - transit_before.replace(transit).unwrap_or(transit);
                jitter += (difference.abs() - jitter) / 16.0;
            }
            prop_assert!((stream.jitter.nanos / 1e9 - jitter).abs() < 1e-9);
        }
    }
}
