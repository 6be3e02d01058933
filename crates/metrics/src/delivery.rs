//! Media delivery index of a stream of constant rate: RFC 4445.

use serde::Serialize;
use wirestamp_clock::{Span, Time, Utc};

use crate::numeric::{count_to_f64, nanos_to_f64};

/// Media rate of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaRate {
    /// Playout rate of the media, in bytes per second. No index is computed unless above 0.
    pub bytes_per_second: f64,
    /// Interval of an index; one second suits streams of 1 Mbit/s and up (RFC 4445 section 3.1). At least 1 ns.
    pub interval: Span,
}

/// A packet of the stream, on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaPacket {
    /// Arrival time.
    pub arrival: Time<Utc>,
    /// Media bytes, without headers.
    pub bytes: u32,
    /// Media packets lost or out of order since the previous packet. Where a packet holds several, as with seven MPEG
    /// packets in one RTP packet, each counts, except null packets.
    pub lost: u64,
}

/// Media delivery index of one interval, written DF:MLR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DeliveryIndex {
    /// Delay factor DF (RFC 4445 section 3.1), in milliseconds: the buffer needed to play the arrivals of the interval
    /// without a gap. `None` for the first interval, because it is unknown since when the buffer has drained.
    pub delay_factor_ms: Option<f64>,
    /// Media loss rate MLR (section 3.2), in media packets per second: the RFC's count per interval over the length of
    /// the interval.
    pub loss_rate: f64,
    /// Empty intervals directly before this one. They have no index of their own; the RFC repeats the previous one.
    pub silent_before: u64,
}

/// Computes the media delivery index of a stream, interval by interval, in constant memory.
///
/// The first interval begins with the first packet. A virtual buffer is filled by the packets and drained at the media
/// rate; its level may be negative. It is empty after the last packet of each interval and drains from there, so that
/// a pause across the boundary of two intervals counts in full in the later one. Decreasing stamps are replaced by the
/// previous one.
#[derive(Clone, Copy, Debug)]
pub struct MediaDelivery {
    rate: MediaRate,
    interval: Option<Interval>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: Time<Utc>,
    /// Last arrival before the interval, since which the buffer drains; `None` in the first.
    drained_since: Option<Time<Utc>>,
    latest: Time<Utc>,
    silent_before: u64,
    /// Bytes received into the virtual buffer.
    filled: u64,
    /// Min and max level of the virtual buffer, in bytes.
    min_level: f64,
    max_level: f64,
    lost: u64,
}

impl MediaDelivery {
    /// A stream without packets.
    #[must_use]
    pub fn new(rate: MediaRate) -> Self {
        let interval = rate.interval.max(Span::from_nanos(1));
        Self { rate: MediaRate { interval, ..rate }, interval: None }
    }

    /// Media rate of the stream.
    #[must_use]
    pub const fn rate(&self) -> MediaRate {
        self.rate
    }

    /// Sets the media rate from the next packet on, in bytes per second.
    pub const fn set_rate(&mut self, bytes_per_second: f64) {
        self.rate.bytes_per_second = bytes_per_second;
    }

    /// Records the next packet, in the order of arrival. If it begins an interval, returns the index of the previous
    /// one.
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

    /// Index of the open interval, as if it had ended. `None` before the first packet, and without a rate.
    #[must_use]
    pub fn index(&self) -> Option<DeliveryIndex> {
        let Interval { drained_since, min_level, max_level, lost, silent_before, .. } =
            self.interval?;
        let MediaRate { bytes_per_second, interval } = self.rate;
        (bytes_per_second > 0.0).then(|| DeliveryIndex {
            delay_factor_ms: drained_since
                .map(|_| 1e3 * (max_level - min_level) / bytes_per_second),
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
            min_level: 0.0,
            max_level: 0.0,
            lost: 0,
        }
    }

    /// Levels just before and just after a packet: VB(i, pre) and VB(i, post) of section 3.1.
    fn fill(&mut self, packet: &MediaPacket, bytes_per_second: f64) {
        self.latest = self.latest.max(packet.arrival);
        let since = self.drained_since.unwrap_or(self.begin);
        let drained = nanos_to_f64((self.latest - since).as_nanos()) * bytes_per_second / 1e9;
        let before = count_to_f64(self.filled) - drained;
        self.filled += u64::from(packet.bytes);
        let after = count_to_f64(self.filled) - drained;
        self.min_level = self.min_level.min(before);
        self.max_level = self.max_level.max(after);
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

    /// Delay factor of the interval after the first, which contains only the packet at 0 s.
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

    /// RFC 4445 section 3.1.
    #[test]
    fn the_first_interval_has_a_loss_rate_but_no_delay_factor() {
        let indices = indices([packet(0, 1000, 0), packet(30, 1000, 2), packet(1000, 1000, 0)]);
        assert_eq!((indices[0].delay_factor_ms, indices[0].loss_rate), (None, 2.0));
        assert!(indices[1].delay_factor_ms.is_some());
    }

    #[test]
    fn recovered_pause_needs_a_buffer_as_long() {
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
        // Drained since the last packet, at any distance.
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
