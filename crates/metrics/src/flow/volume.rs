//! Counts of any packets.

use wirestamp_clock::{Span, Time, Utc};

use crate::Summary;
use crate::histogram::Histogram;
use crate::moments::Moments;
use crate::numeric::{count_to_f64, nanos_to_f64, nearest_rank_per_mille};

/// Packets, bytes, and times between packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Volume {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Packet trains: runs of packets without a gap above the limit.
    pub(super) trains: u64,
    /// Earliest and latest stamp.
    pub(super) first: Option<Time<Utc>>,
    pub(super) last: Option<Time<Utc>>,
    /// Stamp of the previous packet.
    pub(super) previous: Option<Time<Utc>>,
    pub(super) gaps: GapDistribution,
}

impl Volume {
    /// Records the next packet, in the order of capture. A gap above `train_gap` ends a train.
    #[inline]
    pub(super) fn record(&mut self, bytes: u32, time: Time<Utc>, train_gap: Span) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        let Some(previous) = self.previous.replace(time) else {
            (self.first, self.last, self.trains) = (Some(time), Some(time), 1);
            return;
        };
        let gap = time - previous;
        self.gaps.record(gap);
        self.trains += u64::from(gap > train_gap);
        self.first = self.first.min(Some(time));
        self.last = self.last.max(Some(time));
    }

    /// Removes packets that belong to another volume. Without any left, it is as new.
    pub(super) fn remove(&mut self, packets: u64, bytes: u64) {
        self.packets = self.packets.saturating_sub(packets);
        self.bytes = self.bytes.saturating_sub(bytes);
        if self.packets == 0 {
            *self = Self::default();
        }
    }

    /// Time from the earliest packet to the latest.
    pub(super) fn duration(&self) -> Span {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last - first,
            _ => Span::ZERO,
        }
    }

    /// Mean rate in bits per second; none if all packets came at one time.
    pub(super) fn bits_per_second(&self) -> Option<f64> {
        let nanos = self.duration().as_nanos();
        (nanos > 0).then(|| 8e9 * count_to_f64(self.bytes) / nanos_to_f64(nanos))
    }
}

/// Gaps that are counted together. With many flows, the state of each is outside of the processor's caches, and most
/// packets then need only the part of it that is stored in the flow.
const PENDING: usize = 7;

/// Distribution of times, in a few hundred bytes up to 4 KiB. As [`crate::Distribution`], but percentiles are within 3
/// %. Of negative times, which only reordered stamps cause, only the min and the mean are correct.
#[derive(Clone, Debug, Default)]
pub(super) struct GapDistribution {
    /// The newest times, in nanoseconds, and how many there are.
    pending: [i64; PENDING],
    pending_count: usize,
    /// All earlier times; none if there are none.
    counted: Option<Box<CountedGaps>>,
}

/// Times in nanoseconds, counted.
#[derive(Clone, Debug, Default)]
struct CountedGaps {
    count: u64,
    min: i64,
    max: i64,
    moments: Moments,
    histogram: Histogram<4>,
}

impl GapDistribution {
    #[inline]
    pub(super) fn record(&mut self, gap: Span) {
        self.pending[self.pending_count] = gap.as_nanos();
        self.pending_count += 1;
        if self.pending_count == PENDING {
            self.counted.get_or_insert_default().add(&self.pending);
            self.pending_count = 0;
        }
    }

    fn pending(&self) -> &[i64] {
        &self.pending[..self.pending_count]
    }

    /// Min time, in nanoseconds; none without times.
    pub(super) fn min(&self) -> Option<i64> {
        self.counted.iter().map(|it| it.min).chain(self.pending().iter().copied()).min()
    }

    /// Max time, in nanoseconds; none without times.
    pub(super) fn max(&self) -> Option<i64> {
        self.counted.iter().map(|it| it.max).chain(self.pending().iter().copied()).max()
    }

    pub(super) fn summary(&self) -> Option<Summary> {
        let mut all = self.counted.as_deref().cloned().unwrap_or_default();
        all.add(self.pending());
        (all.count > 0).then(|| all.summary())
    }
}

impl CountedGaps {
    fn add(&mut self, gaps: &[i64]) {
        for nanos in gaps.iter().copied() {
            (self.min, self.max) = match self.count {
                0 => (nanos, nanos),
                _ => (self.min.min(nanos), self.max.max(nanos)),
            };
            self.count += 1;
            self.moments.record(nanos_to_f64(nanos));
            self.histogram.record(u64::try_from(nanos).unwrap_or(0));
        }
    }

    fn summary(&self) -> Summary {
        let percentile = |per_mille| {
            let value = self.histogram.at_rank(nearest_rank_per_mille(per_mille, self.count));
            i64::try_from(value).unwrap_or(i64::MAX).clamp(self.min, self.max)
        };
        Summary {
            count: self.count,
            min: self.min,
            mean: self.moments.mean(),
            stddev: self.moments.standard_deviation(),
            p50: percentile(500),
            p90: percentile(900),
            p99: percentile(990),
            p999: percentile(999),
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Distribution;

    fn volume(millis: &[i64]) -> Volume {
        let mut volume = Volume::default();
        for millis in millis {
            let time = Time::from_nanos(0) + Span::from_millis(*millis);
            volume.record(125, time, Span::from_millis(100));
        }
        volume
    }

    #[test]
    fn long_gap_ends_a_train() {
        let volume = volume(&[0, 100, 201, 202, 500]);
        assert_eq!((volume.packets, volume.bytes, volume.trains), (5, 625, 3));
        assert_eq!(volume.gaps.max(), Some(298_000_000));
        assert_eq!(volume.bits_per_second(), Some(10_000.0));
    }

    #[test]
    fn reordered_packets_have_negative_gaps() {
        let volume = volume(&[50, 0, 200]);
        assert_eq!(volume.duration(), Span::from_millis(200));
        let gaps = volume.gaps.summary().expect("gaps");
        assert_eq!((gaps.count, gaps.min, gaps.max), (2, -50_000_000, 200_000_000));
    }

    #[test]
    fn one_packet_has_no_rate_and_no_gaps() {
        let volume = volume(&[7]);
        assert_eq!((volume.trains, volume.bits_per_second()), (1, None));
        assert!(volume.gaps.summary().is_none() && volume.gaps.min().is_none());
    }

    proptest! {
        #[test]
        fn gaps_nearly_match_an_exact_distribution(
            values in prop::collection::vec(0..5_000_000_000i64, 1..300),
        ) {
            let (mut gaps, mut exact) = (GapDistribution::default(), Distribution::new());
            for value in values {
                gaps.record(Span::from_nanos(value));
                exact.record(Span::from_nanos(value));
            }
            let (gaps, exact) = (gaps.summary().unwrap(), exact.summary().unwrap());
            prop_assert_eq!((gaps.count, gaps.min, gaps.max), (exact.count, exact.min, exact.max));
            prop_assert_eq!((gaps.mean, gaps.stddev), (exact.mean, exact.stddev));
            for (ours, theirs) in [(gaps.p50, exact.p50), (gaps.p99, exact.p99)] {
                prop_assert!(ours.abs_diff(theirs) <= theirs.unsigned_abs() / 30, "{ours} {theirs}");
            }
        }
    }
}
