//! Impairment of a stream over time, in bounded memory.

use wirestamp_clock::{Span, Time, Utc};

use super::gap_losses::LossChange;
use super::impairment::Impairment;
use crate::emodel::Codec;

/// Max intervals: the columns of a narrow screen.
const MAX_INTERVALS: usize = 60;
/// Initial length of an interval.
const MIN_INTERVAL: Span = Span::from_secs(1);
/// Max age, in intervals, of a loss that a late packet corrects.
const RECOVERABLE_INTERVALS: usize = 4;

/// Impairment of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Interval {
    pub(super) impairment: Impairment,
    /// Max jitter, in nanoseconds; none without packets of a known clock rate.
    pub(super) jitter: Option<f64>,
    pub(super) codec: IntervalCodec,
}

/// Rated codecs of the packets of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum IntervalCodec {
    /// No packet with a rated codec.
    #[default]
    None,
    One(Codec),
    Several,
}

impl IntervalCodec {
    /// With the codecs of another interval, or of a packet.
    pub(super) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, codec) | (codec, Self::None) => codec,
            (one, other) if one == other => one,
            _ => Self::Several,
        }
    }
}

/// Intervals of equal length from the start of a stream. When there are too many, pairs are merged.
#[derive(Clone, Debug)]
pub(super) struct ImpairmentSeries {
    begin: Option<Time<Utc>>,
    /// Length of each interval.
    pub(super) interval: Span,
    /// Intervals so far; those without expected packets are empty.
    pub(super) intervals: Vec<Interval>,
}

impl Default for ImpairmentSeries {
    fn default() -> Self {
        Self { begin: None, interval: MIN_INTERVAL, intervals: Vec::new() }
    }
}

impl ImpairmentSeries {
    /// Interval of a packet that comes now. Earlier stamps count in the newest.
    pub(super) fn at(&mut self, time: Time<Utc>) -> &mut Interval {
        let begin = *self.begin.get_or_insert(time);
        let place = |length: Span| {
            usize::try_from((time - begin).as_nanos() / length.as_nanos()).unwrap_or(0)
        };
        while place(self.interval) >= MAX_INTERVALS {
            self.merge_pairs();
        }
        let newest = place(self.interval).max(self.intervals.len().saturating_sub(1));
        self.intervals.resize(newest + 1, Interval::default());
        &mut self.intervals[newest]
    }

    /// Removes a loss from the last intervals.
    pub(super) fn recover(&mut self, missing_neighbours: u8) {
        let mut recent = self.intervals.iter_mut().rev().take(RECOVERABLE_INTERVALS);
        if let Some(interval) = recent.find(|interval| interval.impairment.lost > 0) {
            interval.impairment.recover(missing_neighbours);
        }
    }

    /// Applies a correction of the losses in a gap.
    pub(super) fn correct(&mut self, change: &LossChange) {
        let Some(begin) = self.begin else { return };
        let place = (change.time - begin).as_nanos() / self.interval.as_nanos();
        let newest = self.intervals.len().saturating_sub(1);
        let place = usize::try_from(place).unwrap_or(0).min(newest);
        if let Some(interval) = self.intervals.get_mut(place) {
            interval.impairment.correct(change);
        }
    }

    fn merge_pairs(&mut self) {
        let joined = self.intervals.chunks(2).map(|pair| Interval {
            impairment: pair.iter().fold(Impairment::default(), |sum, it| sum.plus(it.impairment)),
            jitter: pair.iter().filter_map(|it| it.jitter).reduce(f64::max),
            codec: pair.iter().fold(IntervalCodec::None, |sum, it| sum.plus(it.codec)),
        });
        self.intervals = joined.collect();
        // Saturates at 292 years, longer than any capture.
        self.interval = Span::from_nanos(self.interval.as_nanos().saturating_mul(2));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expected(series: &ImpairmentSeries) -> Vec<u64> {
        series.intervals.iter().map(|it| it.impairment.expected).collect()
    }

    fn series(seconds: impl IntoIterator<Item = i64>) -> ImpairmentSeries {
        let mut series = ImpairmentSeries::default();
        for second in seconds {
            let time = Time::from_nanos(0) + Span::from_secs(second);
            series.at(time).impairment.expected += 1;
        }
        series
    }

    #[test]
    fn pauses_are_empty_intervals() {
        assert_eq!(expected(&series([5, 5, 8, 6])), [2, 0, 0, 2]);
    }

    #[test]
    fn intervals_grow_when_there_are_too_many() {
        let series = series(0..121);
        assert_eq!(series.interval, Span::from_secs(4));
        assert_eq!(expected(&series), [&[4; 30][..], &[1]].concat());
    }

    #[test]
    fn merged_intervals_have_the_max_jitter() {
        let mut series = series([0]);
        for (second, jitter) in [(0, 2.0), (1, 1.0), (2, 3.0)] {
            let time = Time::from_nanos(0) + Span::from_secs(second);
            series.at(time).jitter = Some(jitter);
        }
        series.at(Time::from_nanos(0) + Span::from_secs(60));
        let jitter: Vec<_> = series.intervals.iter().map(|it| it.jitter).collect();
        assert_eq!(jitter[..3], [Some(2.0), Some(3.0), None]);
    }

    #[test]
    fn loss_is_removed_where_it_was_counted() {
        let mut series = series([0, 1, 2]);
        series.at(Time::from_nanos(0)).impairment.lose(0);
        series.intervals[1].impairment.lose(1);
        series.recover(0);
        assert!(series.intervals.iter().all(|it| it.impairment.lost == 0));
        series.recover(0);
    }

    proptest! {
        #[test]
        fn any_stamps_stay_within_the_bound(times in prop::collection::vec(any::<i64>(), 1..50)) {
            let mut series = ImpairmentSeries::default();
            for nanos in &times {
                series.at(Time::from_nanos(*nanos)).impairment.expected += 1;
            }
            prop_assert!(series.intervals.len() <= MAX_INTERVALS);
            prop_assert_eq!(expected(&series).iter().sum::<u64>(), times.len() as u64);
        }
    }
}
