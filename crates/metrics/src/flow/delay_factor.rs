//! Delay factor of a media stream: RFC 4445 section 3.1.

use wirestamp_clock::{Span, Time, Utc};

use crate::numeric::{count_to_f64, nanos_to_f64};

/// Interval of a delay factor; one second suits streams of 1 Mbit/s and up (RFC 4445 section 3.1).
pub(super) const INTERVAL: Span = Span::from_secs(1);

/// Computes the delay factor of a stream, interval by interval, in constant memory: the buffer needed to play the
/// arrivals of an interval without a gap.
///
/// The first interval begins with the first packet. A virtual buffer is filled by the packets and drained at the media
/// rate; its level may be negative. It is empty after the last packet of each interval and drains from there, so that
/// a pause across the boundary of two intervals counts in full in the later one. Decreasing stamps are replaced by the
/// previous one.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayFactor {
    /// Playout rate of the media. No delay factor is computed unless above 0.
    pub(super) bytes_per_second: f64,
    interval: Option<Interval>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: Time<Utc>,
    /// Last arrival before the interval, since which the buffer drains; `None` in the first.
    drained_since: Option<Time<Utc>>,
    latest: Time<Utc>,
    /// Bytes received into the virtual buffer.
    filled: u64,
    /// Min and max level of the virtual buffer, in bytes.
    min_level: f64,
    max_level: f64,
}

impl DelayFactor {
    /// A stream without packets.
    pub(super) const fn new(bytes_per_second: f64) -> Self {
        Self { bytes_per_second, interval: None }
    }

    /// Records the next packet, in the order of arrival, with its media bytes. If it begins an interval, returns the
    /// delay factor of the previous one in milliseconds: `Some(None)` for the first interval, because it is unknown
    /// since when the buffer has drained.
    pub(super) fn record(&mut self, arrival: Time<Utc>, bytes: u32) -> Option<Option<f64>> {
        let (rate, length) = (self.bytes_per_second, INTERVAL.as_nanos());
        let current = self.interval.get_or_insert(Interval::new(arrival, None));
        let passed = (arrival - current.begin).as_nanos() / length;
        let mut ended = None;
        if passed > 0 {
            ended = (rate > 0.0).then(|| current.delay_factor_ms(rate));
            let begin = current.begin + Span::from_nanos(passed.saturating_mul(length));
            *current = Interval::new(begin, Some(current.latest));
        }
        current.fill(arrival, bytes, rate);
        ended
    }
}

impl Interval {
    fn new(begin: Time<Utc>, drained_since: Option<Time<Utc>>) -> Self {
        let latest = drained_since.unwrap_or(begin);
        Self { begin, drained_since, latest, filled: 0, min_level: 0.0, max_level: 0.0 }
    }

    /// Levels just before and just after a packet: VB(i, pre) and VB(i, post) of section 3.1.
    fn fill(&mut self, arrival: Time<Utc>, bytes: u32, bytes_per_second: f64) {
        self.latest = self.latest.max(arrival);
        let since = self.drained_since.unwrap_or(self.begin);
        let drained = nanos_to_f64((self.latest - since).as_nanos()) * bytes_per_second / 1e9;
        self.min_level = self.min_level.min(count_to_f64(self.filled) - drained);
        self.filled += u64::from(bytes);
        self.max_level = self.max_level.max(count_to_f64(self.filled) - drained);
    }

    fn delay_factor_ms(&self, bytes_per_second: f64) -> Option<f64> {
        self.drained_since.map(|_| 1e3 * (self.max_level - self.min_level) / bytes_per_second)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 1000 bytes every 10 ms.
    const RATE: f64 = 100_000.0;

    /// Delay factors of the intervals of packets of 1000 bytes, including the open one.
    fn delay_factors(millis: impl IntoIterator<Item = i64>) -> Vec<Option<f64>> {
        let mut stream = DelayFactor::new(RATE);
        let arrival = |millis| Time::from_nanos(0) + Span::from_millis(millis);
        let packets = millis.into_iter().map(arrival);
        let mut factors: Vec<_> = packets.filter_map(|it| stream.record(it, 1000)).collect();
        factors.push(stream.interval.expect("packets").delay_factor_ms(RATE));
        factors
    }

    /// Delay factor of the interval after the first, which contains only the packet at 0 s.
    fn delay_factor(millis: impl IntoIterator<Item = i64>) -> f64 {
        delay_factors([0].into_iter().chain(millis))[1].expect("not the first interval")
    }

    #[test]
    fn packets_at_the_media_rate_need_a_buffer_for_one() {
        let found = delay_factor((1..200).map(|it| it * 10));
        assert!((found - 10.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn first_interval_has_no_delay_factor() {
        let factors = delay_factors([0, 30, 1000]);
        assert!(factors.len() == 2 && factors[0].is_none() && factors[1].is_some());
    }

    #[test]
    fn recovered_pause_needs_a_buffer_as_long() {
        // Nothing for 60 ms, then six packets at once: from -60 ms of media up to 0.
        let found = delay_factor([990, 1000, 1060, 1060, 1060, 1060, 1060, 1060, 1070]);
        assert!((found - 60.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn pause_across_two_intervals_counts_in_full() {
        let found = delay_factor([980, 1030]);
        assert!((found - 50.0).abs() < 1e-9, "{found}");
        let found = delay_factor([3500]);
        assert!((found - 3500.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn stream_without_a_rate_has_no_delay_factor() {
        let mut stream = DelayFactor::new(0.0);
        assert_eq!(
            [0, 2].map(|at| stream.record(Time::from_nanos(0) + Span::from_secs(at), 1)),
            [None; 2]
        );
    }

    proptest! {
        #[test]
        fn buffer_holds_at_least_the_largest_packet(
            packets in prop::collection::vec((any::<i64>(), any::<u32>()), 1..50),
        ) {
            let mut stream = DelayFactor::new(RATE);
            for (nanos, bytes) in packets {
                stream.record(Time::from_nanos(nanos), bytes);
                let alone = f64::from(bytes) / RATE * 1e3;
                if let Some(found) = stream.interval.expect("a packet").delay_factor_ms(RATE) {
                    prop_assert!(found >= alone * (1.0 - 1e-6), "{found} {alone}");
                }
            }
        }
    }
}
