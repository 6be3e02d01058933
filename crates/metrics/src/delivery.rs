//! The media delivery index of a stream of constant rate: RFC 4445.

use serde::Serialize;
use wirestamp_clock::{Span, Time, Utc};

use crate::numeric::{count_to_f64, nanos_to_f64};

/// What a [`MediaDelivery`] needs to know of the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaRate {
    /// The rate at which a receiver plays the media, in bytes per second. Nothing is measured of a
    /// stream for which this is not above 0.
    pub bytes_per_second: f64,
    /// How long an index is taken over; one second serves streams of 1 Mbit/s and up (RFC 4445 section
    /// 3.1). At least 1 ns.
    pub interval: Span,
}

/// A packet of the stream as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaPacket {
    /// When it arrived.
    pub arrival: Time<Utc>,
    /// Its media in bytes, without headers.
    pub bytes: u32,
    /// Media packets that are known to be lost or out of order since the packet before it. Where a
    /// packet holds several, as with seven of MPEG's to one of RTP's, each of them counts, except null
    /// packets.
    pub lost: u64,
}

/// The media delivery index of one interval, written DF:MLR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DeliveryIndex {
    /// The delay factor DF (RFC 4445 section 3.1), in milliseconds: the buffer, in time, that it took to
    /// play without a gap what arrived in the interval. `None` for the first interval of a stream,
    /// because it is not known since when that has drained.
    pub delay_factor_ms: Option<f64>,
    /// The media loss rate MLR (section 3.2), in media packets per second: the RFC's count in an
    /// interval, over the interval's length.
    pub loss_rate: f64,
    /// Intervals directly before this one in which nothing arrived. They have no index of their own;
    /// the RFC shows the one before again.
    pub silent_before: u64,
}

/// Takes the media delivery index of a stream, one interval after another, in constant memory.
///
/// The first interval begins with the first packet. A virtual buffer is filled by the packets and
/// drained at the media rate; it may be overdrawn. It is empty after the last packet of each interval
/// and drains from there on, so that a pause across the limit of two intervals counts in full in the
/// later one. Stamps that go back are taken as those before.
#[derive(Clone, Copy, Debug)]
pub struct MediaDelivery {
    rate: MediaRate,
    interval: Option<Interval>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: Time<Utc>,
    /// The last arrival before the interval, since which the buffer drains; `None` in the first.
    drained_since: Option<Time<Utc>>,
    latest: Time<Utc>,
    silent_before: u64,
    /// Bytes that came into the virtual buffer.
    filled: u64,
    /// The extremes of the virtual buffer's level, in bytes.
    lowest: f64,
    highest: f64,
    lost: u64,
}

impl MediaDelivery {
    /// A stream that has not begun.
    #[must_use]
    pub fn new(rate: MediaRate) -> Self {
        let interval = rate.interval.max(Span::from_nanos(1));
        Self { rate: MediaRate { interval, ..rate }, interval: None }
    }

    /// What is known of the stream.
    #[must_use]
    pub const fn rate(&self) -> MediaRate {
        self.rate
    }

    /// From the next packet on, plays the media at this rate, in bytes per second.
    pub const fn set_rate(&mut self, bytes_per_second: f64) {
        self.rate.bytes_per_second = bytes_per_second;
    }

    /// Takes the next packet, in the order of arrival. If it begins an interval, this is the index of
    /// the one that it ends.
    pub fn record(&mut self, packet: &MediaPacket) -> Option<DeliveryIndex> {
        let length = self.rate.interval.as_nanos();
        let Some(current) = &self.interval else {
            self.interval = Some(Interval::new(packet.arrival, None, 0));
            self.fill(packet);
            return None;
        };
        let passed = (packet.arrival - current.begin).as_nanos() / length;
        let ended = if passed > 0 { self.index() } else { None };
        if passed > 0 {
            let begin = current.begin + Span::from_nanos(passed.saturating_mul(length));
            let silent = passed.unsigned_abs() - 1;
            self.interval = Some(Interval::new(begin, Some(current.latest), silent));
        }
        self.fill(packet);
        ended
    }

    fn fill(&mut self, packet: &MediaPacket) {
        let bytes_per_second = self.rate.bytes_per_second;
        if let Some(interval) = &mut self.interval {
            interval.fill(packet, bytes_per_second);
        }
    }

    /// The index of the interval that has not ended, as if it had. `None` before the first packet, and
    /// without a rate.
    #[must_use]
    pub fn index(&self) -> Option<DeliveryIndex> {
        let Interval { drained_since, lowest, highest, lost, silent_before, .. } = self.interval?;
        let MediaRate { bytes_per_second, interval } = self.rate;
        (bytes_per_second > 0.0).then(|| DeliveryIndex {
            delay_factor_ms: drained_since.map(|_| 1e3 * (highest - lowest) / bytes_per_second),
            loss_rate: count_to_f64(lost) * 1e9 / nanos_to_f64(interval.as_nanos()),
            silent_before,
        })
    }
}

