//! Freezes of a video.

use std::collections::VecDeque;

use wirestamp_clock::{Span, Time, Utc};

/// Durations in the mean: "linear average of durations of last 30 rendered frames".
const WINDOW: usize = 30;
/// Min durations in the mean, as in libwebrtc; the definition has none.
const MIN_DURATIONS: usize = 5;
/// Min excess over the mean.
const EXCESS: Span = Span::from_millis(150);

/// Freezes as `freezeCount` and `totalFreezesDuration` of W3C "Identifiers for WebRTC's Statistics API" define them: the time
/// between two consecutive frames is at least max(3 · mean, mean + 150 ms), with the mean of the last 30 times before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Freezes {
    last: Option<Time<Utc>>,
    /// Times between frames in nanoseconds, the newest last.
    durations: VecDeque<i64>,
    /// Times that were compared with a mean.
    judged: u64,
    count: u64,
    total: i64,
}

impl Freezes {
    /// Records the next frame, with a time that is not before that of the last one.
    pub(super) fn record(&mut self, time: Time<Utc>) {
        let Some(last) = self.last.replace(time) else { return };
        let duration = (time - last).as_nanos();
        if self.durations.len() >= MIN_DURATIONS {
            self.judged += 1;
            if duration >= self.threshold() {
                self.count += 1;
                self.total = self.total.saturating_add(duration);
            }
        }
        if self.durations.len() >= WINDOW {
            self.durations.pop_front();
        }
        self.durations.push_back(duration);
    }

    /// Min duration of a freeze now, in nanoseconds.
    fn threshold(&self) -> i64 {
        let sum: i128 = self.durations.iter().copied().map(i128::from).sum();
        let count = i128::try_from(self.durations.len()).unwrap_or(1).max(1);
        let mean = i64::try_from(sum / count).unwrap_or(i64::MAX);
        mean.saturating_mul(3).max(mean.saturating_add(EXCESS.as_nanos()))
    }

    /// Number of freezes, and their duration in nanoseconds; none with too few frames.
    pub(super) fn totals(&self) -> Option<(u64, i64)> {
        (self.judged > 0).then_some((self.count, self.total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(millis: impl IntoIterator<Item = i64>) -> Option<(u64, i64)> {
        let mut freezes = Freezes::default();
        for millis in millis {
            freezes.record(Time::from_nanos(millis * 1_000_000));
        }
        freezes.totals()
    }

    /// 40 frames, one each 40 ms, and another one later.
    fn then(millis: i64) -> Option<(u64, i64)> {
        totals((0..40).map(|number| 40 * number).chain([39 * 40 + millis]))
    }

    #[test]
    fn freeze_is_at_least_150_ms_longer_than_the_mean() {
        assert_eq!(then(189), Some((0, 0)));
        assert_eq!(then(190), Some((1, 190_000_000)));
    }

    #[test]
    fn slow_video_freezes_at_three_times_the_mean() {
        let slow = |last: i64| totals((0..40).map(|number| 200 * number).chain([39 * 200 + last]));
        assert_eq!(slow(599), Some((0, 0)));
        assert_eq!(slow(600), Some((1, 600_000_000)));
    }

    #[test]
    fn mean_is_of_the_last_30_times() {
        // After 30 times of 400 ms, the earlier ones of 40 ms do not count.
        let fast = (0..50).map(|number| 40 * number);
        let slow = (1..=31).map(|number| 49 * 40 + 400 * number);
        let (count, _) = totals(fast.clone().chain(slow.clone())).expect("a total");
        let then = |millis: i64| {
            totals(fast.clone().chain(slow.clone()).chain([49 * 40 + 31 * 400 + millis]))
        };
        assert_eq!(then(1199).map(|it| it.0), Some(count));
        assert_eq!(then(1200).map(|it| it.0), Some(count + 1));
    }

    #[test]
    fn few_frames_have_no_freezes() {
        assert_eq!(totals([0, 40, 80, 120, 160, 200]), None);
        assert_eq!(totals([0, 40, 80, 120, 160, 200, 1000]), Some((1, 800_000_000)));
        assert_eq!(totals([]), None);
    }
}
