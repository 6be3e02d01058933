//! Packets that come too late for a de-jitter buffer, and how long packets take until they are played.

use wirestamp_clock::Span;

use super::JitterBuffer;
use crate::numeric::{count_to_f64, nanos_to_f64, round_to_span};

/// Packets after which a fixed buffer has followed two thirds of a lasting delay change.
const ADAPTATION_PACKETS: f64 = 256.0;

/// Weight of the past in the averages of the adaptive buffer, and how many mean deviations it waits (α and β of the
/// algorithm). Until it has that many packets, each packet has the same weight.
const PAST: f64 = 0.998_002;
const DEVIATIONS: f64 = 4.0;
/// Mean deviation that is assumed before the first packet, in nanoseconds: the buffer begins with 60 ms. It counts as
/// much as this many packets.
const FIRST_DEVIATION: f64 = 15e6;
const FIRST_DEVIATION_PACKETS: f64 = 15.0;

/// The playout of a stream. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Playout {
    reference: Option<Reference>,
    was_late: bool,
    packets: u64,
    /// Sums over all packets: from sending to the time of playing, and how much of that is beyond the fastest packets.
    delays: f64,
    waits: f64,
}

/// Transit times of the packets so far, from an unknown zero.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// Their number.
    packets: f64,
    /// That of the fastest packets. It follows a lasting change slowly, because clocks drift and routes change.
    fastest: f64,
    mean: f64,
    deviation: f64,
}

/// Timeliness of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeliness {
    InTime,
    /// Too late; `again` if the packet before was late too.
    Late {
        again: bool,
    },
}

impl Playout {
    /// Records the next transit time: arrival minus sending time or timestamp.
    pub(crate) fn record(&mut self, transit: Span, buffer: JitterBuffer) -> Timeliness {
        let transit = nanos_to_f64(transit.as_nanos());
        let first =
            Reference { packets: 0.0, fastest: transit, mean: transit, deviation: FIRST_DEVIATION };
        let before = self.reference.unwrap_or(first);
        self.reference = Some(before.next(transit));
        let fastest = before.fastest.min(transit);
        let wait = match buffer {
            JitterBuffer::Fixed(length) => nanos_to_f64(length.as_nanos()),
            JitterBuffer::Adaptive => {
                (before.mean + DEVIATIONS * before.deviation - fastest).max(0.0)
            }
        };
        self.packets += 1;
        self.delays += fastest + wait;
        self.waits += wait;
        let late = transit > fastest + wait;
        let again = std::mem::replace(&mut self.was_late, late);
        if late { Timeliness::Late { again } } else { Timeliness::InTime }
    }

    /// Forgets the transit times: the sender has restarted.
    pub(crate) fn restart(&mut self) {
        (self.reference, self.was_late) = (None, false);
    }

    /// Adds the packets of another stream.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.delays += other.delays;
        self.waits += other.waits;
    }

    /// Mean time from sending to playing; none without packets.
    pub(crate) fn mean_delay(&self) -> Option<Span> {
        self.mean(self.delays)
    }

    /// The part of it that is beyond the transit time of the fastest packets.
    pub(crate) fn mean_wait(&self) -> Option<Span> {
        self.mean(self.waits)
    }

    fn mean(&self, sum: f64) -> Option<Span> {
        (self.packets > 0).then(|| round_to_span(sum / count_to_f64(self.packets)))
    }
}