impl Interval {
    fn new(begin: Time<Utc>, drained_since: Option<Time<Utc>>, silent_before: u64) -> Self {
        Self {
            begin,
            drained_since,
            latest: drained_since.unwrap_or(begin),
            silent_before,
            filled: 0,
            lowest: 0.0,
            highest: 0.0,
            lost: 0,
        }
    }

    /// The level just before and just after a packet: VB(i, pre) and VB(i, post) of section 3.1.
    fn fill(&mut self, packet: &MediaPacket, bytes_per_second: f64) {
        self.latest = self.latest.max(packet.arrival);
        let since = self.drained_since.unwrap_or(self.begin);
        let drained = nanos_to_f64((self.latest - since).as_nanos()) * bytes_per_second / 1e9;
        let before = count_to_f64(self.filled) - drained;
        self.filled += u64::from(packet.bytes);
        let after = count_to_f64(self.filled) - drained;
        self.lowest = self.lowest.min(before);
        self.highest = self.highest.max(after);
        self.lost = self.lost.saturating_add(packet.lost);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 1000 bytes every 10 ms.
    const RATE: MediaRate = MediaRate { bytes_per_second: 100_000.0, interval: Span::from_secs(1) };

    fn packet(millis: i64, bytes: u32, lost: u64) -> MediaPacket {
        let arrival = Time::from_nanos(0) + Span::from_millis(millis);
        MediaPacket { arrival, bytes, lost }
    }

    /// The delay factor of the interval after the first, which only the packet at 0 s begins.
    fn delay_factor(millis: impl IntoIterator<Item = i64>) -> f64 {
        let packets = [0].into_iter().chain(millis).map(|at| packet(at, 1000, 0));
        indices(packets)[1].delay_factor_ms.expect("not the first interval")
    }

    fn indices(packets: impl IntoIterator<Item = MediaPacket>) -> Vec<DeliveryIndex> {
        let mut delivery = MediaDelivery::new(RATE);
        let mut indices: Vec<_> =
            packets.into_iter().filter_map(|packet| delivery.record(&packet)).collect();
        indices.extend(delivery.index());
        indices
    }

    #[test]
    fn packets_at_the_pace_of_the_media_need_a_buffer_for_one() {
        let found = delay_factor((1..200).map(|it| it * 10));
        assert!((found - 10.0).abs() < 1e-9, "{found}");
    }

    /// As RFC 4445 section 3.1 says.
    #[test]
    fn the_first_interval_has_a_loss_rate_but_no_delay_factor() {
        let indices = indices([packet(0, 1000, 0), packet(30, 1000, 2), packet(1000, 1000, 0)]);
        assert_eq!((indices[0].delay_factor_ms, indices[0].loss_rate), (None, 2.0));
        assert!(indices[1].delay_factor_ms.is_some());
    }

    #[test]
    fn a_pause_that_is_made_up_for_needs_a_buffer_as_long() {
        // Nothing for 60 ms, then six packets at once: from -60 ms of media up to 0.
        let found = delay_factor([990, 1000, 1060, 1060, 1060, 1060, 1060, 1060, 1070]);
        assert!((found - 60.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn a_pause_across_the_limit_of_two_intervals_counts_in_full() {
        let found = delay_factor([980, 1030]);
        assert!((found - 50.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn losses_are_counted_in_the_interval_in_which_they_are_seen() {
        let packets = [packet(0, 1000, 0), packet(990, 1000, 7), packet(1000, 1000, 1)];
        let rates: Vec<_> = indices(packets).iter().map(|index| index.loss_rate).collect();
        assert_eq!(rates, [7.0, 1.0]);
    }

    #[test]
    fn silent_intervals_are_counted() {
        let indices = indices([packet(0, 1000, 0), packet(3500, 1000, 0)]);
        assert_eq!(indices.iter().map(|it| it.silent_before).collect::<Vec<_>>(), [0, 2]);
        // Drained since the last packet, whenever that was.
        let found = indices[1].delay_factor_ms.expect("not the first interval");
        assert!((found - 3500.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn without_packets_or_a_rate_there_is_no_index() {
        assert_eq!(MediaDelivery::new(RATE).index(), None);
        let mut delivery = MediaDelivery::new(MediaRate { bytes_per_second: 0.0, ..RATE });
        delivery.record(&packet(0, 1000, 0));
        assert_eq!(delivery.index(), None);
    }

    proptest! {
        #[test]
        fn any_stamps_and_sizes_give_a_buffer_of_at_least_the_largest_packet(
            packets in prop::collection::vec((any::<i64>(), any::<u32>()), 1..50),
        ) {
            let mut delivery = MediaDelivery::new(RATE);
            for (nanos, bytes) in packets {
                let arrival = Time::from_nanos(nanos);
                delivery.record(&MediaPacket { arrival, bytes, lost: 0 });
                let index = delivery.index().expect("a packet");
                let alone = f64::from(bytes) / RATE.bytes_per_second * 1e3;
                if let Some(found) = index.delay_factor_ms {
                    prop_assert!(found >= alone * (1.0 - 1e-6), "{index:?}");
                }
            }
        }
    }
}
