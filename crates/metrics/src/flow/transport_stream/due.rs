//! Times at which something has to come.

use wirestamp_clock::{Span, Time, Utc};

/// Something that has to come again within an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    since: Option<Time<Utc>>,
    /// Whether the interval that is open was counted.
    is_counted: bool,
}

impl Due {
    /// Begins the interval, unless it has begun.
    pub(super) fn begin(&mut self, time: Time<Utc>) {
        self.since.get_or_insert(time);
    }

    /// Notes that it came.
    pub(super) fn came(&mut self, time: Time<Utc>) {
        *self = Self { since: Some(time), is_counted: false };
    }

    /// It is not due until it begins again.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    /// Counts each interval of `max` that ended before `now` without it: of 1.2 s with a `max` of 0.5 s, two.
    pub(super) fn each(&mut self, now: Time<Utc>, max: Span) -> u64 {
        let Some(since) = self.since else { return 0 };
        let intervals = ((now - since).as_nanos() - 1).max(0) / max.as_nanos().max(1);
        self.since = Some(since + Span::from_nanos(intervals.saturating_mul(max.as_nanos())));
        intervals.unsigned_abs()
    }

    /// Counts 1 if it was missing for longer than `max`, once until it comes.
    pub(super) fn once(&mut self, now: Time<Utc>, max: Span) -> u64 {
        let is_late = !self.is_counted && self.since.is_some_and(|since| now - since > max);
        self.is_counted |= is_late;
        u64::from(is_late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Span = Span::from_millis(500);

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn each_interval_counts_whenever_it_is_checked() {
        for (gap, expected) in [(0, 0), (500, 0), (501, 1), (1000, 1), (1001, 2), (10_000, 19)] {
            for step in [1, 7, 500, 20_000] {
                let mut due = Due::default();
                due.begin(at(0));
                let checks = (0..gap).step_by(step).chain([gap]);
                let counted: u64 = checks.map(|time| due.each(at(time), MAX)).sum();
                assert_eq!(counted, expected, "a gap of {gap} ms, checked each {step} ms");
            }
        }
    }

    #[test]
    fn absence_counts_once_until_it_comes() {
        let mut due = Due::default();
        assert_eq!(due.once(at(10_000), MAX), 0, "it has not begun");
        due.begin(at(0));
        let counted: Vec<_> = [500, 501, 900, 5000].map(|time| due.once(at(time), MAX)).into();
        assert_eq!(counted, [0, 1, 0, 0]);
        due.came(at(5000));
        assert_eq!([5400, 5501, 6000].map(|time| due.once(at(time), MAX)), [0, 1, 0]);
        due.stop();
        assert_eq!(due.once(at(100_000), MAX) + due.each(at(100_000), MAX), 0);
    }

    #[test]
    fn times_that_go_back_count_nothing() {
        let mut due = Due::default();
        due.came(at(1000));
        assert_eq!((due.each(at(0), MAX), due.once(at(0), MAX)), (0, 0));
        due.came(Time::from_nanos(i64::MIN));
        assert!(due.each(Time::from_nanos(i64::MAX), Span::from_nanos(0)) > 0);
    }
}