impl Reference {
    fn next(self, transit: f64) -> Self {
        let excess = transit - self.fastest;
        let fastest =
            if excess < 0.0 { transit } else { self.fastest + excess / ADAPTATION_PACKETS };
        let packets = self.packets + 1.0;
        let averaged = |past: f64, next: f64, counted: f64| {
            past + (next - past) * counted.recip().max(1.0 - PAST)
        };
        let mean = averaged(self.mean, transit, packets);
        let distance = (mean - transit).abs();
        let deviation = averaged(self.deviation, distance, FIRST_DEVIATION_PACKETS + packets);
        Self { packets, fastest, mean, deviation }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use proptest::prelude::*;

    use super::*;

    const BUFFER: JitterBuffer = JitterBuffer::Fixed(Span::from_millis(60));

    fn late(transits: impl IntoIterator<Item = i64>, buffer: JitterBuffer) -> usize {
        let mut playout = Playout::default();
        let late =
            |millis: &i64| playout.record(Span::from_millis(*millis), buffer) != Timeliness::InTime;
        transits.into_iter().filter(late).count()
    }

    #[test]
    fn packet_slower_than_the_buffer_is_late() {
        assert_eq!(late([5, 60, 5, 64, 5], BUFFER), 0);
        assert_eq!(late([5, 5, 70, 5], BUFFER), 1);
        assert_eq!(late([70, 5, 70, 70], BUFFER), 2, "the first one was not the fastest");
        assert_eq!(late([-500, -430], BUFFER), 1);
    }

    #[test]
    fn lasting_change_and_clock_drift_are_followed() {
        let change = || [0; 100].into_iter().chain([100; 2000]);
        assert!((50..400).contains(&late(change(), BUFFER)));
        assert!((10..400).contains(&late(change(), JitterBuffer::Adaptive)));
        // A millisecond every 20 packets: 2500 ppm at 50 packets a second.
        for buffer in [BUFFER, JitterBuffer::Adaptive] {
            assert_eq!(late((0..10_000).map(|packet| packet / 20), buffer), 0);
        }
    }

    #[test]
    fn consecutive_late_packets_are_marked() {
        let mut playout = Playout::default();
        let found = [0, 90, 90, 0, 90].map(|it| playout.record(Span::from_millis(it), BUFFER));
        let late = |again| Timeliness::Late { again };
        let in_time = Timeliness::InTime;
        assert_eq!(found, [in_time, late(false), late(true), in_time, late(false)]);
    }

    #[test]
    fn fixed_buffer_adds_its_length_to_the_delay() {
        let mut playout = Playout::default();
        for millis in [20, 20, 20, 20] {
            playout.record(Span::from_millis(millis), BUFFER);
        }
        assert_eq!(playout.mean_delay(), Some(Span::from_millis(80)));
        assert_eq!(playout.mean_wait(), Some(Span::from_millis(60)));
        assert_eq!(Playout::default().mean_delay(), None);
    }

    #[test]
    fn one_slow_packet_at_the_beginning_does_not_lengthen_the_adaptive_buffer() {
        let mut playout = Playout::default();
        for millis in iter::once(400).chain([10; 1000]) {
            playout.record(Span::from_millis(millis), JitterBuffer::Adaptive);
        }
        let wait = playout.mean_wait().unwrap();
        assert!(wait < Span::from_millis(60), "{wait:?}");
    }

    /// The adaptive buffer by its definition, before it forgets: averages of all earlier packets.
    fn simulated(transits: &[f64]) -> Vec<bool> {
        let mean = |until: usize| {
            let earlier = &transits[..until.max(1)];
            earlier.iter().sum::<f64>() / count_to_f64(earlier.len() as u64)
        };
        let deviation = |until: usize| {
            let deviations = (0..until).map(|packet| (mean(packet + 1) - transits[packet]).abs());
            let sum = FIRST_DEVIATION_PACKETS * FIRST_DEVIATION + deviations.sum::<f64>();
            sum / (FIRST_DEVIATION_PACKETS + count_to_f64(until as u64))
        };
        // A nanosecond for rounding.
        let deadline = |packet: usize| mean(packet) + DEVIATIONS * deviation(packet) + 1.0;
        (0..transits.len()).map(|packet| transits[packet] > deadline(packet)).collect()
    }

    proptest! {
        #[test]
        fn adaptive_buffer_is_as_its_definition_says(
            base in 0..200_i64,
            jitter in prop::collection::vec(0..400_i64, 1..120),
        ) {
            let transits: Vec<_> = jitter.iter().map(|jitter| base + jitter).collect();
            let nanos: Vec<_> = transits.iter().map(|it| nanos_to_f64(it * 1_000_000)).collect();
            let mut playout = Playout::default();
            let late: Vec<_> = transits
                .iter()
                .map(|it| playout.record(Span::from_millis(*it), JitterBuffer::Adaptive))
                .map(|it| it != Timeliness::InTime)
                .collect();
            prop_assert_eq!(late, simulated(&nanos));
        }
    }
}
